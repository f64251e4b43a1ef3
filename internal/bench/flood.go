// SPDX-License-Identifier: Apache-2.0
package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/bench/router"
	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/stat"
)

// FloodOptions of a measurement of what one tenant's flood does to another tenant.
type FloodOptions struct {
	Options            // where it runs, repetitions, and TrialTime
	Kinds     []string // of FloodKinds; empty: all
	Rate      float64  // frames per second of the watched tenant
	FloodRate float64  // frames per second of the flooding tenant
	FlowLimit int      // flows of the flooding tenant's port, 0 = any number
	FlowRate  int      // new flows per second of that port, 0 = any number; kind quota ignores it
}

// FloodResult is one kind of flood.
type FloodResult struct {
	Kind       string            `json:"kind"`
	Baseline   float64           `json:"baseline"`    // frames/s of the watched tenant without the flood, median
	Flooded    float64           `json:"flooded"`     // the same while the other tenant floods
	Retained   float64           `json:"retained"`    // Flooded / Baseline, median over neighbouring trials
	Flood      float64           `json:"flood"`       // frames per second that the router took from the flooding tenant
	Passed     float64           `json:"passed"`      // frames per second of them that came through
	Drops      map[string]uint64 `json:"drops"`       // by reason
	NotCounted int64             `json:"not_counted"` // frames lost in the router without a drop reason
	Waited     float64           `json:"waited"`      // share of the time that something else had the router's CPU
}

// floodKinds say how a flood differs from a tenant's ordinary stream.
var floodKinds = []struct {
	name, what string
	change     func(*apiv1.GeneratorStream)
}{
	{"new", "UDP packets that each begin a flow", newFlows},
	{"syn", "TCP SYNs that each begin a flow", func(s *apiv1.GeneratorStream) { newFlows(s); toSYN(s) }},
	{"fragments", "later fragments without a first one", func(s *apiv1.GeneratorStream) { newFlows(s); toFragment(s) }},
	{"quota", "new flows beyond the port's limit, at any rate", newFlows},
}

// FloodKinds returns the kinds and a description of each.
func FloodKinds() (names, what []string) {
	for _, k := range floodKinds {
		names, what = append(names, k.name), append(what, k.what)
	}
	return names, what
}

const (
	floodFlows = 1 << 24 // 5-tuples; the generator begins again after the last one
	maxRate    = 100_000_000
)

func newFlows(s *apiv1.GeneratorStream) {
	s.Flows.Count, s.Flows.Shuffle = floodFlows, true
}

// toSYN replaces the UDP header by a TCP SYN, in the sent and in the expected frame.
func toSYN(s *apiv1.GeneratorStream) {
	syn := make([]byte, 20)
	syn[12], syn[13], syn[15] = 5<<4, 2, 255 // length, SYN, window
	tcp := func(header []byte) []byte {
		ip := len(header) - udpHeader - ip4Header
		header = slices.Concat(header[:len(header)-udpHeader], header[len(header)-udpHeader:len(header)-udpHeader+4],
			syn[4:])
		header[ip+9] = 6
		return header
	}
	udp := uint32(len(s.Header) - udpHeader)
	s.Header, s.Expected = tcp(s.Header), tcp(s.Expected)
	s.ExpectedMask = make([]byte, len(s.Expected)) // the header has another length: only the probe is checked
	s.Lengths = slices.DeleteFunc(s.Lengths, func(l *apiv1.GeneratorLength) bool { return l.Offset >= udp })
	for i := range s.Sizes {
		s.Sizes[i] += uint32(len(syn) - udpHeader)
	}
}

const (
	ip4Header = 20
	udpHeader = 8
)

// toFragment gives the packet a fragment offset and clears "don't fragment".
func toFragment(s *apiv1.GeneratorStream) {
	at := s.InnerOffset + 6
	s.Header[at], s.Header[at+1] = 0, 100
	s.ExpectedMask = make([]byte, len(s.Expected)) // no frame is expected
}

func (o *FloodOptions) check() error {
	names, _ := FloodKinds()
	for _, k := range o.Kinds {
		if !slices.Contains(names, k) {
			return input.Errorf("KIND", strings.Join(names, ", "), "'%s' is unknown", k)
		}
	}
	for _, n := range []struct {
		flag       string
		value      float64
		least, top float64
	}{{"--rate", o.Rate, 1000, maxRate}, {"--flood-rate", o.FloodRate, 1000, maxRate},
		{"--flow-limit", float64(o.FlowLimit), 0, math.MaxUint32},
		{"--flow-rate", float64(o.FlowRate), 0, math.MaxUint32}} {
		if !(n.value >= n.least && n.value <= n.top) {
			return input.Errorf(n.flag, fmt.Sprintf("%.0f to %.0f", n.least, n.top), "%.0f is out of range", n.value)
		}
	}
	return nil
}

// Flood measures each kind, one after the other, on a router of its own.
func Flood(ctx context.Context, o FloodOptions, p Progress) ([]FloodResult, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.Routers = []string{"corelane"}
	sc, err := scenario.Find("mplsoudp-encap")
	if err != nil {
		return nil, err
	}
	sc.Tenants, sc.Flows, sc.Stateful, sc.FlowLimit, sc.FlowRate = 2, 2000, true, o.FlowLimit, o.FlowRate
	o.Scenarios = []scenario.Scenario{sc}
	s := &comparison{Options: o.Options, Progress: p, settle: 100 * time.Millisecond, watch: 300 * time.Millisecond,
		startGenerator: startGenerator}
	if err := s.validate(); err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return nil, input.Errorf("user", "root; try sudo", "the benchmark needs hugepages and CPUs")
	}
	if err := s.prepare(ctx, router.All()); err != nil {
		return nil, err
	}
	if err := keepOff(s.place); err != nil {
		return nil, err
	}
	var list []FloodResult
	for _, k := range floodKinds {
		if len(o.Kinds) > 0 && !slices.Contains(o.Kinds, k.name) {
			continue
		}
		if sc.FlowRate = o.FlowRate; k.name == "quota" {
			sc.FlowRate = 0
		}
		s.Step("flood: "+k.name, startTime+checkTime+2*time.Duration(s.Repetitions)*s.Measure.TrialTime)
		r, err := s.flood(ctx, sc, k.change, &o)
		if err != nil {
			return list, fmt.Errorf("%s: %w", k.name, err)
		}
		r.Kind = k.name
		list = append(list, *r)
	}
	return list, nil
}

func (s *comparison) flood(ctx context.Context, sc scenario.Scenario, change func(*apiv1.GeneratorStream),
	o *FloodOptions) (r *FloodResult, err error) {
	l, err := s.open(ctx, s.routers[0], sc, &result.Run{Scenario: sc.Label(), Flows: sc.Flows})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	watched, other := l.profile.Streams[0], l.profile.Streams[1]
	change(other)
	watched.Weight, other.Weight = weights(o.Rate, o.FloodRate)
	r = &FloodResult{Drops: map[string]uint64{}}
	var baseline, flooded, retained, flood, passed []float64
	var waited, seconds float64
	err = l.awake(ctx, func() error {
		for range s.Repetitions {
			a, err := l.floodTrial(ctx, []*apiv1.GeneratorStream{watched}, o.Rate, s.place.routers[0],
				s.Measure.TrialTime)
			if err != nil {
				return err
			}
			b, err := l.floodTrial(ctx, []*apiv1.GeneratorStream{watched, other}, o.Rate+o.FloodRate,
				s.place.routers[0], s.Measure.TrialTime)
			if err != nil {
				return err
			}
			baseline, flooded = append(baseline, a.received[0]), append(flooded, b.received[0])
			retained = append(retained, b.received[0]/max(a.received[0], 1))
			flood, passed = append(flood, b.sent[1]), append(passed, b.received[1])
			for reason, n := range b.drops {
				r.Drops[reason] += n
			}
			r.NotCounted += b.notCounted
			waited, seconds = waited+b.waited, seconds+s.Measure.TrialTime.Seconds()
		}
		return nil
	})
	r.Baseline, r.Flooded, r.Retained, r.Flood, r.Passed = stat.Median(baseline), stat.Median(flooded),
		stat.Median(retained), stat.Median(flood), stat.Median(passed)
	r.Waited = waited / max(seconds, 1e-9)
	return r, err
}

// weights returns whole numbers in the ratio of two rates.
func weights(a, b float64) (x, y uint32) {
	least := min(a, b)
	return uint32(math.Round(100 * a / least)), uint32(math.Round(100 * b / least))
}

type floodTrial struct {
	sent, received []float64 // by stream, per second
	drops          map[string]uint64
	notCounted     int64
	waited         float64 // seconds of the router's CPU
}

func (l *contender) floodTrial(ctx context.Context, streams []*apiv1.GeneratorStream, rate float64, cpu int,
	d time.Duration) (*floodTrial, error) {
	if err := l.generator.Configure(ctx, &apiv1.GeneratorProfile{Ports: l.profile.Ports,
		Streams: streams}); err != nil {
		return nil, err
	}
	o, err := l.Trial(ctx, &apiv1.GeneratorTrial{DurationMs: uint32(d.Milliseconds()), PacketsPerSecond: rate,
		DrainMs: 200})
	if err != nil {
		return nil, err
	}
	t := &floodTrial{drops: map[string]uint64{}, notCounted: int64(o.Total.Sent) - int64(o.Total.Received)}
	for _, s := range o.Total.Streams {
		t.sent, t.received = append(t.sent, float64(s.Sent)/d.Seconds()),
			append(t.received, float64(s.Received)/d.Seconds())
	}
	if len(t.sent) != len(streams) {
		return nil, fmt.Errorf("the generator reports %d streams instead of %d", len(t.sent), len(streams))
	}
	for reason, n := range stat.GrownBy(o.After.Drops, o.Before.Drops) {
		t.drops[reason], t.notCounted = n, t.notCounted-int64(n)
	}
	t.waited = min(o.Waited[cpu].Seconds(), d.Seconds())
	return t, nil
}

// Reasons lists the drop reasons, the most frequent one first.
func (r *FloodResult) Reasons() []string {
	var list []string
	for reason := range r.Drops {
		list = append(list, reason)
	}
	slices.SortFunc(list, func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Drops[b], r.Drops[a]), cmp.Compare(a, b))
	})
	return list
}
