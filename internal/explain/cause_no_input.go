// SPDX-License-Identifier: Apache-2.0
package explain

import "fmt"

var noInput = row{
	kind: NoInput, colour: "idle",
	means: "no packets came in, or the sender behind a port is stopped or has gone",
	known: "packet counters, the link and the peer of each port, and the process at its other end",
	answers: func(f *findings) (out []Cause) {
		if !f.wellBehaved() || f.e.Silent || len(f.e.Workers) == 0 || f.e.Workers[0].Plain {
			return nil
		}
		for i := range f.e.Ports {
			if p := &f.e.Ports[i]; p.silent() && (f.e.stoppedPeer(p) || p.Disconnects > 0 ||
				!p.Up && f.e.received() == 0) {
				out = append(out, Cause{Kind: NoInput, Worker: -1, CPU: -1, Name: p.Name, Port: p.Name, Grade: Counted})
			}
		}
		if len(out) == 0 && f.e.received() == 0 {
			out = append(out, Cause{Kind: NoInput, Worker: -1, CPU: -1, Name: "all ports", Grade: Counted})
		}
		f.silent = len(out) > 0
		return out
	},
	describe: func(s *scene, c *Cause) {
		c.Title = "no packets came in on any port"
		if c.Port == "" {
			c.fact(Counted, "%d ports received 0 packets", len(s.e.Ports))
			return
		}
		p := s.e.port(c.Port)
		state := "its link is up"
		if !p.Up {
			state = "its link is down"
		}
		c.Title = fmt.Sprintf("no packets came in on port %s: %s", p.Name, state)
		describePeers(s.e, p, c)
		if c.Why != "" {
			c.Title = fmt.Sprintf("no packets came in on port %s: %s", p.Name, c.Why)
		}
		c.fact(Counted, "%s (%s %s); its peer disconnected %d times in the window", state, p.Device, p.Peer,
			p.Disconnects)
	},
	remedy:   func(s *scene, c *Cause) { remedyPeers(s.e, c) },
	noRemedy: "look at what sends to the router: the guest, the program, the cable, the switch (corelane port show)",
}

// silent says whether a port is enabled, but received nothing.
func (p *Port) silent() bool { return !p.Disabled && p.RxPackets == 0 && p.RxMissed == 0 }

func (e *Evidence) stoppedPeer(p *Port) bool {
	for _, t := range e.Host.Readers[p.Name] {
		if isStopped(t.State) {
			return true
		}
	}
	return false
}
