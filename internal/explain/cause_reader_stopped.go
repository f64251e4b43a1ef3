// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/explain/host"
)

var readerStopped = row{
	kind: ReaderStopped, colour: "other",
	means: "a guest or program does not read the packets that are sent to it",
	known: "packets that its port's queue refused (`tx_refused` of `corelane port show`), and the process at the " +
		"other end: at least 0.5 % of the port's packets, and one per second",
	losses: func(f *findings) (out []Cause) {
		if f.e.dropped("port_tx_full") == 0 {
			return nil
		}
		for i := range f.e.Ports {
			if p := &f.e.Ports[i]; p.TxRefused > 0 {
				out = append(out, Cause{Worker: -1, CPU: -1, Name: p.Name, Port: p.Name, Times: int64(p.TxRefused),
					of: p.TxRefused + p.TxPackets})
			}
		}
		return out
	},
	holdsBack: func(c *Cause, m *Model) bool { return c.PPS > fewStolen*m.Achieved },
	limits:    limits{loss: minorLoss, lossRate: minorRate},
	describe: func(s *scene, c *Cause) {
		p := s.e.port(c.Port)
		c.Title = fmt.Sprintf("the reader of port %s reads no packets", p.Name)
		if p.TxPackets > 0 {
			c.Title = fmt.Sprintf("the reader of port %s reads only %.1f %% of its packets", p.Name,
				100*float64(p.TxPackets)/float64(c.of))
		}
		c.fact(Counted, "port %s (%s %s) refused %d packets and accepted %d", p.Name, p.Device, p.Peer, p.TxRefused,
			p.TxPackets)
		c.fact(Counted, "the router dropped %d packets with reason port_tx_full", s.e.dropped("port_tx_full"))
		c.Why = "its guest or program is stopped, or reads more slowly than packets arrive"
		describePeers(s.e, p, c)
	},
	remedy: func(s *scene, c *Cause) {
		remedyPeers(s.e, c)
		if c.Fix == "" {
			c.FixNote = "look at the guest or the program behind " + s.e.port(c.Port).Peer
		}
	},
}

// describePeers names the processes at the other end of a port.
func describePeers(e *Evidence, p *Port, c *Cause) {
	for _, t := range e.Host.Readers[p.Name] {
		c.fact(Counted, "%s (%d) is at the other end of port %s, in state %s", t.Name, t.PID, p.Name, t.State)
		c.PID, c.TID = t.PID, t.TID
		if isStopped(t.State) {
			c.Why = fmt.Sprintf("%s (%d) is stopped", t.Name, t.PID)
		} else {
			describeShares(e, &t, c)
		}
	}
}

// describeShares says which thread of a process does not get its CPU, or that none of a guest's vCPUs runs.
func describeShares(e *Evidence, t *host.Thread, c *Cause) {
	vcpus, ran := 0, 0.0
	for _, s := range e.Host.Shares[t.PID] {
		if s.Waited > mostWaiting {
			c.TID = s.TID
			c.Why = fmt.Sprintf("its thread %s (%d) waited for CPU %d for %.0f %% of the time: others have that CPU",
				s.Name, s.TID, s.LastCPU, 100*s.Waited)
		}
		if isVCPU(s.Name) {
			vcpus, ran = vcpus+1, ran+s.Ran
		}
	}
	if vcpus > 0 && ran < leastRunning {
		c.Why = fmt.Sprintf("the %d vCPUs of %s (%d) do not run: the guest is paused, or has nothing to do", vcpus,
			t.Name, t.PID)
	}
}

const (
	mostWaiting  = 0.2   // of the time, for a CPU
	leastRunning = 0.001 // of the time: a paused guest does not run at all
)

// isVCPU says whether a thread is a vCPU by the name that QEMU gives it.
func isVCPU(name string) bool { return strings.HasPrefix(name, "CPU ") && strings.Contains(name, "/") }

// remedyPeers lets the process at the other end of the cause's port go on.
func remedyPeers(e *Evidence, c *Cause) {
	for _, t := range e.Host.Readers[c.Port] {
		if isStopped(t.State) {
			c.Fix = fmt.Sprintf("kill -CONT %d", t.PID)
		}
		for _, s := range e.Host.Shares[t.PID] {
			if s.Waited > mostWaiting {
				c.FixNote = fmt.Sprintf("give thread %d of %s a CPU of its own (virsh vcpupin, taskset -pc CPU %d), "+
					"or move the others off CPU %d", s.TID, t.Name, s.TID, s.LastCPU)
			}
		}
	}
}

// port returns the port of a name; an empty one if the evidence has none.
func (e *Evidence) port(name string) *Port {
	for i := range e.Ports {
		if e.Ports[i].Name == name {
			return &e.Ports[i]
		}
	}
	return &Port{Name: name}
}

// dropped returns how many packets were dropped for a reason.
func (e *Evidence) dropped(reason string) (n uint64) {
	for i := range e.Ports {
		n += e.Ports[i].Drops[reason]
	}
	return n
}
