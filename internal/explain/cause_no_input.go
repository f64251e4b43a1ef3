// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"
	"slices"
)

// unlessMeant stands before the command that enables a port: its guest may have been an attacker.
const unlessMeant = "the port is disabled; if that is not intended, enable it:"

var noInput = row{
	kind: NoInput, colour: "idle",
	means: "no packets came in, or the sender behind a port is stopped or has gone, or the port is disabled, or the " +
		"link of a port to the network that carried packets is down",
	known: "packet counters, the link and the peer of each port, its interface, and the process at its other end",
	losses: func(f *findings) []Cause {
		if f.costly() {
			return f.deadLinks() // what costs packets comes first
		}
		return nil
	},
	answers: func(f *findings) (out []Cause) {
		if !f.wellBehaved() && !f.costly() {
			return f.deadLinks()
		}
		if !f.wellBehaved() || f.e.Silent || len(f.e.Workers) == 0 || f.e.Workers[0].Plain {
			return nil
		}
		for i := range f.e.Ports {
			p, none := &f.e.Ports[i], f.e.received() == 0
			if p.silent() && (f.e.stoppedPeer(p) || p.Disconnects > 0 || !p.Up && none) || p.Disabled && none ||
				p.isDead() {
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
		if p.Disabled {
			state = "it is disabled"
		} else if !p.Up {
			state = "its link is down"
		}
		came := "no packets came in"
		if p.RxPackets > 0 {
			came = "no packets come in any more"
		}
		c.Title = fmt.Sprintf("%s on port %s: %s", came, p.Name, state)
		describePeers(s.e, p, c)
		describeLink(s.e, p, c)
		if c.Why != "" {
			c.Title = fmt.Sprintf("%s on port %s: %s", came, p.Name, c.Why)
		}
		c.fact(Counted, "%s (%s %s); its peer disconnected %d times in the window", state, p.Device, p.Peer,
			p.Disconnects)
	},
	remedy: func(s *scene, c *Cause) {
		remedyPeers(s.e, c)
		remedyLink(s.e, s.e.port(c.Port), c)
	},
	noRemedy: "look at what sends to the router: the guest, the program, the cable, the switch (corelane port show)",
}

// deadLinks are the ports to the network whose link is down although it carried packets.
func (f *findings) deadLinks() (out []Cause) {
	for i := range f.e.Ports {
		if p := &f.e.Ports[i]; p.isDead() {
			out = append(out, Cause{Kind: NoInput, Worker: -1, CPU: -1, Name: p.Name, Port: p.Name, Grade: Counted})
		}
	}
	return out
}

// costly says whether a cause was found that costs packets.
func (f *findings) costly() bool {
	return slices.ContainsFunc(f.causes, func(c Cause) bool { return !c.Minor && c.weight() >= 1 })
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
