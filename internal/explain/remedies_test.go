// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/explain/host"
	"github.com/corelane/corelane/internal/explain/kernel"
)

// What has ended, or may no longer run on the worker's CPU, gets no command: nothing is to do about it.
func TestRemediesOfWhatIsGone(t *testing.T) {
	stop := kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhyStopped, NS: 500 * msec, Count: 1, Longest: 500 * msec}
	ran := func(id int, name string) kernel.Sum {
		return kernel.Sum{Kind: kernel.KindThread, Why: kernel.WhyTaken, ID: id, PID: id, Name: name, NS: 2 * sec,
			Count: 100, Longest: 40 * msec}
	}
	for _, c := range []struct {
		name, note, fix string
		with            func(e *Evidence)
	}{
		{"a tracer that has ended", "gdb (78) has ended: nothing is to do", "", func(e *Evidence) {
			e.sum(stop)
			e.sum(kernel.Sum{Kind: kernel.KindTraced, ID: 78, PID: 78, Name: "gdb", Count: 4})
			e.Host.Threads[78] = host.Thread{TID: 78, PID: 78, Name: "gdb", Ended: true}
		}},
		{"a tracer that is not known any more", "gdb (78) has ended: nothing is to do", "", func(e *Evidence) {
			e.sum(stop)
			e.sum(kernel.Sum{Kind: kernel.KindTraced, ID: 78, PID: 78, Name: "gdb", Count: 4})
		}},
		{"a tracer that ended and left the process stopped", "gdb (78) has ended", "kill -CONT 100", func(e *Evidence) {
			e.sum(stop)
			e.sum(kernel.Sum{Kind: kernel.KindTraced, ID: 78, PID: 78, Name: "gdb", Count: 4})
			e.Host.Worker = map[int]host.Thread{tid: {State: "T (stopped)"}}
		}},
		{"a tracer from before the window", "end gdb", "kill 78", func(e *Evidence) {
			e.sum(stop)
			e.Host.Worker = map[int]host.Thread{tid: {State: "t (tracing stop)", Tracer: 78}}
			e.Host.Threads[78] = host.Thread{TID: 78, PID: 78, Name: "gdb"}
		}},
		{"a sender that has ended", "kill (77) has ended: nothing is to do", "", func(e *Evidence) {
			e.sum(stop)
			e.sum(kernel.Sum{Kind: kernel.KindSignal, Why: 19, ID: 77, PID: 77, Name: "kill", Count: 1})
		}},
		{"what froze the group has ended", "docker (79) has ended: nothing is to do", "", func(e *Evidence) {
			e.sum(kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhyFrozen, NS: 500 * msec, Count: 1,
				Longest: 500 * msec})
			e.sum(kernel.Sum{Kind: kernel.KindFreezer, ID: 79, PID: 79, Name: "docker", Count: 2})
		}},
		{"a move that is undone", "taskset (900) has ended: nothing is to do", "", func(e *Evidence) {
			e.sum(kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhyMoved, NS: sec, Count: 1, Longest: sec})
			e.sum(kernel.Sum{Kind: kernel.KindAffinity, ID: 900, PID: 900, Name: "taskset", Count: 1})
		}},
		{"a thread that somebody moved away meanwhile", "may no longer run on CPU 1: nothing is to do", "",
			func(e *Evidence) {
				e.sum(ran(9, "dd"))
				e.Host.Threads[9] = host.Thread{TID: 9, PID: 9, Name: "dd", Allowed: cpuset.Of(0)}
			}},
		{"an interrupt that somebody moved away meanwhile", "may no longer go to CPU 1: nothing is to do", "",
			func(e *Evidence) {
				e.sum(kernel.Sum{Kind: kernel.KindIRQ, ID: 36, Name: "nvme0q1", NS: sec, Count: 1e5, Longest: msec})
				e.Host.IRQs = map[int]IRQPlace{36: {"0", "0"}}
			}},
		{"KSM", "a setting of the kernel", "echo 0 > /sys/kernel/mm/ksm/run", func(e *Evidence) {
			e.sum(ran(37, "ksmd"))
			e.Host.Threads[37] = host.Thread{TID: 37, PID: 37, Name: "ksmd", Kernel: true, Allowed: cpuset.Of(1)}
		}},
		{"a thread of the kernel that may be moved", "", "taskset -pc 0 38", func(e *Evidence) {
			e.sum(ran(38, "khugepaged"))
			e.Host.Threads[38] = host.Thread{TID: 38, PID: 38, Name: "khugepaged", Kernel: true, Allowed: cpuset.Of(1)}
		}},
		{"a thread of the kernel that is bound to its CPU", "bound to its CPU", "", func(e *Evidence) {
			e.sum(ran(39, "kworker/1:1"))
			e.Host.Threads[39] = host.Thread{TID: 39, PID: 39, Name: "kworker/1:1", Kernel: true, Fixed: true,
				Allowed: cpuset.Of(1)}
		}},
		{"faults that no setting causes", "end what unmaps its memory", "", func(e *Evidence) {
			e.sum(kernel.Sum{Kind: kernel.KindFault, NS: 2 * sec, Count: 2e6, Longest: msec})
			e.Host.Unmapping = nil
		}},
	} {
		e := loaded(1)
		c.with(e)
		if got := Explain(*e).Causes[0]; got.Fix != c.fix || !strings.Contains(got.FixNote, c.note) {
			t.Errorf("%s: %q, %q; want %q, %q", c.name, got.FixNote, got.Fix, c.note, c.fix)
		}
	}
}

// The details of suspects say whether they are still there, and those of a program that acts once are read, too.
func TestLookUp(t *testing.T) {
	root := t.TempDir()
	for tid, state := range map[int]string{5: "S (sleeping)", 6: "Z (zombie)", 9: "R (running)"} {
		dir := filepath.Join(root, "proc", strconv.Itoa(tid))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("Name:\tx\nTgid:\t%d\nState:\t%s\n", tid, state)
		if err := os.WriteFile(filepath.Join(dir, "status"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := loaded(1)
	e.Host.Threads = map[int]host.Thread{5: {TID: 5}, 6: {TID: 6}, 7: {TID: 7, Name: "met"}}
	e.Host.Worker = map[int]host.Thread{tid: {Tracer: 9}}
	for i := range 2 * mostSuspects { // others ran for longer than a program that sends one signal
		e.sum(kernel.Sum{Kind: kernel.KindThread, ID: 1000 + i, PID: 1000 + i, NS: sec / 4, Count: 9})
	}
	e.sum(kernel.Sum{Kind: kernel.KindSignal, ID: 8, PID: 8, Count: 1})
	e.fillSuspects(host.Root(root))
	for tid, alive := range map[int]bool{5: true, 6: false, 7: false, 8: false, 9: true} {
		if e.alive(tid) != alive {
			t.Errorf("thread %d: %+v", tid, e.Host.Threads[tid])
		}
	}
	if e.Host.Threads[7].Name != "met" || !slices.Contains(e.suspects()[:4], 8) {
		t.Errorf("%+v; the sender is not among %v", e.Host.Threads[7], e.suspects()[:4])
	}
}

// randomEvidence mixes some of the known disturbances, and says at random who is still there and what has changed.
func randomEvidence(r *rand.Rand) *Evidence {
	e := loaded([]float64{0, 0.3, 0.8, 1}[r.IntN(4)])
	for range 1 + r.IntN(3) {
		cases[r.IntN(len(cases))].with(e)
	}
	h := &e.Host
	h.Housekeeping = []string{"0", "0", "0,3", ""}[r.IntN(4)]
	sets := []cpuset.Set{{}, cpuset.Of(0), cpuset.Of(1), cpuset.Of(0, 1)}
	for _, s := range e.Trace.Sums[:min(len(e.Trace.Sums), 100)] {
		for _, id := range []int{s.ID, s.PID, s.Parent} {
			if _, known := h.Threads[id]; !known && id > 2 && r.IntN(2) == 0 {
				h.Threads[id] = host.Thread{TID: id, PID: max(s.PID, id), Name: s.Name, Kernel: r.IntN(4) == 0}
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(h.Threads)) {
		t := h.Threads[id]
		t.Ended, t.Allowed, t.Fixed = r.IntN(3) == 0, sets[r.IntN(len(sets))], t.Kernel && r.IntN(2) == 0
		h.Threads[id] = t
		if r.IntN(4) == 0 {
			delete(h.Threads, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(h.IRQs)) {
		h.IRQs[id] = IRQPlace{sets[r.IntN(len(sets))].String(), "1"}
	}
	if r.IntN(2) == 0 {
		h.Unmapping = nil
	}
	for i := range e.Rings {
		e.Rings[i].Size = []uint32{64, 256, 32768}[r.IntN(3)]
	}
	for i := range e.Ports {
		p := &e.Ports[i]
		p.Hybrid, p.FlowLimit, p.UnresolvedRate = r.IntN(2) == 0, []uint32{0, 500, 1 << 20}[r.IntN(3)],
			[]uint32{0, 50, 1000}[r.IntN(3)]
	}
	for i := range e.Threads {
		e.Threads[i].Planned, e.Threads[i].Allowed = sets[r.IntN(3)].String(), sets[r.IntN(3)].String()
	}
	return e
}

// Each command of any evidence is for something of that evidence that is still there, and changes what is blamed.
func TestCommandsOfRandomEvidence(t *testing.T) {
	r, seen := rand.New(rand.NewPCG(3, 4)), map[string]int{}
	for i := range 3000 {
		e := randomEvidence(r)
		for _, c := range Explain(*e).Causes {
			for line := range strings.Lines(c.Fix) {
				form, err := checkCommand(e, &c, strings.TrimSpace(line))
				if err != nil {
					t.Fatalf("evidence %d, %s: %q: %v\n%+v", i, c.Kind, line, err, c)
				}
				seen[form]++
			}
		}
	}
	for _, f := range forms {
		if seen[f.pattern] == 0 {
			t.Errorf("no evidence gave a command of the form %s", f.pattern)
		}
	}
}

// form is a form of commands, and what has to be true of one for the evidence.
type form struct {
	pattern string
	check   func(e *Evidence, c *Cause, args []string) bool
}

var forms = []form{
	{`kill (\d+)`, func(e *Evidence, c *Cause, a []string) bool {
		pid := number(a[0])
		return e.mentions(pid) && pid != daemon && e.Host.Threads[pid].TID == pid && !e.Host.Threads[pid].Ended ||
			handicapped(e, "kill "+a[0])
	}},
	{`kill -CONT (\d+)`, func(e *Evidence, _ *Cause, a []string) bool {
		pid := number(a[0])
		for _, list := range e.Host.Readers {
			for _, t := range list {
				if t.PID == pid && t.State[0] == 'T' {
					return true
				}
			}
		}
		return pid == daemon && isStopped(e.Host.Worker[tid].State)
	}},
	{`taskset -pc (\S+) (\d+)`, func(e *Evidence, c *Cause, a []string) bool {
		id := number(a[1])
		for _, w := range e.Workers {
			if id == w.TID {
				return a[0] == strconv.Itoa(w.CPU) && !w.Ended
			}
		}
		own := e.ownThread(id) != nil && (e.ownThread(id).Allowed == "" || inList(e.ownThread(id).Allowed, c.CPU))
		return leaves(a[0], c.CPU) && (own || mayLeave(e, c, id))
	}},
	{`taskset -apc (\S+) (\d+)`, func(e *Evidence, c *Cause, a []string) bool {
		return leaves(a[0], c.CPU) && someMayLeave(e, c, number(a[1]))
	}},
	{`for pid in ([\d ]+); do taskset -apc (\S+) \$pid; done`, func(e *Evidence, c *Cause, a []string) bool {
		for _, pid := range strings.Fields(a[0]) {
			if !someMayLeave(e, c, number(pid)) {
				return false
			}
		}
		return leaves(a[1], c.CPU)
	}},
	{`corelane worker set (\d+) --idle spin`, func(e *Evidence, _ *Cause, a []string) bool {
		return number(a[0]) < len(e.Workers) && e.Workers[number(a[0])].Idle != "spin"
	}},
	{`corelane worker set (\d+) --cpu (\d+)`, func(e *Evidence, _ *Cause, a []string) bool {
		return number(a[0]) < len(e.Workers) && inList(e.Host.Housekeeping, number(a[1]))
	}},
	{`corelane worker set (\d+) --ring-size (\d+)`, func(e *Evidence, _ *Cause, a []string) bool {
		return slices.ContainsFunc(e.Rings, func(r Ring) bool {
			return r.To == number(a[0]) && int(r.Size) != number(a[1])
		})
	}},
	{`corelane worker add --cpu (\d+)`, func(e *Evidence, _ *Cause, a []string) bool {
		return inList(e.Host.Housekeeping, number(a[0]))
	}},
	{`corelane worker rebalance`, func(e *Evidence, _ *Cause, _ []string) bool { return len(e.Workers) > 1 }},
	{`corelane debug delay --worker (\d+) --us 0`, func(e *Evidence, _ *Cause, a []string) bool {
		return number(a[0]) < len(e.Workers) && e.Workers[number(a[0])].DelayUS > 0
	}},
	{`corelane port set (\S+) --disabled=false`, func(e *Evidence, _ *Cause, a []string) bool {
		return e.port(a[0]).Disabled
	}},
	{`corelane port set (\S+) --mode hybrid`, func(e *Evidence, _ *Cause, a []string) bool {
		return e.has(a[0]) && !e.port(a[0]).Hybrid
	}},
	{`corelane port set (\S+) --flow-limit (\d+)`, func(e *Evidence, _ *Cause, a []string) bool {
		was := e.port(a[0]).FlowLimit
		return e.has(a[0]) && (was == 0 || int(was) > number(a[1]))
	}},
	{`corelane flow flush --port (\S+)`, func(e *Evidence, _ *Cause, a []string) bool { return e.has(a[0]) }},
	{`corelane port set (\S+) --unresolved-rate (\d+)`, func(e *Evidence, _ *Cause, a []string) bool {
		was := e.port(a[0]).UnresolvedRate
		return e.has(a[0]) && (was == 0 || int(was) > number(a[1]))
	}},
	{`corelane port set (\S+) --source-check strict`, func(e *Evidence, _ *Cause, a []string) bool {
		return e.port(a[0]).GuestKnown
	}},
	{`ip link set dev (\S+) up`, func(e *Evidence, _ *Cause, a []string) bool {
		for _, l := range e.Host.Links {
			if l.Name == a[0] && !l.Enabled || l.Peer == a[0] && !l.PeerEnabled {
				return true
			}
		}
		return false
	}},
	{`echo (\S+) > /proc/irq/(\d+)/smp_affinity_list`, func(e *Evidence, c *Cause, a []string) bool {
		p, known := e.Host.IRQs[number(a[1])]
		return leaves(a[0], c.CPU) && (!known || p.Allowed == "" || inList(p.Allowed, c.CPU))
	}},
	{`echo \S+ > /sys/class/net/(\S+)/queues/(\S+)/rps_cpus`, func(e *Evidence, c *Cause, a []string) bool {
		return slices.Contains(e.Host.RPS[c.CPU], a[0]+"/"+a[1])
	}},
	{`for f in /sys/class/net/(\S+)/queues/rx-\*/rps_cpus; do echo \S+ > \$f; done`,
		func(e *Evidence, c *Cause, a []string) bool { return receivedOn(e, c.CPU) == a[0] }},
	{`for f in /sys/block/\*/queue/rq_affinity; do echo 2 > \$f; done`,
		func(_ *Evidence, c *Cause, _ []string) bool { return c.Name == "BLOCK" }},
	{`echo [0-9a-f,]+ > /sys/devices/virtual/workqueue/cpumask`, func(e *Evidence, c *Cause, _ []string) bool {
		return e.Host.Threads[c.TID].Kernel && strings.HasPrefix(c.Name, "kworker/u")
	}},
	{`(sysctl kernel.numa_balancing=0)`, func(e *Evidence, _ *Cause, a []string) bool {
		return slices.Contains(e.Host.Unmapping, a[0])
	}},
	{`echo (?:max|-1) > (\S+)/cpu\.\S+`, func(e *Evidence, _ *Cause, a []string) bool {
		return e.Host.Cgroup.Dir == a[0] && e.Host.Cgroup.QuotaUS > 0
	}},
	{`echo (\S+) > (\S+/cpuset.cpus)`, func(e *Evidence, c *Cause, a []string) bool {
		return a[1] == e.Host.CpusetFile && inList(a[0], c.CPU) && !e.Host.Cpuset.Has(c.CPU)
	}},
	{`echo (\d) > (\S+/cgroup.freeze)`, func(e *Evidence, _ *Cause, a []string) bool {
		return a[0] == e.Host.ThawText && a[1] == e.Host.Thaw
	}},
	{`cat /proc/(\d+)/stack`, func(e *Evidence, _ *Cause, a []string) bool { return number(a[0]) == e.Daemon }},
	{`journalctl -u corelaned -n 20`, func(e *Evidence, _ *Cause, _ []string) bool { return e.Silent }},
}

// checkCommand returns the form of a command, and what is wrong with it for the evidence.
func checkCommand(e *Evidence, c *Cause, line string) (string, error) {
	for _, f := range forms {
		if m := regexp.MustCompile("^" + f.pattern + "$").FindStringSubmatch(line); m != nil {
			if !f.check(e, c, m[1:]) {
				return f.pattern, fmt.Errorf("what it is for is not there, or it changes nothing")
			}
			return f.pattern, nil
		}
	}
	return "", fmt.Errorf("the command has an unknown form")
}

// mentions says whether the kernel's events name a process.
func (e *Evidence) mentions(pid int) bool {
	return slices.ContainsFunc(e.Trace.Sums, func(s kernel.Sum) bool { return s.PID == pid || s.Parent == pid })
}

func (e *Evidence) has(port string) bool { return e.port(port).Device != "" }

func handicapped(e *Evidence, command string) bool {
	return slices.ContainsFunc(e.Host.Handicaps, func(h host.Handicap) bool { return h.Fix == command })
}

// leaves says whether a list of CPUs is one, without the worker's.
func leaves(list string, cpu int) bool {
	set, err := cpuset.Parse(list)
	return err == nil && !set.Empty() && !set.Has(cpu)
}

func mayLeave(e *Evidence, c *Cause, tid int) bool {
	t, known := e.Host.Threads[tid]
	return known && !t.Ended && !t.Fixed && (t.Allowed.Empty() || t.Allowed.Has(c.CPU))
}

// someMayLeave says whether a process is there, and one of the threads that are blamed may run on the worker's CPU.
func someMayLeave(e *Evidence, c *Cause, pid int) bool {
	if t, known := e.Host.Threads[pid]; !known || t.Ended || pid == daemon {
		return false
	}
	return mayLeave(e, c, pid) || slices.ContainsFunc(c.members, func(m member) bool {
		return m.pid == pid && mayLeave(e, c, m.tid)
	})
}
