// SPDX-License-Identifier: Apache-2.0
package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/procfs"
	"github.com/corelane/corelane/internal/topology"
)

const groupState = "Isolation"

var stateRules = []rule{
	{id: "isolation.intent", group: groupState, title: "The intended CPUs are known",
		check:  checkIntent,
		source: "plan, or the machine itself",
		why:    "Every other check compares the machine with these CPUs."},
	{id: "isolation.state", group: groupState, title: "Isolation is not partial", workers: true,
		check:  checkPartial,
		source: vrouterSpec + ", section 15; measured again in docs/cores.md",
		fixes:  []string{"corelane cores apply {plan}   # isolates all of the workers' CPUs"},
		why: "What is kept off some CPUs runs on the others. If workers are among those, the host's load " +
			"concentrates on the CPUs " +
			"that forward: a vRouter forwarded 2.256 Mpps per core without isolation, 0.165 with partial and 2.294 " +
			"with full isolation."},
}

func checkIntent(v *view, r *result) {
	text := fmt.Sprintf("%s: workers' CPUs: %s; CPUs to isolate: %s; the host's CPUs: %s", v.in.From,
		orNone(v.in.Workers), orNone(v.in.Isolated), orNone(v.in.Host))
	if !v.in.Planned {
		text += "; no plan was given, so this is derived from the machine itself"
	}
	r.pass("%s", text)
	if v.in.Workers.Empty() {
		r.unknown("no worker's CPU is known: only settings of the whole machine are checked; --plan names them")
	}
	for _, u := range v.m.Unread {
		r.unknown("%s: %s", u.Path, u.Why)
	}
}

// signs of a partly isolated machine.
type signs struct {
	means   []string   // mechanisms that isolate CPUs here
	covered cpuset.Set // CPUs that these keep the host off
	open    cpuset.Set // workers' CPUs that these leave out
	own     int        // service and control threads of the data plane that may run on workers
	float   int        // threads of other programs that may run on workers' CPUs
	load    string     // set when their load on a worker's CPU is higher than on the host's
}

// checkPartial names the state: full, none, or partial, when isolation of other CPUs pushes load onto workers' CPUs.
func checkPartial(v *view, r *result) {
	s := v.signs()
	switch {
	case v.isolated.Empty() && !s.open.Empty() && s.open.Within(s.covered) && s.load == "":
		r.warn("isolation of workers' CPUs %s depends on others: %s; the scheduler still balances these CPUs", s.open,
			strings.Join(s.means, "; "))
	case !s.open.Empty() && len(s.means) > 0:
		r.fail("partial isolation: %s, but workers' CPUs %s are left out: all threads that were moved away may run "+
			"there",
			strings.Join(s.means, "; "), s.open)
	case !s.open.Empty() && s.load != "":
		r.fail("unintended partial isolation: nothing keeps the host off CPUs %s, and they carry more of its load "+
			"than its own CPUs",
			s.open)
	case !s.open.Empty():
		r.warn("no isolation: nothing keeps the host off CPUs %s; the rate depends on the host's load", s.open)
	case s.own > 0:
		r.fail("partial isolation: workers' CPUs %s are isolated, but not from the data plane's own threads",
			v.in.Workers)
	case s.load != "":
		r.fail("partial isolation: workers' CPUs %s are isolated, but other programs run there", v.in.Workers)
	default:
		r.pass("full isolation of workers' CPUs: %s", strings.Join(s.means, "; "))
	}
	r.items[0].about("isolation")
	partial := r.items[0].Verdict == Fail
	if !partial && s.open.Empty() {
		return
	}
	verdict := Warn
	if partial {
		verdict = Fail
	}
	if s.own > 0 {
		r.add(verdict, "%d service and control threads of the data plane may run on workers' CPUs", s.own)
	}
	if s.float > 0 {
		r.add(verdict, "%d threads of other programs may run on workers' CPUs", s.float)
	}
	if s.load != "" {
		r.add(verdict, "%s", s.load)
	}
	if left := v.online.Without(s.covered); partial && !s.covered.Empty() && !s.open.Empty() {
		r.add(verdict, "threads that are kept off CPUs %s have %d CPUs left (%s), of which %d forward", s.covered,
			left.Len(), left,
			left.And(v.in.Workers).Len())
	}
	if partial {
		r.add(verdict, "cost in a published measurement: 2.256 -> 0.165 Mpps per core (93 %% of the packets); "+
			"measure it here: corelane lab intrude")
	}
}

func (v *view) signs() signs {
	s := signs{covered: v.isolated}
	say := func(cpus cpuset.Set, format string, args ...any) {
		if !cpus.Empty() {
			s.means = append(s.means, fmt.Sprintf(format, args...))
		}
	}
	say(v.m.Kernel.Isolated, "isolcpus isolates CPUs %s", v.m.Kernel.Isolated)
	say(partitioned(v.m), "cgroup partitions isolate CPUs %s", partitioned(v.m))
	if tuned, err := v.list(v.m.Services.TunedVariables["isolated_cores"]); err == nil && v.m.Services.Tuned != "" {
		s.covered = s.covered.Or(tuned)
		say(tuned, "TuneD keeps threads off CPUs %s", tuned)
	}
	if keep := v.m.Services.SystemdAffinity; !keep.Empty() {
		say(keep, "systemd starts services on CPUs %s", keep)
		s.covered = s.covered.Or(v.online.Without(keep))
	}
	s.open = v.in.Workers.Without(v.isolated)
	for i := range v.m.Threads {
		switch t := &v.m.Threads[i]; {
		case v.mayBeThere(t) || t.Kernel:
		case v.own[t.PID]:
			s.own++
		case !t.Allowed.Within(v.in.Workers): // threads.foreign reports threads that have no other CPU
			s.float++
		}
	}
	s.load = v.pileUp()
	return s
}

// pileUp compares how much CPU time unpinned threads used on a worker's CPU and on a CPU of the host. It attributes a
// thread's time to the CPU on which the thread ran last, which is an approximation.
func (v *view) pileUp() string {
	ticks := map[int]int64{}
	who := map[int]*topology.Thread{}
	for i := range v.m.Threads {
		t := &v.m.Threads[i]
		if t.Kernel || IsWorker(t) || t.Allowed.Len() < 2 {
			continue
		}
		n := v.busy(t)
		if ticks[t.LastCPU] += n; n > 0 && (who[t.LastCPU] == nil || v.busy(who[t.LastCPU]) < n) {
			who[t.LastCPU] = t
		}
	}
	hosts := v.in.Host.And(v.online).IDs()
	if len(hosts) == 0 || len(ticks) == 0 {
		return ""
	}
	var host int64
	for _, id := range hosts {
		host += ticks[id]
	}
	mean := host / int64(len(hosts))
	workers := v.in.Workers.IDs()
	slices.SortFunc(workers, func(a, b int) int { return int(ticks[b] - ticks[a]) })
	worst := workers[0]
	if ticks[worst] <= mean || ticks[worst] < v.trifle() {
		return ""
	}
	return fmt.Sprintf("unpinned threads used %.1f s of CPU time on worker CPU %d, %.1f s on a CPU of the host; "+
		"the most active: %s", float64(ticks[worst])/procfs.TicksPerSecond, worst,
		float64(mean)/procfs.TicksPerSecond, describe(who[worst]))
}

// trifle is a negligible CPU time in ticks: 1 % of the observed time.
func (v *view) trifle() int64 {
	if l := v.m.Load; l != nil && l.Seconds > 0 {
		return max(2, int64(l.Seconds*procfs.TicksPerSecond/100))
	}
	return procfs.TicksPerSecond
}
