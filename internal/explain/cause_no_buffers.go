// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"context"
	"fmt"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// noBuffer is the drop reason that counts polls, not packets.
const noBuffer = "port_no_buffer"

const leastRing = 64 // packets, of a ring between workers

var noBuffers = row{
	kind: NoBuffers, colour: "other",
	means: "ports received nothing, because all packet buffers were in use",
	known: "polls that found no buffer (`port_no_buffer` of `corelane drops`), at least one per second. " +
		"`buffers_kept` and `buffers_waiting` of `corelane port show` say what holds the buffers. The cost is the " +
		"rate before minus the rate of the last seconds",
	losses: func(f *findings) []Cause {
		if float64(f.e.dropped(noBuffer)) < max(1, f.e.Seconds) {
			return nil
		}
		c := Cause{Worker: -1, CPU: -1, Name: "devices", of: f.e.received()}
		if p, waiting, kept := f.e.buffers(); waiting > kept {
			c.Name, c.Port = p.Name, p.Name
		}
		for i := range f.e.Workers {
			if m := f.models[f.e.Workers[i].ID]; m != nil {
				before, _ := f.e.Workers[i].arrivedBefore(m.Achieved)
				c.Times += int64(max(0, before-m.Achieved) * f.e.Seconds)
			}
		}
		return []Cause{c}
	},
	describe: func(s *scene, c *Cause) {
		p, waiting, kept := s.e.buffers()
		c.Title = "all packet buffers are in use: the rings of devices keep them"
		if c.Port != "" {
			c.Title = fmt.Sprintf("all packet buffers are in use: %d hold packets of port %s that wait", p.Waiting,
				p.Name)
			if r := s.e.fullestRing(); r != nil {
				c.Why = fmt.Sprintf("%d of these packets wait in the ring from worker %d to worker %d, which has room "+
					"for %d", r.Used, r.From, r.To, r.Size)
			}
		}
		c.fact(Counted, "%d polls found no free packet buffer", s.e.dropped(noBuffer))
		c.fact(Counted, "devices keep %d buffers, and packets that wait hold %d, of %d", kept, waiting, s.e.Buffers)
		for i := range s.e.Ports {
			if p := &s.e.Ports[i]; p.Drops[noBuffer] > 0 {
				c.fact(Counted, "port %s (%s %s) was polled %d times in vain", p.Name, p.Device, p.Peer,
					p.Drops[noBuffer])
			}
		}
	},
	remedy: func(s *scene, c *Cause) {
		more := fmt.Sprintf("start corelaned with more buffers (--mbufs %d)", 2*(uint64(s.e.Buffers)+1))
		if c.Port == "" {
			c.FixNote = "delete ports that are not needed, or give them fewer queues, or " + more
			return
		}
		if r := s.e.fullestRing(); r != nil && r.Size > leastRing {
			// Half of it is for the ring's packets, the rest for the other rings and for devices.
			size := uint64(leastRing)
			for size*8 <= uint64(s.e.Buffers) && size*2 < uint64(r.Size) {
				size *= 2
			}
			c.FixNote = more + ", or make the ring shorter, so that it cannot hold them all:"
			c.then("corelane worker set %d --ring-size %d", r.To, size)
			return
		}
		c.FixNote = more
		if limit := limitUnresolved(s.e, s.e.port(c.Port)); limit != "" {
			c.FixNote += ", or limit how many of its packets may wait for neighbours:"
			c.then("%s", limit)
		}
	},
}

// buffers returns the port whose packets hold the most buffers while they wait, those of all ports, and how many the
// devices keep.
func (e *Evidence) buffers() (most *Port, waiting, kept uint32) {
	most = &Port{}
	for i := range e.Ports {
		p := &e.Ports[i]
		waiting, kept = waiting+p.Waiting, kept+p.Kept
		if p.Waiting > most.Waiting {
			most = p
		}
	}
	return most, waiting, kept
}

// fullestRing returns the ring between workers that has more than half of all waiting packets, or nil.
func (e *Evidence) fullestRing() (most *Ring) {
	_, waiting, _ := e.buffers()
	for i := range e.Rings {
		if r := &e.Rings[i]; 2*r.Used > waiting && (most == nil || r.Used > most.Used) {
			most = r
		}
	}
	return most
}

// readBuffers asks for the number of packet buffers.
func (e *Evidence) readBuffers(ctx context.Context, c *api.Client) error {
	status, err := api.Call(ctx, c, apiv1.NewSystemClient, apiv1.SystemService.GetStatus, &apiv1.Empty{})
	if err != nil {
		return fmt.Errorf("packet buffers: %w", err)
	}
	e.Buffers = status.MbufsTotal
	return nil
}
