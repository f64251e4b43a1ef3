// SPDX-License-Identifier: Apache-2.0
package measure

import (
	"context"
	"math/rand/v2"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/router"
)

const tscHz = 1e9

// simulated is a router and a generator with the given properties.
type simulated struct {
	capacity  float64       // frames per second that the router forwards
	generator float64       // that the generator can send
	noise     float64       // of the capacity, from trial to trial
	accidents float64       // share of the trials in which some frames are lost, or the generator is late
	late      bool          // accidents are the generator's
	sinkFull  float64       // share of the frames forwarded that the sink has no room for
	queue     uint64        // frames that wait without loss
	silent    bool          // does not tell its load
	waited    time.Duration // of the router for its CPU
	onTrial   func(n int)

	random *rand.Rand
	trials int
	now    router.Counters
}

func (s *simulated) Trial(ctx context.Context, spec *apiv1.GeneratorTrial) (*Outcome, error) {
	if s.random == nil {
		s.random = rand.New(rand.NewPCG(1, 2))
	}
	s.trials++
	if s.onTrial != nil {
		s.onTrial(s.trials)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	before := s.copied()
	t := s.run(spec)
	o := &Outcome{Total: t, Before: before, After: s.copied(), Waited: map[int]time.Duration{0: 0, 1: s.waited}}
	if t.Seconds > 0 && spec.WindowMs > 0 {
		o.Windows = s.windows(spec, t)
	}
	return o, nil
}

func (s *simulated) run(spec *apiv1.GeneratorTrial) *apiv1.GeneratorWindow {
	seconds := float64(spec.DurationMs) / 1e3
	capacity := s.capacity * (1 + s.noise*(2*s.random.Float64()-1))
	t := &apiv1.GeneratorWindow{Total: true, Seconds: seconds, TscHz: tscHz}
	switch {
	case spec.Packets > 0:
		t.Due = spec.Packets
		t.Sent = min(spec.Packets, s.queue)
		t.NoRoom = t.Due - t.Sent
	case spec.PacketsPerSecond == 0:
		t.Sent = uint64(min(capacity, s.generator) * seconds)
		t.Due = t.Sent
	default:
		t.Due = uint64(spec.PacketsPerSecond * seconds)
		t.Sent = uint64(min(capacity, s.generator, spec.PacketsPerSecond) * seconds)
		t.Late = uint64(max(0, spec.PacketsPerSecond-s.generator) * seconds)
		t.NoRoom = t.Due - t.Sent - t.Late
	}
	s.accident(t)
	full := uint64(s.sinkFull * float64(t.Sent))
	t.Lost += full
	t.Received = t.Sent - t.Lost
	s.count("tx_full", full)
	if spec.Latency {
		t.Latency = []*apiv1.GeneratorLatency{{LowNs: 1000, Frames: 900}, {LowNs: 2000, Frames: 90},
			{LowNs: 4000, Frames: 9}, {LowNs: 64000, Frames: 1}}
	}
	t.Cycles = uint64(seconds * tscHz)
	t.BusyCycles = uint64(float64(t.Cycles) * min(1, float64(t.Sent)/seconds/s.generator))
	if !s.silent && seconds > 0 {
		s.now.Busy += uint64(float64(t.Cycles) * min(1, float64(t.Sent)/seconds/s.capacity))
	}
	s.now.Nodes = []router.NodeCounter{{Name: "port_rx", Calls: s.now.Busy / 100, Packets: s.now.Busy / 10,
		Cycles: s.now.Busy}}
	return t
}

func (s *simulated) accident(t *apiv1.GeneratorWindow) {
	if s.random.Float64() >= s.accidents {
		return
	}
	const frames = 5000
	n := min(frames, t.Sent/2)
	t.Lost = n
	if s.late {
		t.Sent -= n
		t.Late += n
		return
	}
	s.count("port_rx_error", n)
}

func (s *simulated) count(reason string, n uint64) {
	if s.now.Drops == nil {
		s.now.Drops = map[string]uint64{}
	}
	s.now.Drops[reason] += n
}

func (s *simulated) copied() router.Counters {
	c := s.now
	c.Drops = map[string]uint64{}
	for reason, n := range s.now.Drops {
		c.Drops[reason] = n
	}
	return c
}

func (s *simulated) windows(spec *apiv1.GeneratorTrial, t *apiv1.GeneratorWindow) []*apiv1.GeneratorWindow {
	var list []*apiv1.GeneratorWindow
	n := uint64(spec.DurationMs / spec.WindowMs)
	for i := range n {
		list = append(list, &apiv1.GeneratorWindow{StartSeconds: float64(i) * t.Seconds / float64(n),
			Seconds: t.Seconds / float64(n), Sent: t.Sent / n, Received: t.Received / n, BusyCycles: t.BusyCycles / n,
			Cycles: t.Cycles / n, RoundTripCycles: 110})
	}
	return append(list, &apiv1.GeneratorWindow{StartSeconds: t.Seconds, Seconds: 0.01})
}
