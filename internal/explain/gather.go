// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"maps"
	"os"
	"slices"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/explain/host"
	"github.com/corelane/corelane/internal/explain/kernel"
)

func targetsOf(workers []*apiv1.Worker) (out []kernel.Target) {
	for _, w := range workers {
		if tid := w.GetState().GetTid(); tid != 0 {
			out = append(out, kernel.Target{TID: int(tid), CPU: int(w.Cpu)})
		}
	}
	return out
}

func tidsOf(targets []kernel.Target) (out []int) {
	for _, t := range targets {
		out = append(out, t.TID)
	}
	return out
}

// fillHost adds what /proc and /sys counted between two snapshots, and the details of the suspects.
func (e *Evidence) fillHost(root host.Root, before, after *host.Snapshot) {
	h := &e.Host
	h.Hostname, _ = os.Hostname()
	h.Ticks, h.Interrupts, h.Softirqs = host.TicksBetween(before.CPUs, after.CPUs),
		host.LinesBetween(before.Interrupts, after.Interrupts), host.LinesBetween(before.Softirqs, after.Softirqs)
	h.Tasks = host.TasksBetween(before.Tasks, after.Tasks)
	h.Waited, h.Worker = map[int]int64{}, map[int]host.Thread{}
	for tid, ns := range after.Waited {
		h.Waited[tid] = max(0, ns-before.Waited[tid])
	}
	h.Cgroup = host.CgroupBetween(before.Cgroups, after.Cgroups)
	h.Unread = unique(h.Unread, before.Unread, after.Unread)
	online, mine := root.Online(), cpuset.Set{}
	for _, w := range e.Workers {
		mine = mine.Or(cpuset.Of(w.CPU))
	}
	h.Handicaps = root.Handicaps(e.Daemon, mine.IDs())
	e.fillBusy(root, mine, before, after)
	h.Online, h.Housekeeping = online.Len(), online.Without(mine).String()
	h.FaultNS, h.Unmapping = host.FaultNS(), root.Unmapping()
	h.Thaw, h.ThawText = root.Frozen(e.Daemon)
	h.CpusetFile, h.Cpuset = root.Cpuset(e.Daemon)
	for _, w := range e.Workers {
		if t, ok := root.Thread(w.TID); ok {
			h.Worker[w.TID] = t
		}
	}
	e.fillSuspects(root)
	e.fillReaders(root)
	e.fillLinks(root)
}

// fillBusy adds the handicaps that only a window shows.
func (e *Evidence) fillBusy(root host.Root, workers cpuset.Set, before, after *host.Snapshot) {
	if h, ok := root.Split(e.Daemon, after.Split-before.Split); ok {
		e.Host.Handicaps = append(e.Host.Handicaps, h)
	}
	for _, cpu := range workers.IDs() {
		if h, ok := host.Hot(cpu, after.Throttled[cpu]-before.Throttled[cpu]); ok {
			e.Host.Handicaps = append(e.Host.Handicaps, h)
		}
		if h, ok := root.BusySibling(cpu, e.Host.Ticks, e.Seconds); ok {
			e.Host.Handicaps = append(e.Host.Handicaps, h)
		}
	}
}

// fillReaders finds the processes at the other end of ports that refused packets, and of some that received none.
func (e *Evidence) fillReaders(root host.Root) {
	e.Host.Readers = map[string][]host.Thread{}
	silent, looked := 0, []int(nil)
	for _, p := range e.Ports {
		if p.Device != "memif" && p.Device != "vhost" || p.TxRefused == 0 && !p.silent() {
			continue
		}
		if p.TxRefused == 0 {
			if silent++; silent > mostSilent {
				continue
			}
		}
		pids, err := host.Peers(e.Daemon, p.Peer)
		if err != nil {
			e.Host.Unread = append(e.Host.Unread, err.Error())
		}
		for _, pid := range pids {
			if t, ok := root.Thread(pid); ok {
				e.Host.Readers[p.Name] = append(e.Host.Readers[p.Name], t)
				looked = append(looked, pid)
			}
		}
	}
	if looked != nil {
		e.Host.Shares = root.Shares(looked, lookTime)
	}
}

const lookTime = 100 * time.Millisecond

// fillSuspects reads the details of the threads and interrupts that took most of the workers' time.
func (e *Evidence) fillSuspects(root host.Root) {
	h := &e.Host
	h.IRQs, h.RPS = map[int]IRQPlace{}, map[int][]string{}
	if e.Silent {
		h.Threads[e.Daemon], _ = root.Thread(e.Daemon)
	}
	met := slices.Sorted(maps.Keys(h.Threads))
	e.lookUp(root, met, len(met))
	e.lookUp(root, e.suspects(), mostSuspects)
	for _, w := range e.Workers {
		if _, done := h.RPS[w.CPU]; !done {
			h.RPS[w.CPU] = root.RPS(w.CPU)
		}
		for _, l := range h.Interrupts {
			if irq := number(l.Label); irq > 0 && l.Counts[w.CPU] > 0 {
				allowed, effective := root.IRQAffinity(irq)
				h.IRQs[irq] = IRQPlace{allowed.String(), effective.String()}
			}
		}
	}
}

// lookUp reads the details of threads that are still there, of so many at most, and marks those that have ended.
func (e *Evidence) lookUp(root host.Root, tids []int, most int) {
	for _, tid := range tids {
		t, ok := root.Thread(tid)
		met, known := e.Host.Threads[tid]
		switch {
		case ok && most > 0:
			t.Ended = t.Dead()
			most--
		case !ok && known:
			t = met
			t.Ended = true
		default:
			continue
		}
		e.Host.Threads[tid] = t
	}
}

const (
	mostSuspects = 64
	mostSilent   = 16 // ports that received nothing and whose peers are looked up
)

// suspects returns the threads that may be to blame, those with the most time first.
func (e *Evidence) suspects() (out []int) {
	ns := map[int]int64{}
	if e.Trace != nil {
		for _, s := range e.Trace.Sums {
			switch s.Kind {
			case kernel.KindThread:
				ns[s.ID], ns[s.PID], ns[s.Parent] = ns[s.ID]+s.NS, ns[s.PID]+s.NS, ns[s.Parent]+s.NS
			case kernel.KindTLBSent, kernel.KindIPISent:
				ns[s.ID], ns[s.PID], ns[s.Parent] = ns[s.ID]+s.Count, ns[s.PID]+s.Count, ns[s.Parent]+s.Count
			case kernel.KindSignal, kernel.KindTraced, kernel.KindAffinity, kernel.KindFreezer: // they act on purpose
				for _, id := range []int{s.ID, s.PID, s.Parent} {
					ns[id] += e.ns()
				}
			}
		}
	}
	for _, w := range e.Host.Worker {
		ns[w.Tracer] += e.ns()
	}
	for _, t := range e.Host.Tasks {
		for _, w := range e.Workers {
			if e.Trace == nil && t.LastCPU == w.CPU && t.TID != w.TID {
				ns[t.TID] += t.Ticks * tickNS
			}
		}
	}
	for tid := range ns {
		if tid != 0 && ns[tid] > 0 {
			out = append(out, tid)
		}
	}
	slices.SortFunc(out, func(a, b int) int { return int(ns[b] - ns[a]) })
	return out
}

// unique returns each line once, in order.
func unique(lists ...[]string) (out []string) {
	for _, line := range slices.Concat(lists...) {
		if !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}
