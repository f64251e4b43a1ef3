// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"strings"
	"testing"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/explain/host"
)

// Without kernel events the counters are used, and the report says that the evidence is weaker.
func TestCountersAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		load float64
		with func(e *Evidence)
		kind Kind
		who  string
	}{
		{"a hog", 1, func(e *Evidence) {
			e.Host.Waited[tid] = 5 * sec
			e.Host.Tasks[hog] = host.Task{TID: hog, PID: hog, Name: "stress", LastCPU: 1, Ticks: 480}
			e.Host.Tasks[hog+1] = host.Task{TID: hog + 1, PID: hog + 1, Name: "other", LastCPU: 0, Ticks: 900}
			e.Host.Tasks[tid] = host.Task{TID: tid, PID: daemon, Name: "pmd-fwd-0", LastCPU: 1, Ticks: 500}
		}, ForeignThread, "stress"},
		{"its own thread", 1, func(e *Evidence) {
			e.Host.Waited[tid] = 5 * sec
			e.Host.Tasks[102] = host.Task{TID: 102, PID: daemon, Name: "control", LastCPU: 1, Ticks: 480}
		}, OwnThread, "control"},
		{"ksoftirqd", 1, func(e *Evidence) {
			e.Host.Waited[tid] = 5 * sec
			e.Host.Tasks[20] = host.Task{TID: 20, PID: 20, Name: "ksoftirqd/1", LastCPU: 1, Ticks: 480}
			e.Host.Softirqs = []host.Line{{Label: "NET_RX", Counts: map[int]int64{1: 5000}}}
		}, Softirq, "NET_RX"},
		{"threads that have ended", 1, func(e *Evidence) { e.Host.Waited[tid] = 5 * sec }, Gap, "ended threads"},
		{"an interrupt", 1, func(e *Evidence) {
			e.Host.Ticks = map[int]host.Ticks{1: {IRQ: 200}}
			e.Host.Interrupts = []host.Line{{Label: "36", Name: "nvme0q1", Counts: map[int]int64{1: 1e6}},
				{Label: "LOC", Counts: map[int]int64{1: 1000}}}
		}, IRQ, "nvme0q1"},
		{"shootdowns", 1, func(e *Evidence) {
			e.Host.Ticks = map[int]host.Ticks{1: {IRQ: 200}}
			e.Host.Interrupts = []host.Line{{Label: "TLB", Counts: map[int]int64{1: 1e6}}}
		}, TLBShootdown, "TLB flush"},
		{"softirqs", 1, func(e *Evidence) {
			e.Host.Ticks = map[int]host.Ticks{1: {Softirq: 300}}
			e.Host.Softirqs = []host.Line{{Label: "NET_RX", Counts: map[int]int64{1: 5000}},
				{Label: "TIMER", Counts: map[int]int64{1: 9000}}}
		}, Softirq, "NET_RX"},
		{"a quota", 1, func(e *Evidence) { e.quota(5 * sec) }, CgroupQuota, "/router"},
		{"a stop", 0.3, func(e *Evidence) {
			e.Workers[0].LongLoops = []LongLoop{{NS: 50 * msec, Taken: true}}
		}, Stopped, "signal"},
		{"page faults", 1, func(e *Evidence) {
			e.Host.Tasks[tid] = host.Task{TID: tid, LastCPU: 1, Minor: 2e6}
		}, PageFaults, "page faults"},
		{"nothing", 0.3, func(*Evidence) {}, Nothing, "input"},
		{"overload", 1, func(*Evidence) {}, Overload, "pmd"},
	} {
		e := loaded(c.load)
		e.Trace, e.NoTrace = nil, "not permitted"
		c.with(e)
		r := Explain(*e)
		first := r.Causes[0]
		if first.Kind != c.kind || !strings.Contains(first.Name, c.who) {
			t.Errorf("%s: %s %q, want %s %q; %s", c.name, first.Kind, first.Name, c.kind, c.who, r.Verdict)
		}
		if first.Grade == Seen || r.Tracing || !strings.Contains(strings.Join(r.Unobserved, "\n"), "not permitted") {
			t.Errorf("%s: the report does not say that the evidence is weaker: %s, %v", c.name, first.Grade,
				r.Unobserved)
		}
	}
}

// What a worker dropped are packets that it received: no polls without a buffer, and no copies for mirrors.
func TestDroppedPackets(t *testing.T) {
	drops := []*apiv1.WorkerDrop{{Reason: "no_route", Packets: 7}, {Reason: noBuffer, Packets: 100},
		{Reason: "mirror_unresolved", Packets: 1000}}
	now := &apiv1.Worker{State: &apiv1.WorkerState{DroppedPackets: 1107, Drops: drops}}
	was := &apiv1.Worker{State: &apiv1.WorkerState{}}
	if w := workerBetween(was, now, &snapshot{}, &snapshot{}); w.Dropped != 7 || w.Drops["mirror_unresolved"] != 1000 {
		t.Errorf("%+v", w)
	}
	e := loaded(0.3)
	e.Ports[0].Drops["mirror_unresolved"] = 10e6
	const title = "mirrors lost their copies of packets with reason mirror_unresolved, not the packets themselves"
	if c := Explain(*e).Causes[0]; c.Title != title {
		t.Error(c.Title)
	}
}
