// SPDX-License-Identifier: Apache-2.0
package neighbor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/measure"
	"github.com/corelane/corelane/internal/procfs"
	"github.com/corelane/corelane/internal/stat"
	"github.com/corelane/corelane/internal/wait"
)

const (
	drainMS = 50
	// The 99th percentile of a trial is the median of those of its windows. Of the whole trial it would be the length
	// of the gaps of a hypervisor that takes the CPU for a hundredth of the time.
	windowMS   = 20
	answerMS   = 1000                 // within which an ARP request is answered; hosts then ask again
	settleTime = time.Second          // for frames that are in rings at the end of a trial
	callGap    = 2 * time.Millisecond // between two calls of the API
)

// calibrate measures how much the worker forwards of the observed tenant alone, and sets the rates of both tenants.
func (b *bed) calibrate(ctx context.Context, r *Row) error {
	t, err := b.generator.Run(ctx, &apiv1.GeneratorTrial{DurationMs: uint32(b.options.Trial.Milliseconds()),
		DrainMs: drainMS, Streams: []string{victim}}, nil)
	if err != nil {
		return err
	}
	r.Capacity = float64(t.Received) / t.Seconds
	if r.Offered = b.options.Rate; r.Offered == 0 {
		r.Offered = r.Capacity / 4 // half of its fair share beside one other tenant
	}
	if r.Offered <= 0 {
		return errors.New("the router forwards nothing")
	}
	if b.attacker.guest != nil {
		return nil
	}
	r.Attack = b.attacker.pace * r.Capacity
	attack, offered := weights(r.Attack, r.Offered)
	for _, s := range b.profile.Streams {
		if s.Weight = attack; s.Name == victim {
			s.Weight = offered
		}
	}
	return b.generator.Configure(ctx, b.profile)
}

// weights returns whole numbers in the ratio of two rates.
func weights(a, b float64) (x, y uint32) {
	least := min(a, b)
	return uint32(math.Round(100 * a / least)), uint32(math.Round(100 * b / least))
}

// company is what the other tenant of a trial does.
type company int

const (
	alone    company = iota // nothing
	busy                    // sends ordinary packets at the rate of the attack
	attacked                // attacks
)

// spec is a trial of the observed tenant in this company.
func (b *bed) spec(r *Row, with company) *apiv1.GeneratorTrial {
	spec := &apiv1.GeneratorTrial{DurationMs: uint32(b.options.Trial.Milliseconds()), DrainMs: drainMS,
		WindowMs: windowMS, Latency: r.timed(), PacketsPerSecond: r.Offered, Streams: []string{victim}}
	if with == alone || b.attacker.guest != nil {
		return spec
	}
	spec.PacketsPerSecond += r.Attack
	if with == busy {
		spec.Streams = append(spec.Streams, ordinary)
	} else {
		spec.Streams, spec.UnreadPort = append(spec.Streams, b.attacker.stream.Name), b.attacker.unread
	}
	return spec
}

// trial measures the observed tenant.
func (b *bed) trial(ctx context.Context, r *Row, with company) (s *Sample, err error) {
	before, err := b.counters(ctx)
	if err != nil {
		return nil, err
	}
	probing, stop := context.WithCancel(ctx)
	defer stop()
	s = &Sample{}
	call := b.callAPI(probing, s)
	answers := b.askForMAC(ctx, s)
	guest := b.runGuest(probing, with)
	var p99 []float64
	t, err := b.generator.Run(ctx, b.spec(r, with), func(w *apiv1.GeneratorWindow) {
		if w.P99Ns > 0 {
			p99 = append(p99, float64(w.P99Ns)/1e3)
		}
	})
	stop()
	did := <-guest
	if err = errors.Join(err, did.err, <-call, <-answers); err != nil {
		return nil, err
	}
	after, err := b.counters(ctx)
	if err != nil {
		return nil, err
	}
	s.count(t, b.options.Trial.Seconds())
	if len(p99) > 0 {
		s.P99 = stat.Median(p99)
	}
	s.Attack += float64(did.times) / b.options.Trial.Seconds()
	s.Waited = (after.waited - before.waited).Seconds() / b.options.Trial.Seconds()
	s.Drops = stat.GrownBy(after.drops, before.drops)
	s.MasterMS = longestTurn(before.turns, after.turns)
	s.LoopP99 = longLoop(before.loops, after.loops)
	s.HostDrops = stat.GrownBy(after.hostDrops, before.hostDrops)
	s.NotCounted = missing(t, before, after) - b.attacker.kept
	return s, b.settle(ctx, s, after)
}

// missing is how many frames of a trial were neither received nor dropped with a reason.
func missing(t *apiv1.GeneratorWindow, before, after counters) int64 {
	return int64(t.Sent) - int64(t.Received+t.Foreign+stat.Grown(after.dropped, before.dropped))
}

// settle waits for frames that were in a ring when the trial ended, because a thread of the router did not have its
// CPU. Trials of one frame each show them as frames of an earlier trial.
func (b *bed) settle(ctx context.Context, s *Sample, before counters) error {
	for end := time.Now().Add(settleTime); s.NotCounted > 0 && time.Now().Before(end); {
		t, err := b.generator.Run(ctx, &apiv1.GeneratorTrial{Packets: 1, DrainMs: drainMS, Streams: []string{victim},
			UnreadPort: b.attacker.unread}, nil)
		if err != nil {
			return err
		}
		after, err := b.counters(ctx)
		if err != nil {
			return err
		}
		s.NotCounted += missing(t, before, after) - int64(t.Stale)
		before = after
	}
	return nil
}

// deeds are what a hostile guest did.
type deeds struct {
	times int
	err   error
}

// runGuest lets the guest of this company act until ctx ends, if there is one.
func (b *bed) runGuest(ctx context.Context, with company) <-chan deeds {
	done := make(chan deeds, 1)
	act := map[company]func(context.Context) (int, error){
		busy: b.attacker.ordinaryGuest, attacked: b.attacker.guest}[with]
	if act == nil {
		done <- deeds{}
		return done
	}
	go func() {
		times, err := act(ctx)
		done <- deeds{times, err}
	}()
	return done
}

// count takes over what the generator counted.
func (s *Sample) count(t *apiv1.GeneratorWindow, seconds float64) {
	for _, stream := range t.Streams {
		if stream.Name == victim {
			s.Rate = float64(stream.Received) / seconds
			s.Delivered = float64(stream.Received) / float64(max(stream.Sent+stream.NoRoom, 1))
		} else {
			s.Attack += float64(stream.Sent) / seconds
			s.Passed += float64(stream.Received) / seconds
		}
	}
	s.P50 = measure.Percentiles(t.Latency).P50
}

// counters of the router.
type counters struct {
	drops     map[string]uint64 // of packets that came in by the attacker's port, by reason
	hostDrops map[string]uint64 // of those of the host that asks for the router's address
	dropped   uint64            // packets of all ports
	turns     map[uint64]uint64 // of the master, by their longest duration in ns
	loops     map[uint64]uint64 // of the worker, with packets, likewise
	waited    time.Duration     // for which the worker was ready but did not run
}

func (b *bed) counters(ctx context.Context) (c counters, err error) {
	list, err := api.Collect(ctx, b.Client(), apiv1.NewStatsClient, apiv1.StatsClient.Drops,
		&apiv1.DropListRequest{ByPort: true})
	if err != nil {
		return c, fmt.Errorf("drops: %w", err)
	}
	c.drops, c.hostDrops = map[string]uint64{}, map[string]uint64{}
	for _, d := range list {
		c.dropped += d.Packets
		switch d.Port {
		case attackPort:
			c.drops[d.Reason] += d.Packets
		case hostPort:
			c.hostDrops[d.Reason] += d.Packets
		}
	}
	status, err := api.Call(ctx, b.Client(), apiv1.NewSystemClient, apiv1.SystemService.GetStatus, &apiv1.Empty{})
	if err != nil {
		return c, fmt.Errorf("status: %w", err)
	}
	c.turns = map[uint64]uint64{}
	for _, t := range status.GetMaster().GetTimes().GetBuckets() {
		c.turns[t.ToNs] = t.Loops
	}
	latency, err := api.Collect(ctx, b.Client(), apiv1.NewWorkersClient, apiv1.WorkersClient.Latency,
		&apiv1.WorkerLatencyRequest{})
	if err != nil {
		return c, fmt.Errorf("loops: %w", err)
	}
	c.loops = map[uint64]uint64{}
	for _, l := range latency {
		for _, t := range l.GetBusy().GetBuckets() {
			c.loops[t.ToNs] += t.Loops
		}
	}
	text, err := procfs.Root(b.options.Root).Read(procfs.ThreadDir(b.PID(), int(b.worker)) + "/schedstat")
	_, delay, _ := procfs.ParseSchedstat(text) // 0 if the kernel does not count it
	c.waited = time.Duration(delay)
	return c, err
}

// longestTurn returns the upper end of the longest class in which the master had a turn, in milliseconds.
func longestTurn(before, after map[uint64]uint64) (ms float64) {
	for ns, n := range stat.GrownBy(after, before) {
		if n > 0 {
			ms = max(ms, float64(ns)/1e6)
		}
	}
	return ms
}

// longLoop returns the upper end of the class in which 99 of 100 loops of the worker have ended, in microseconds.
func longLoop(before, after map[uint64]uint64) float64 {
	grown := stat.GrownBy(after, before)
	var all, sum uint64
	for _, n := range grown {
		all += n
	}
	for _, ns := range slices.Sorted(maps.Keys(grown)) {
		if sum += grown[ns]; 100*sum >= 99*all {
			return float64(ns) / 1e3
		}
	}
	return 0
}

// callAPI calls the API until ctx ends, and notes the longest call.
func (b *bed) callAPI(ctx context.Context, s *Sample) <-chan error {
	done := make(chan error, 1)
	go func() {
		var err error
		for ctx.Err() == nil && err == nil {
			began := time.Now()
			_, err = api.Collect(context.WithoutCancel(ctx), b.Client(), apiv1.NewPortsClient, apiv1.PortsClient.List,
				&apiv1.PortListRequest{})
			s.CallMS = max(s.CallMS, time.Since(began).Seconds()*1e3)
			_ = wait.For(ctx, callGap)
		}
		done <- err
	}()
	return done
}

// askForMAC asks for the router's MAC address during a trial, and counts the answers. The router makes an
// answer of the request, so the probe is still behind it.
func (b *bed) askForMAC(ctx context.Context, s *Sample) <-chan error {
	done := make(chan error, 1)
	n := (requests + b.options.Repetitions - 1) / b.options.Repetitions
	go func() {
		t, err := b.host.Run(ctx, &apiv1.GeneratorTrial{Packets: uint64(n), DrainMs: answerMS, RestUs: 200,
			PacketsPerSecond: float64(n) / b.options.Trial.Seconds()}, nil)
		if err == nil {
			s.Asked, s.Answered = int(t.Sent), int(t.Received)
		}
		done <- err
	}()
	return done
}
