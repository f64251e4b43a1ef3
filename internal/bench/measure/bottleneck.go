// SPDX-License-Identifier: Apache-2.0
package measure

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/bench/router"
)

// Values of result.Bottleneck.Component.
const (
	generator  = "generator"
	routerPart = "router"
	sink       = "sink"
	machine    = "machine" // other work had the CPUs
)

// Saturated sums the counters of generator and router over the saturated trials.
type Saturated struct {
	total    apiv1.GeneratorWindow // sums only
	tscHz    uint64
	workers  int
	counters router.Counters // growth
	waited   map[int]time.Duration
}

// NewSaturated returns an empty sum for a router with so many forwarding threads.
func NewSaturated(workers int) *Saturated {
	return &Saturated{workers: workers, counters: router.Counters{Drops: map[string]uint64{}},
		waited: map[int]time.Duration{}}
}

// Add a trial.
func (s *Saturated) Add(o *Outcome) {
	for _, w := range o.Windows {
		s.total.Seconds += w.Seconds
		s.total.Sent += w.Sent
		s.total.Received += w.Received
		s.total.NoRoom += w.NoRoom
		s.total.BusyCycles += w.BusyCycles
		s.total.Cycles += w.Cycles
	}
	s.total.Lost += o.Total.Lost
	s.tscHz = o.Total.TscHz
	for _, d := range grownDrops(o.Before.Drops, o.After.Drops) {
		s.counters.Drops[d.Reason] += d.Frames
	}
	s.counters.Busy += o.After.Busy - o.Before.Busy
	s.counters.Idle += o.After.Idle - o.Before.Idle
	for cpu, t := range o.Waited {
		s.waited[cpu] += t
	}
	s.addNodes(o)
}

func (s *Saturated) addNodes(o *Outcome) {
	was := map[string]router.NodeCounter{}
	for _, n := range o.Before.Nodes {
		was[n.Name] = n
	}
	sum := map[string]int{}
	for i, n := range s.counters.Nodes {
		sum[n.Name] = i
	}
	for _, n := range o.After.Nodes {
		b := was[n.Name]
		grown := router.NodeCounter{Name: n.Name, Calls: n.Calls - b.Calls, Packets: n.Packets - b.Packets,
			Cycles: n.Cycles - b.Cycles}
		i, ok := sum[n.Name]
		if !ok {
			s.counters.Nodes = append(s.counters.Nodes, grown)
			continue
		}
		have := &s.counters.Nodes[i]
		have.Calls += grown.Calls
		have.Packets += grown.Packets
		have.Cycles += grown.Cycles
	}
}

// Nodes of the router's graph and what they cost.
func (s *Saturated) Nodes() []result.Node { return router.Nodes(router.Counters{}, s.counters) }

// Drops are the router's drop counters.
func (s *Saturated) Drops() []result.DropCounter { return grownDrops(nil, s.counters.Drops) }

const (
	someLoss    = 0.01 // share of the frames sent whose loss limits the rate
	mostlyBusy  = 0.9  // share of its time: a part that is busier than this is the limit
	someWaiting = 0.02
	mostWaiting = 0.25 // share of the time: a poller that lost more of its CPU shows the machine's limit, not its own
)

// Bottleneck says which part limited the rate. A router that does not report its load counts as busy when the
// generator has to wait for room in its queue.
func (s *Saturated) Bottleneck() result.Bottleneck {
	if s.total.Sent == 0 || s.total.Seconds == 0 {
		return result.Bottleneck{Component: routerPart, Why: "it took no frames"}
	}
	mpps := float64(s.total.Received) / s.total.Seconds / 1e6
	waiting, load := idle(&s.total), s.routerBusy()
	says := func(component, format string, args ...any) result.Bottleneck {
		return result.Bottleneck{Component: component, Why: fmt.Sprintf("at %.2f Mpps on average ", mpps) +
			fmt.Sprintf(format, args...) + s.disturbed()}
	}
	switch {
	case s.mostWaited() > mostWaiting:
		return says(machine, "its CPUs were not free for the measurement")
	case float64(s.total.Lost) > someLoss*float64(s.total.Sent):
		return s.losing(says)
	case load >= mostlyBusy:
		return says(routerPart, "it was busy %.0f %% of the time, the generator had %.0f %% to spare", 100*load,
			100*waiting)
	case waiting >= 1-mostlyBusy:
		return says(routerPart, "its queue was full, and the generator waited %.0f %% of the time", 100*waiting)
	case load > 0:
		return says(generator, "it was busy %.0f %% of the time, the router only %.0f %%", 100*(1-waiting), 100*load)
	}
	return says(generator, "it had only %.0f %% of its time to spare; the router's load is not known", 100*waiting)
}

// disturbed names the CPUs that other work had for long enough to matter.
func (s *Saturated) disturbed() string {
	text := ""
	for _, cpu := range slices.Sorted(maps.Keys(s.waited)) {
		if share := s.waitedShare(cpu); share >= someWaiting {
			text += fmt.Sprintf("; other work had CPU %d for %.0f %% of the time", cpu, 100*share)
		}
	}
	return text
}

// mostWaited is the share of its time that the poller waited which waited the longest.
func (s *Saturated) mostWaited() (most float64) {
	for cpu := range s.waited {
		most = max(most, s.waitedShare(cpu))
	}
	return most
}

func (s *Saturated) waitedShare(cpu int) float64 {
	return min(1, s.waited[cpu].Seconds()/s.total.Seconds) // it may have waited between the windows, too
}

// losing names the part that lost frames which the router had taken: the sink, when most of them did not fit its queue.
func (s *Saturated) losing(says func(component, format string, args ...any) result.Bottleneck) result.Bottleneck {
	full, reasons := uint64(0), []string{}
	for _, d := range s.Drops() {
		reasons = append(reasons, fmt.Sprintf("%s %d", d.Reason, d.Frames))
		if strings.Contains(strings.ToLower(d.Reason), "tx") {
			full += d.Frames
		}
	}
	told, share := strings.Join(first(reasons, maxReasons), ", "), 100*float64(s.total.Lost)/float64(s.total.Sent)
	switch {
	case 2*full > s.total.Lost:
		return says(sink, "its queue was full for %.1f %% of the frames that the router took: %s", share, told)
	case told == "":
		told = "no counter has them"
	}
	return says(routerPart, "it lost %.1f %% of the frames that it took: %s", share, told)
}

// routerBusy is the share of the saturated time that the router spent in polls with packets; 0: it does not report
// them. Idle polls are not used, because some of them are from before or after that time.
func (s *Saturated) routerBusy() float64 {
	available := s.total.Seconds * float64(s.tscHz) * float64(s.workers)
	if available == 0 {
		return 0
	}
	return min(1, float64(s.counters.Busy)/available)
}
