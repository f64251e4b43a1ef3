// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/explain/host"
	"github.com/corelane/corelane/internal/explain/kernel"
)

const (
	sec    = 1_000_000_000
	msec   = 1_000_000
	tid    = 101
	hog    = 500
	daemon = 100
)

// loaded is 10 s of a worker on CPU 1 of two. It has packets in a share of its time; its core can do 10 M packets/s.
func loaded(share float64) *Evidence {
	const hz = 2e9
	packets := share * 10 * 10e6
	busy := share * 10 * hz
	w := Worker{ID: 0, TID: tid, CPU: 1, Thread: "pmd-fwd-0", Role: "forwarding", Idle: "spin", HzTSC: hz,
		Packets: uint64(packets), BusyLoops: uint64(packets / fullBatch), BusyCycles: uint64(busy),
		IdleCycles: uint64(10*hz - busy), Affinity: "1", LastCPU: 1, Drops: map[string]uint64{},
		Queues: []Queue{{Port: "uplink", Packets: uint64(packets)}},
		Nodes: []Node{{Name: "port_rx", Calls: 10, Packets: uint64(packets), Cycles: uint64(busy / 2)},
			{Name: "ip4_lookup", Calls: 5, Packets: uint64(packets), Cycles: uint64(busy / 2)}}}
	w.EmptyLoops = uint64((1 - share) * 10 * hz / 200)
	w.Loops = w.BusyLoops + w.EmptyLoops
	return &Evidence{Seconds: 10, Daemon: daemon, Workers: []Worker{w}, Trace: &kernel.Window{},
		Ports: []Port{{Name: "uplink", Device: "dpdk", RxPackets: uint64(packets), RingSize: 1024,
			Drops: map[string]uint64{}},
			{Name: "vm1", Device: "vhost", Peer: "/run/vm1.sock", TxPackets: uint64(packets),
				Drops: map[string]uint64{}}},
		Host: Host{Online: 2, Housekeeping: "0", Unmapping: []string{"sysctl kernel.numa_balancing=0"},
			Tasks: map[int]host.Task{}, Threads: map[int]host.Thread{},
			Waited: map[int]int64{}, FaultNS: 1000}}
}

func (e *Evidence) sum(s kernel.Sum) {
	s.CPU = 1
	if s.Kind != kernel.KindTLBSent && s.Kind != kernel.KindIPISent && s.Kind != kernel.KindSignal &&
		s.Kind != kernel.KindReceived && s.Kind != kernel.KindFreezer {
		s.Worker = tid
	}
	e.Trace.Sums = append(e.Trace.Sums, s)
}

// away adds n copies of a gap, spread over the window.
func (e *Evidence) away(n int, g kernel.Gap) {
	g.CPU, g.Worker = 1, tid
	for i := range n {
		g.From = int64(i) * 10 * sec / int64(n)
		e.Trace.Gaps = append(e.Trace.Gaps, g)
	}
}

func (e *Evidence) hog(share float64) {
	ns := int64(share * 10 * sec)
	e.sum(kernel.Sum{Kind: kernel.KindThread, Why: kernel.WhyTaken, ID: hog, PID: hog, Name: "stress", NS: ns,
		Count: ns / (4 * msec), Longest: 4 * msec})
	e.sum(kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhyTaken, NS: ns, Count: ns / (4 * msec), Longest: 4 * msec})
	e.away(int(ns/(4*msec)), kernel.Gap{NS: 4 * msec, Kind: kernel.KindThread, Why: kernel.WhyTaken, ID: hog, PID: hog,
		Name: "stress"})
	e.Host.Threads[hog] = host.Thread{TID: hog, PID: hog, Name: "stress", Command: "stress -c 1",
		Parent: "bash", Owner: "root", Allowed: cpuset.Of(0, 1), Cgroup: "/user"}
}

// threads adds n processes that are like s, one thread each.
func (e *Evidence) threads(n int, s kernel.Sum, ended bool) {
	s.Kind, s.Why, s.Count, s.Longest = kernel.KindThread, kernel.WhyTaken, 3, msec
	for i := range n {
		s.ID, s.PID = 1000+i, 1000+i
		e.sum(s)
		if !ended || i < 10 { // the details of the others were never read
			e.Host.Threads[s.ID] = host.Thread{TID: s.ID, PID: s.ID, Name: s.Name, Parent: s.ParentName, Ended: ended}
		}
	}
}

func (e *Evidence) stop() {
	e.sum(kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhyStopped, NS: 50 * msec, Count: 1, Longest: 50 * msec})
	e.sum(kernel.Sum{Kind: kernel.KindSignal, Why: 19, ID: 77, PID: 77, Name: "gdb", Count: 1})
	e.away(1, kernel.Gap{NS: 50 * msec, Kind: kernel.KindThread, Why: kernel.WhyStopped})
}

// repeated adds n processes that did something to the worker, and the one that started them.
func (e *Evidence) repeated(kind kernel.Kind, name string, n int) {
	e.Host.Threads[7] = host.Thread{TID: 7, PID: 7, Name: "sh", Allowed: cpuset.Of(0)}
	for i := range n {
		e.sum(kernel.Sum{Kind: kind, ID: 900 + i, PID: 900 + i, Name: name, Count: 1, Parent: 7, ParentName: "sh"})
	}
}

func (e *Evidence) quota(ns int64) {
	e.Host.Cgroup = host.Cgroup{Path: "/router", Dir: "/sys/fs/cgroup/cpu/router", Version: 1,
		QuotaUS: 50000, PeriodUS: 100000, Periods: 100, Throttled: 80, ThrottledNS: ns}
	if e.Trace != nil {
		e.sum(kernel.Sum{Kind: kernel.KindThread, Why: kernel.WhyTaken, ID: 0, NS: ns, Count: 80, Longest: 50 * msec})
		e.sum(kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhyTaken, NS: ns, Count: 80, Longest: 50 * msec})
	}
}

func (e *Evidence) second(share float64) {
	o := *loaded(share)
	w := o.Workers[0]
	w.ID, w.TID, w.CPU, w.Queues = 1, tid+50, 2, []Queue{{Port: "uplink", Index: 1, Packets: w.Packets}}
	e.Workers = append(e.Workers, w)
}

var cases = []struct {
	name string
	load float64
	with func(e *Evidence)
	kind Kind
	who  string // in the name of the first cause
	fix  string // in its command
}{
	{"a hog on the CPU", 0.3, func(e *Evidence) { e.hog(0.5) }, ForeignThread, "stress", "taskset -pc 0 500"},
	{"a hog without time left", 1, func(e *Evidence) { e.hog(0.5) }, ForeignThread, "stress", "taskset -pc 0 500"},
	{"a hog that has ended", 1, func(e *Evidence) {
		e.hog(0.5)
		delete(e.Host.Threads, hog)
	}, ForeignThread, "stress", ""},
	{"a hog whose details were read before it ended", 1, func(e *Evidence) {
		e.hog(0.5)
		t := e.Host.Threads[hog]
		t.Ended = true
		e.Host.Threads[hog] = t
	}, ForeignThread, "stress", ""},
	{"a kernel thread", 1, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindThread, Why: kernel.WhyTaken, ID: 9, PID: 9, Name: "kworker/u4:1",
			NS: 2 * sec, Count: 100, Longest: 40 * msec})
		e.Host.Threads[9] = host.Thread{TID: 9, PID: 9, Name: "kworker/u4:1", Kernel: true, Allowed: cpuset.Of(0, 1)}
	}, ForeignThread, "kworker", "workqueue/cpumask"},
	{"packet steering", 1, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindSoftirq, ID: 3, NS: 2 * sec, Count: 1e5, Longest: 3 * msec})
		e.Host.RPS = map[int][]string{1: {"eth0/rx-0"}}
	}, Softirq, "NET_RX", "echo 1 > /sys/class/net/eth0/queues/rx-0/rps_cpus"},
	{"softirqs of a device", 1, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindSoftirq, ID: 3, NS: 2 * sec, Count: 1e5, Longest: 3 * msec})
		e.Host.Interrupts = []host.Line{{Label: "40", Name: "eth0-rx-0", Counts: map[int]int64{1: 100000}}}
	}, Softirq, "NET_RX", "echo 0 > /proc/irq/40/smp_affinity_list"},
	{"softirqs of a disk", 1, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindSoftirq, ID: 4, NS: 2 * sec, Count: 1e5, Longest: 3 * msec})
		e.Host.Interrupts = []host.Line{{Label: "36", Name: "virtio1-req.0", Counts: map[int]int64{1: 100000}}}
	}, Softirq, "BLOCK", "/sys/block/*/queue/rq_affinity"},
	{"softirqs in ksoftirqd", 1, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindThread, Why: kernel.WhyTaken, ID: 20, PID: 20, Name: "ksoftirqd/1",
			NS: 3 * sec, Count: 1000, Longest: 4 * msec})
		e.Host.Softirqs = []host.Line{{Label: "NET_RX", Counts: map[int]int64{1: 5000}},
			{Label: "TIMER", Counts: map[int]int64{1: 9000}}}
		e.sum(kernel.Sum{Kind: kernel.KindReceived, ID: 7, Name: "veth7", Count: 1000})
	}, Softirq, "NET_RX", "/sys/class/net/veth7/"},
	{"an interrupt", 1, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindIRQ, ID: 36, Name: "nvme0q1", NS: sec, Count: 1e5, Longest: msec})
		e.Host.IRQs = map[int]IRQPlace{36: {"0-1", "1"}}
	}, IRQ, "nvme0q1", "echo 0 > /proc/irq/36/smp_affinity_list"},
	{"its own thread", 1, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindThread, Why: kernel.WhyTaken, ID: 102, PID: daemon, Name: "vhost-events",
			NS: 2 * sec, Count: 1000, Longest: 4 * msec})
		e.Threads = []OwnThreadState{{TID: 102, Name: "vhost-events", Role: "service", Planned: "0", Allowed: "1"}}
		e.Host.Threads[102] = host.Thread{TID: 102, PID: daemon, Name: "vhost-events", Allowed: cpuset.Of(1)}
	}, OwnThread, "vhost-events", "taskset -pc 0 102"},
	{"yielding to others", 0.3, func(e *Evidence) {
		e.Workers[0].Idle = "yield"
		e.sum(kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhyYield, NS: 6 * sec, Count: 2000, Longest: 4 * msec})
		e.sum(kernel.Sum{Kind: kernel.KindThread, Why: kernel.WhyYield, ID: hog, PID: hog, Name: "stress", NS: 6 * sec,
			Count: 2000, Longest: 4 * msec})
	}, Yield, "yield", "corelane worker set 0 --idle spin"},
	{"sleeping too long", 0.3, func(e *Evidence) {
		e.Workers[0].Idle, e.Workers[0].SleepMaxUS = "sleep", 100000
		e.sum(kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhySleep, NS: 5 * sec, Count: 100, Longest: 100 * msec})
		e.away(50, kernel.Gap{NS: 100 * msec, Kind: kernel.KindThread, Why: kernel.WhySleep})
	}, Yield, "sleep", "--idle spin"},
	{"sleeping as configured", 0.3, func(e *Evidence) {
		e.Workers[0].Idle, e.Workers[0].SleepMaxUS = "sleep", 50
		e.sum(kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhySleep, NS: 3 * sec, Count: 30000, Longest: 80_000})
	}, Nothing, "input", ""},
	{"a worker that waits for packets to wake it, while others run", 0.00001, func(e *Evidence) {
		e.Workers[0].Idle = "interrupt"
		e.sum(kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhySleep, NS: 9 * sec, Count: 90, Longest: 100 * msec})
		e.sum(kernel.Sum{Kind: kernel.KindThread, Why: kernel.WhySleep, ID: hog, PID: hog, Name: "stress", NS: 8 * sec,
			Count: 90, Longest: 100 * msec})
	}, Nothing, "input", ""},
	{"a reader that stopped", 0.3, func(e *Evidence) {
		e.Ports[1].TxRefused, e.Ports[1].TxPackets = 20e6, 10e6
		e.Ports[0].Drops["port_tx_full"] = 20e6
		e.Host.Readers = map[string][]host.Thread{"vm1": {{TID: 800, PID: 800, Name: "qemu", State: "T (stopped)"}}}
	}, ReaderStopped, "vm1", "kill -CONT 800"},
	{"a guest whose vCPU does not get its CPU", 0.3, func(e *Evidence) {
		e.Ports[1].TxRefused, e.Ports[1].TxPackets, e.Ports[0].Drops["port_tx_full"] = 20e6, 10e6, 20e6
		e.Host.Readers = map[string][]host.Thread{"vm1": {{TID: 800, PID: 800, Name: "qemu", State: "S (sleeping)"}}}
		e.Host.Shares = map[int][]host.Share{800: {{TID: 800, Name: "qemu"},
			{TID: 801, Name: "CPU 0/KVM", Ran: 0.3, Waited: 0.7, LastCPU: 3}}}
	}, ReaderStopped, "vm1", ""},
	{"a reader that stopped, and no time left", 1, func(e *Evidence) {
		e.Ports[1].TxRefused, e.Ports[1].TxPackets, e.Ports[0].Drops["port_tx_full"] = 90e6, 10e6, 90e6
	}, ReaderStopped, "vm1", ""},
	{"many short interrupts", 0.3, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindIRQ, ID: 36, Name: "nvme0q1", NS: 100 * msec, Count: 1e5, Longest: 5000})
	}, IRQ, "nvme0q1", "echo 0 > /proc/irq/36/smp_affinity_list"},
	{"a slow reader", 0.3, func(e *Evidence) {
		e.Ports[1].TxRefused = 5e6
		e.Ports[0].Drops["port_tx_full"] = 5e6
	}, ReaderStopped, "vm1", ""},
	{"a ring of the device too small", 0.3, func(e *Evidence) {
		e.Ports[0].RxMissed, e.Workers[0].RxMissed = 1e6, 1e6
	}, RingOverflow, "uplink", ""},
	{"a ring between workers too small", 0.3, func(e *Evidence) {
		e.second(0.3)
		e.Rings = []Ring{{From: 1, To: 0, Size: 256, High: 256, Packets: 9e6, Refused: 1e6}}
	}, RingOverflow, "ring 1 to 0", "corelane worker set 0 --ring-size 1024"},
	{"one queue hotter than the others", 1, func(e *Evidence) {
		e.second(0.1)
	}, Skew, "uplink queue 0", "corelane port set uplink --mode hybrid"},
	{"queues of one worker hotter", 1, func(e *Evidence) {
		e.second(0.1)
		e.Workers[0].Queues = append(e.Workers[0].Queues, Queue{Port: "b"})
	}, Skew, "uplink queue 0", "corelane worker rebalance"},
	{"a quota", 0.5, func(e *Evidence) {
		e.quota(5 * sec)
	}, CgroupQuota, "/router", "echo -1 > /sys/fs/cgroup/cpu/router/cpu.cfs_quota_us"},
	{"a quota of version 2", 0.5, func(e *Evidence) {
		e.quota(5 * sec)
		e.Host.Cgroup.Version, e.Host.Cgroup.Dir = 2, "/sys/fs/cgroup/router"
	}, CgroupQuota, "/router", "echo max > /sys/fs/cgroup/router/cpu.max"},
	{"stopped for 50 ms", 0.3, func(e *Evidence) { e.stop() }, Stopped, "gdb", ""},
	{"still stopped", 0.3, func(e *Evidence) {
		e.stop()
		e.Host.Worker = map[int]host.Thread{tid: {State: "T (stopped)"}}
	}, Stopped, "gdb", "kill -CONT 100"},
	{"traced", 0.3, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhyStopped, NS: 500 * msec, Count: 1, Longest: 500 * msec})
		e.sum(kernel.Sum{Kind: kernel.KindTraced, ID: 78, PID: 78, Name: "strace", Count: 4})
		e.sum(kernel.Sum{Kind: kernel.KindSignal, Why: 19, ID: 78, PID: 78, Name: "strace", Count: 1})
		e.Host.Threads[78] = host.Thread{TID: 78, PID: 78, Name: "strace"}
	}, Stopped, "strace", "kill 78"},
	{"frozen", 0, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhyFrozen, NS: 10 * sec, Count: 1, Longest: 10 * sec})
		e.Host.Thaw, e.Host.ThawText = "/sys/fs/cgroup/router/cgroup.freeze", "0"
	}, Stopped, "freezer", "echo 0 > /sys/fs/cgroup/router/cgroup.freeze"},
	{"traced again and again", 0.3, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhyStopped, NS: 500 * msec, Count: 3, Longest: 200 * msec})
		e.repeated(kernel.KindTraced, "gdb", 3)
	}, Stopped, "gdb", "kill 7"},
	{"stopped again and again by one process", 0.3, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhyStopped, NS: 500 * msec, Count: 3, Longest: 200 * msec})
		e.sum(kernel.Sum{Kind: kernel.KindSignal, Why: 19, ID: 7, PID: 7, Name: "sh", Count: 9, Parent: 1})
		e.Host.Threads[7] = host.Thread{TID: 7, PID: 7, Name: "sh"}
		e.Host.Worker = map[int]host.Thread{tid: {State: "T (stopped)"}}
	}, Stopped, "sh", "kill 7\nkill -CONT 100"},
	{"stopped again and again by the first process", 0.3, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhyStopped, NS: 500 * msec, Count: 3, Longest: 200 * msec})
		e.sum(kernel.Sum{Kind: kernel.KindSignal, Why: 19, ID: 1, PID: 1, Name: "systemd", Count: 9})
		e.Host.Threads[1] = host.Thread{TID: 1, PID: 1, Name: "systemd"}
	}, Stopped, "systemd", ""},
	{"frozen again and again", 0.3, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhyFrozen, NS: 500 * msec, Count: 3, Longest: 200 * msec})
		e.repeated(kernel.KindFreezer, "docker", 4)
		e.Host.Thaw, e.Host.ThawText = "/sys/fs/cgroup/router/cgroup.freeze", "0"
	}, Stopped, "freezer: docker", "kill 7\necho 0 > /sys/fs/cgroup/router/cgroup.freeze"},
	{"moved again and again", 0.3, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhyMoved, NS: sec, Count: 1, Longest: sec})
		e.repeated(kernel.KindAffinity, "taskset", 20)
	}, Moved, "taskset", "kill 7\ntaskset -pc 1 101"},
	{"page faults", 1, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindFault, NS: 2 * sec, Count: 2e6, Longest: msec})
	}, PageFaults, "page faults", "numa_balancing"},
	{"page faults that were not timed", 1, func(e *Evidence) {
		e.Trace.Missing = []string{kernel.FaultTime}
		e.sum(kernel.Sum{Kind: kernel.KindFault, Count: 2e6})
	}, PageFaults, "page faults", "numa_balancing"},
	{"shootdowns", 1, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindVector, ID: kernel.VectorFlush, NS: 2 * sec, Count: 1e6, Longest: 90_000})
		e.sum(kernel.Sum{Kind: kernel.KindTLBSent, ID: 103, PID: daemon, Name: "rule-compiler", Count: 1e6})
	}, TLBShootdown, "rule-compiler", ""},
	{"calls of another CPU", 1, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindVector, ID: kernel.VectorCallSingle, NS: 2 * sec, Count: 1e6,
			Longest: 90_000})
		e.sum(kernel.Sum{Kind: kernel.KindIPISent, ID: 33, PID: 33, Name: "perf", Count: 1e6})
	}, IPI, "perf", ""},
	{"breakpoints in the program", 1, func(e *Evidence) {
		e.Workers[0].Past = seconds(5e6, 5e6, 5e6)
		for i := range e.Workers[0].Past {
			e.Workers[0].Past[i].BusyCycles = 5e6 * 120
		}
		e.Host.Handicaps = []host.Handicap{{What: "somebody set breakpoints", Passing: true}}
	}, CostlyPackets, "breakpoints", ""},
	{"a usual handicap", 1, func(e *Evidence) {
		e.Workers[0].Past = seconds(5e6, 5e6, 5e6)
		e.Host.Handicaps = []host.Handicap{{What: "no hugepages", Remedy: "reserve them"}}
	}, Overload, "pmd-fwd-0", "corelane worker add"},
	{"packets that cost more, and nobody knows why", 1, func(e *Evidence) {
		e.Workers[0].Past = seconds(5e6, 5e6, 5e6)
		for i := range e.Workers[0].Past {
			e.Workers[0].Past[i].BusyCycles = 5e6 * 120
		}
	}, CostlyPackets, "nothing", ""},
	{"packets that now visit another node", 1, func(e *Evidence) {
		w := &e.Workers[0]
		w.Past, w.PastPackets = seconds(5e6, 5e6, 5e6), 1e7
		for i := range w.Past {
			w.Past[i].BusyCycles = 5e6 * 120
		}
		w.Nodes[0].PastPackets, w.Nodes[0].PastCycles = 1e7, 1e7*100 // the other node is new, and costs as much
	}, Overload, "pmd-fwd-0", "corelane worker add"},
	{"an injected delay", 1, func(e *Evidence) {
		e.Workers[0].DelayUS, e.Workers[0].Loops = 20, 200000
	}, Delay, "debug delay", "corelane debug delay --worker 0 --us 0"},
	{"a hypervisor that takes the CPU", 1, func(e *Evidence) {
		e.Host.Ticks = map[int]host.Ticks{1: {Steal: 300}}
	}, Steal, "hypervisor", ""},
	{"an idle CPU", 1, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindThread, Why: kernel.WhyTaken, NS: 3 * sec, Count: 9, Longest: sec})
	}, Gap, "idle CPU", ""},
	{"drops for another reason", 0.3, func(e *Evidence) { e.Ports[0].Drops["no_route"] = 10e6 }, Drops, "no_route", ""},
	{"copies that no collector gets", 0.3, func(e *Evidence) { e.Ports[0].Drops["mirror_unresolved"] = 10e6 }, Drops,
		"mirror_unresolved", ""},
	{"a guest that sends to nobody", 0.3, func(e *Evidence) {
		e.Ports[1].Role, e.Ports[1].Drops["neighbor_rate"] = "tenant", 12e6
	}, NoisyPort, "neighbor_rate", "corelane port set vm1 --unresolved-rate 100"},
	{"a guest that sends to nobody, and is limited", 0.3, func(e *Evidence) {
		e.Ports[1].Role, e.Ports[1].Drops["neighbor_rate"], e.Ports[1].UnresolvedRate = "tenant", 12e6, 100
	}, NoisyPort, "neighbor_rate", ""},
	{"a guest that invents MACs", 0.3, func(e *Evidence) {
		e.Ports[1].Role, e.Ports[1].NotLearnt, e.Ports[1].GuestKnown = "tenant", 12e6, true
	}, NoisyPort, "learn_too_many", "corelane port set vm1 --source-check strict"},
	{"an unknown guest that invents MACs", 0.3, func(e *Evidence) {
		e.Ports[1].Role, e.Ports[1].NotLearnt = "tenant", 12e6
	}, NoisyPort, "learn_too_many", ""},
	{"a guest that begins flows", 0.3, func(e *Evidence) {
		e.Ports[1].Role, e.Ports[1].Drops["flow_quota_share"], e.Flows = "tenant", 12e6, 1<<20
		e.Ports[0].Stateful, e.Ports[1].Stateful = true, true
	}, NoisyPort, "flow_quota_share", "corelane port set vm1 --flow-limit 131072"},
	{"a guest that begins flows in a small table", 0.3, func(e *Evidence) {
		e.Ports[1].Role, e.Ports[1].Drops["flow_table_full"], e.Flows = "tenant", 12e6, 1024
	}, NoisyPort, "flow_table_full", "corelane port set vm1 --flow-limit 1000\ncorelane flow flush --port vm1"},
	{"a ring that holds all buffers", 0.3, func(e *Evidence) {
		e.Ports[0].Drops[noBuffer], e.Ports[0].Waiting, e.Ports[1].Kept, e.Buffers = 1e6, 12000, 1024, 16383
		e.Rings = []Ring{{From: 1, To: 0, Size: 32768, Used: 11000, Packets: 1e6}}
		e.Workers[0].Past = seconds(5e6, 5e6, 5e6)
	}, NoBuffers, "uplink", "corelane worker set 0 --ring-size 2048"},
	{"neighbours that hold all buffers", 0.3, func(e *Evidence) {
		e.Ports[1].Drops[noBuffer], e.Ports[0].Waiting, e.Buffers = 1e6, 16000, 16383
	}, NoBuffers, "uplink", "corelane port set uplink --unresolved-rate 100"},
	{"devices that keep all buffers", 0.3, func(e *Evidence) {
		e.Ports[0].Drops[noBuffer], e.Ports[0].Kept, e.Buffers = 1e6, 12000, 16383
	}, NoBuffers, "devices", ""},
	{"a poll that found no buffer", 0.3, func(e *Evidence) { e.Ports[0].Drops[noBuffer] = 1 }, Nothing, "input", ""},
	{"a few drops of an idle router", 0, func(e *Evidence) {
		e.Ports[0].RxPackets, e.Ports[0].Drops["fabric_not_local"] = 6, 4
	}, Nothing, "input", ""},
	{"drops at the least rate that matters", 0, func(e *Evidence) {
		e.Ports[0].RxPackets, e.Ports[0].Drops["eth_not_for_gateway"] = 1000, 1000
	}, Drops, "eth_not_for_gateway", ""},
	{"a reader that misses a few packets", 0, func(e *Evidence) {
		e.Ports[0].RxPackets, e.Ports[1].TxRefused, e.Ports[0].Drops["port_tx_full"] = 6, 4, 4
	}, Nothing, "input", ""},
	{"a few packets of a guest", 0.3, func(e *Evidence) {
		e.Ports[1].Role, e.Ports[1].Drops["punt_rate"] = "tenant", 99_999
		e.Ports[0].Role, e.Ports[0].Drops["punt_rate"] = "fabric", 12e6
	}, Drops, "punt_rate", ""},
	{"nothing at 30 %", 0.3, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindVector, ID: kernel.VectorTimer, NS: 30 * msec, Count: 10000, Longest: 9000})
		e.sum(kernel.Sum{Kind: kernel.KindThread, Why: kernel.WhyTaken, ID: 9, PID: 9, Name: "kworker/1:1", NS: msec,
			Count: 20, Longest: 60_000})
		e.Host.Ticks = map[int]host.Ticks{1: {Steal: 5}}
	}, Nothing, "input", ""},
	{"no packets, and links that are down", 0, func(*Evidence) {}, NoInput, "uplink", ""},
	{"no packets", 0, func(e *Evidence) { e.Ports[0].Up, e.Ports[1].Up = true, true }, NoInput, "all ports", ""},
	{"packets into a port that somebody disabled", 0.3, func(e *Evidence) {
		e.Ports[0].Disabled, e.Ports[0].Drops["port_disabled"] = true, 30e6
	}, Drops, "port_disabled", "corelane port set uplink --disabled=false"},
	{"no packets, and a port that somebody disabled", 0, func(e *Evidence) {
		e.Ports[0].Disabled, e.Ports[1].Up = true, true
	}, NoInput, "uplink", "corelane port set uplink --disabled=false"},
	{"bursts that a ring has no room for", 0.3, func(e *Evidence) {
		e.Ports[0].RingSize, e.Workers[0].BusyLoops = 128, e.Workers[0].Packets/90
	}, SmallRing, "uplink", ""},
	{"bursts that a ring has no room for, and a thread that costs no packets", 0.3, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindThread, Why: kernel.WhyTaken, ID: hog, PID: hog, Name: "stress",
			NS: 400 * msec, Count: 400000, Longest: 1000})
		e.Ports[0].RingSize, e.Workers[0].BusyLoops = 128, e.Workers[0].Packets/90
	}, SmallRing, "uplink", ""},
	{"a ring that is full because a thread took the CPU", 0.3, func(e *Evidence) {
		e.hog(0.5)
		e.Ports[0].RingSize, e.Workers[0].BusyLoops = 128, e.Workers[0].Packets/90
	}, ForeignThread, "stress", "taskset -pc 0 500"},
	{"a ring of which most polls find half", 0.3, func(e *Evidence) {
		e.Ports[0].RingSize, e.Workers[0].BusyLoops = 128, e.Workers[0].Packets/64
	}, Nothing, "input", ""},
	{"long bursts, and a ring that is longer than a batch", 0.3, func(e *Evidence) {
		e.Ports[0].RingSize, e.Workers[0].BusyLoops = 512, e.Workers[0].Packets/256
	}, Nothing, "input", ""},
	{"a small ring whose worker has no time left", 1, func(e *Evidence) {
		e.Ports[0].RingSize, e.Workers[0].BusyLoops = 128, e.Workers[0].Packets/128
	}, Overload, "pmd-fwd-0", "corelane worker add"},
	{"a link that somebody took down", 0.3, func(e *Evidence) {
		e.Ports[0].Up = true
		e.Ports = append(e.Ports, Port{Name: "uplink2", Device: "dpdk", Peer: "0000:3b:00.1", Carried: 9})
		e.Host.Links = map[string]host.Link{"uplink2": {Name: "eth1"}}
	}, NoInput, "uplink2", "ip link set dev eth1 up"},
	{"a link whose other end somebody took down", 0.3, func(e *Evidence) {
		e.Ports[0].Up = true
		e.Ports = append(e.Ports, Port{Name: "uplink2", Device: "dpdk", RxPackets: 3, Carried: 9})
		e.Host.Links = map[string]host.Link{"uplink2": {Name: "v0", Enabled: true, Peer: "v1"}}
	}, NoInput, "uplink2", "ip link set dev v1 up"},
	{"a cable that was pulled", 0.3, func(e *Evidence) {
		e.Ports[0].Up = true
		e.Ports = append(e.Ports, Port{Name: "uplink2", Device: "dpdk", Carried: 9})
		e.Host.Links = map[string]host.Link{"uplink2": {Name: "eth1", Enabled: true}}
	}, NoInput, "uplink2", ""},
	{"a port to the network that was never used, and a guest that does not run", 0.3, func(e *Evidence) {
		e.Ports[0].Up = true
		e.Ports = append(e.Ports, Port{Name: "spare", Device: "dpdk"}, Port{Name: "vm2", Device: "vhost", Carried: 9})
	}, Nothing, "input", ""},
	{"a link that somebody took down, and a thread that costs no packets", 0.3, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindThread, Why: kernel.WhyTaken, ID: hog, PID: hog, Name: "stress",
			NS: 400 * msec, Count: 20000, Longest: 20000})
		e.Ports = append(e.Ports, Port{Name: "uplink2", Device: "dpdk", Carried: 9})
		e.Host.Links = map[string]host.Link{"uplink2": {Name: "eth1"}}
	}, NoInput, "uplink2", "ip link set dev eth1 up"},
	{"a link that somebody took down, and a thread that costs more", 1, func(e *Evidence) {
		e.hog(0.5)
		e.Ports = append(e.Ports, Port{Name: "uplink2", Device: "dpdk", Carried: 9})
	}, ForeignThread, "stress", "taskset -pc 0 500"},
	{"packets to a port whose link somebody took down", 0.3, func(e *Evidence) {
		e.Ports[0].Up, e.Ports[0].Drops["port_down"] = true, 30e6
		e.Ports[1].Up = true
		e.Ports = append(e.Ports, Port{Name: "uplink2", Device: "dpdk", Carried: 9, Sent: 9})
		e.Host.Links = map[string]host.Link{"uplink2": {Name: "eth1"}}
	}, Drops, "port_down", "ip link set dev eth1 up"},
	{"packets to one of two ports that are down", 0.3, func(e *Evidence) {
		e.Ports[0].Up, e.Ports[0].Drops["port_down"] = true, 30e6
		e.Ports[1].Up = true
		for _, name := range []string{"uplink2", "uplink3"} {
			e.Ports = append(e.Ports, Port{Name: name, Device: "dpdk", Sent: 9})
			e.Host.Links = map[string]host.Link{"uplink2": {Name: "eth1"}, "uplink3": {Name: "eth2"}}
		}
	}, Drops, "port_down", ""},
	{"packets to a port that somebody disabled", 0.3, func(e *Evidence) {
		e.Ports[0].Up, e.Ports[0].Drops["port_down"] = true, 30e6
		e.Ports[1].Up, e.Ports[1].Disabled, e.Ports[1].TxPackets, e.Ports[1].Sent = true, true, 0, 9
	}, Drops, "port_down", "corelane port set vm1 --disabled=false"},
	{"a sender that is stopped", 0.3, func(e *Evidence) {
		e.Ports[1].Up = true
		e.Host.Readers = map[string][]host.Thread{"vm1": {{TID: 800, PID: 800, Name: "qemu", State: "T (stopped)"}}}
	}, NoInput, "vm1", "kill -CONT 800"},
	{"many short processes that one starts", 0.3, func(e *Evidence) {
		e.threads(2000, kernel.Sum{Name: "true", NS: 1500_000, Parent: 7, ParentName: "cron"}, true)
		e.Host.Threads[7] = host.Thread{TID: 7, PID: 7, Name: "cron", Allowed: cpuset.Of(0, 1)}
	}, ForeignThread, "true", "for pid in 7; do taskset -apc 0 $pid; done"},
	{"short processes that one binds to the CPU", 0.3, func(e *Evidence) {
		e.threads(2000, kernel.Sum{Name: "taskset", NS: 1500_000, Parent: 7, ParentName: "sh"}, true)
		e.Host.Threads[7] = host.Thread{TID: 7, PID: 7, Name: "sh", Allowed: cpuset.Of(0)}
	}, ForeignThread, "taskset", ""},
	{"a program that forks", 0.3, func(e *Evidence) {
		e.threads(500, kernel.Sum{Name: "true", NS: 1500_000, Parent: 7, ParentName: "sh"}, true)
		e.sum(kernel.Sum{Kind: kernel.KindThread, Why: kernel.WhyTaken, ID: 7, PID: 7, Name: "sh", NS: sec, Count: 500,
			Parent: 6, ParentName: "bash"})
		e.Host.Threads[7] = host.Thread{TID: 7, PID: 7, Name: "sh", Allowed: cpuset.Of(1)}
	}, ForeignThread, "sh", "for pid in 7; do taskset -apc 0 $pid; done"},
	{"thirty processes of one program", 1, func(e *Evidence) {
		e.threads(30, kernel.Sum{Name: "worker", NS: 320 * msec, Parent: 7, ParentName: "bash"}, false)
	}, ForeignThread, "worker", "taskset -apc 0 $pid"},
	{"a program of which some processes have ended", 1, func(e *Evidence) {
		e.threads(1, kernel.Sum{Name: "hog", NS: 5 * sec, Parent: 7, ParentName: "bash"}, false)
		e.sum(kernel.Sum{Kind: kernel.KindThread, Why: kernel.WhyTaken, ID: 2000, PID: 2000, Name: "hog", NS: 30 * msec,
			Count: 1, Parent: 7, ParentName: "bash"})
		e.Host.Threads[7] = host.Thread{TID: 7, PID: 7, Name: "bash", Allowed: cpuset.Of(0)}
	}, ForeignThread, "hog", "taskset -apc 0 1000"},
	{"a service of many programs", 0.3, func(e *Evidence) {
		for i, name := range []string{"poll", "collect", "send"} {
			e.sum(kernel.Sum{Kind: kernel.KindThread, Why: kernel.WhyTaken, ID: 50 + i, PID: 50 + i, Name: name,
				NS: 150 * msec, Count: 300, Longest: msec, Parent: 1, ParentName: "systemd"})
			e.Host.Threads[50+i] = host.Thread{TID: 50 + i, PID: 50 + i, Name: name, Allowed: cpuset.Of(0, 1),
				Cgroup: "/system.slice/agent.service"}
		}
	}, ForeignThread, "poll", "for pid in 50 51 52; do taskset -apc 0 $pid; done"},
	{"many small causes", 0.3, func(e *Evidence) {
		for i, name := range []string{"sshd", "cron", "journald"} {
			e.sum(kernel.Sum{Kind: kernel.KindThread, Why: kernel.WhyTaken, ID: 50 + i, PID: 50 + i, Name: name,
				NS: 150 * msec, Count: 300, Longest: msec, Parent: 1, ParentName: "systemd"})
		}
	}, ManySmall, "foreign-thread", ""},
	{"ticks that take more than they usually do", 0.3, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindVector, ID: kernel.VectorTimer, NS: 400 * msec, Count: 10000,
			Longest: 90_000})
	}, ManySmall, "timer-tick", ""},
	{"a worker that was moved", 0.3, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhyMoved, NS: sec, Count: 1, Longest: sec})
		e.sum(kernel.Sum{Kind: kernel.KindAffinity, ID: 900, PID: 900, Name: "taskset", Count: 1, Worker: tid})
		e.sum(kernel.Sum{Kind: kernel.KindAffinity, ID: 102, PID: daemon, Name: "control", Count: 1, Worker: tid})
		e.Workers[0].Affinity, e.Workers[0].LastCPU = "0", 0
	}, Moved, "taskset", "taskset -pc 1 101"},
	{"a worker that a control group moved", 1, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhyMoved, NS: sec, Count: 1, Longest: sec})
		e.Host.Waited[tid] = sec / 2
		e.Workers[0].LastCPU = 1
	}, Moved, "affinity", ""},
	{"a worker whose control group lacks its CPU", 1, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhyMoved, NS: sec, Count: 1, Longest: sec})
		e.Host.CpusetFile, e.Host.Cpuset = "/sys/fs/cgroup/router/cpuset.cpus", cpuset.Of(0)
	}, Moved, "/sys/fs/cgroup/router", "echo 0-1 > /sys/fs/cgroup/router/cpuset.cpus\ntaskset -pc 1 101"},
	{"a profiler", 0.8, func(e *Evidence) {
		e.sum(kernel.Sum{Kind: kernel.KindVector, ID: kernel.VectorTimer, NS: 2 * sec, Count: 200000, Longest: 50_000})
		e.Host.Handicaps = []host.Handicap{{What: "performance counters are open: perf (9)", Passing: true,
			Remedy: "end the profiler", Fix: "kill 9"}}
	}, TimerTick, "timer", "kill 9"},
	{"a daemon that does not answer", 0, func(e *Evidence) {
		e.Silent = true
		e.Host.Threads[daemon] = host.Thread{TID: daemon, PID: daemon, Name: "corelaned", State: "D (disk sleep)"}
	}, NoAnswer, "corelaned", "cat /proc/100/stack"},
	{"a daemon that is stopped", 0, func(e *Evidence) {
		e.Silent = true
		e.sum(kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhyStopped, NS: 10 * sec, Count: 1, Longest: 10 * sec})
		e.Host.Worker = map[int]host.Thread{tid: {State: "T (stopped)"}}
	}, Stopped, "signal", "kill -CONT 100"},
	{"its own changes", 0.3, func(e *Evidence) {
		e.Workers[0].LongLoops = []LongLoop{{NS: 30 * msec, MessagesNS: 29 * msec}}
	}, OwnWork, "messages", ""},
	{"a thread that ended", 0.3, func(e *Evidence) {
		e.Workers[0].Plain, e.Workers[0].Ended = true, true
	}, ThreadEnded, "pmd-fwd-0", ""},
	{"more than the core can do", 1, func(e *Evidence) {
		e.Ports[0].RxMissed, e.Workers[0].RxMissed = 30e6, 30e6
	}, Overload, "pmd-fwd-0", "corelane worker add"},
	{"more than the core can do, and a little noise", 1, func(e *Evidence) {
		e.hog(0.03)
	}, Overload, "pmd-fwd-0", "corelane worker add"},
}

func TestEachCauseIsFirst(t *testing.T) {
	for _, c := range cases {
		e := loaded(c.load)
		c.with(e)
		r := Explain(*e)
		first := r.Causes[0]
		if first.Kind != c.kind || !strings.Contains(first.Name, c.who) || first.Minor {
			t.Errorf("%s: %s %q (minor %v), want %s %q; %s", c.name, first.Kind, first.Name, first.Minor, c.kind, c.who,
				r.Verdict)
		}
		if !strings.Contains(first.Fix, c.fix) || c.fix == "" && first.Fix == "" && first.FixNote == "" &&
			c.kind != Nothing && c.kind != Gap {
			t.Errorf("%s: remedy %q (%s), want %q", c.name, first.Fix, first.FixNote, c.fix)
		}
		if len(first.Evidence) == 0 || first.Grade == "" || r.Verdict == "" || first.Title == "" {
			t.Errorf("%s: a part of the first cause is missing: %+v", c.name, first)
		}
		var text strings.Builder
		if err := r.WriteText(&text); err != nil || !strings.HasPrefix(text.String(), r.Verdict+"\n") {
			t.Errorf("%s: %v\n%s", c.name, err, text.String())
		}
	}
}

// Where every CPU has a worker, no command names a free one.
func TestRemediesWithoutAFreeCPU(t *testing.T) {
	for _, c := range cases {
		e := loaded(c.load)
		c.with(e)
		e.Host.Housekeeping = ""
		for _, cause := range Explain(*e).Causes {
			for _, text := range []string{cause.Fix, cause.FixNote} {
				if strings.Contains(text, "echo  >") || strings.Contains(text, "-c  COMMAND") ||
					strings.Contains(text, "-pc  ") {
					t.Fatalf("%s: %s: %q has no CPU", c.name, cause.Kind, text)
				}
			}
			if cause.Fix == "" && cause.FixNote == "" {
				t.Fatalf("%s: %s has no remedy", c.name, cause.Kind)
			}
		}
	}
}

// corelaned moves a thread back to its planned CPUs, so taskset is not a remedy if the worker's CPU is one of them.
func TestRemedyOfAPlannedThread(t *testing.T) {
	e := loaded(1)
	e.sum(kernel.Sum{Kind: kernel.KindThread, Why: kernel.WhyTaken, ID: 102, PID: daemon, Name: "svc-debug",
		NS: 2 * sec, Count: 1000, Longest: 4 * msec})
	e.Threads = []OwnThreadState{{TID: 102, Name: "svc-debug", Role: "service", Planned: "1", Allowed: "1"}}
	e.Host.Threads[102] = host.Thread{TID: 102, PID: daemon, Name: "svc-debug", Allowed: cpuset.Of(1)}
	c := Explain(*e).Causes[0]
	if c.Kind != OwnThread || c.Fix != "corelane worker set 0 --cpu 0" ||
		!strings.Contains(c.FixNote, "--service-cpus") {
		t.Errorf("%s: %q, %q", c.Kind, c.FixNote, c.Fix)
	}
}

// A guest that reads slowly, because its vCPUs wait for a CPU or do not run at all, is not to blame itself.
func TestVCPUs(t *testing.T) {
	for want, s := range map[string]host.Share{
		"its thread CPU 0/KVM (801) waited for CPU 3 for 70 % of the time": {TID: 801, Name: "CPU 0/KVM", Ran: 0.3,
			Waited: 0.7, LastCPU: 3},
		"the 1 vCPUs of qemu (800) do not run":  {TID: 801, Name: "CPU 0/KVM"},
		"reads more slowly than packets arrive": {TID: 801, Name: "CPU 0/KVM", Ran: 0.9},
	} {
		e := loaded(0.3)
		e.Ports[1].TxRefused, e.Ports[0].Drops["port_tx_full"] = 20e6, 20e6
		e.Host.Readers = map[string][]host.Thread{"vm1": {{TID: 800, PID: 800, Name: "qemu", State: "S (sleeping)"}}}
		e.Host.Shares = map[int][]host.Share{800: {{TID: 800, Name: "qemu"}, s}}
		if c := Explain(*e).Causes[0]; !strings.Contains(c.Why, want) {
			t.Errorf("%q is not %q", c.Why, want)
		}
	}
}

// Why a thread gets more of the CPU than the worker is said.
func TestPrecedence(t *testing.T) {
	for want, with := range map[string]func(*host.Thread, *Host){
		"real-time thread, SCHED_FIFO": func(t *host.Thread, _ *Host) { t.Policy = 1 },
		"worker 0 has policy SCHED_IDLE": func(_ *host.Thread, h *Host) {
			h.Worker[tid] = host.Thread{Policy: schedIdle}
		},
		"worker 0 has nice 19 and the other 0": func(_ *host.Thread, h *Host) { h.Worker[tid] = host.Thread{Nice: 19} },
		"group /router has only 2 shares": func(_ *host.Thread, h *Host) {
			h.Cgroup = host.Cgroup{Path: "/router", Shares: 2}
		},
	} {
		e := loaded(1)
		e.hog(0.5)
		t1 := e.Host.Threads[hog]
		e.Host.Worker = map[int]host.Thread{}
		with(&t1, &e.Host)
		e.Host.Threads[hog] = t1
		var text strings.Builder
		if err := Explain(*e).WriteText(&text); err != nil || !strings.Contains(text.String(), want) {
			t.Errorf("%s is not in %s", want, text.String())
		}
	}
}

// The cause that costs more comes first.
func TestCausesAreRankedByCost(t *testing.T) {
	irq := func(ns int64) func(*Evidence) {
		return func(e *Evidence) {
			e.sum(kernel.Sum{Kind: kernel.KindIRQ, ID: 36, Name: "nvme0q1", NS: ns, Count: 1e5, Longest: msec})
		}
	}
	for _, c := range []struct {
		name          string
		load          float64
		a, b          func(*Evidence)
		first, second Kind
	}{
		{"much of an interrupt, some of a hog", 1, irq(4 * sec), func(e *Evidence) { e.hog(0.2) }, IRQ, ForeignThread},
		{"some of an interrupt, much of a hog", 1, irq(sec), func(e *Evidence) { e.hog(0.4) }, ForeignThread, IRQ},
		{"a reader costs more than a stop", 0.3, func(e *Evidence) { e.stop() }, func(e *Evidence) {
			e.Ports[1].TxRefused, e.Ports[0].Drops["port_tx_full"] = 20e6, 20e6
		}, ReaderStopped, Stopped},
		{"a stop costs more than a reader", 0.3, func(e *Evidence) { e.stop() }, func(e *Evidence) {
			e.Ports[1].TxRefused, e.Ports[0].Drops["port_tx_full"] = 60e3, 60e3
		}, Stopped, ReaderStopped},
		{"quota and hog", 1, func(e *Evidence) {
			e.quota(5 * sec)
		}, func(e *Evidence) { e.hog(0.2) }, CgroupQuota, ForeignThread},
	} {
		e := loaded(c.load)
		c.a(e)
		c.b(e)
		r := Explain(*e)
		if len(r.Causes) < 2 || r.Causes[0].Kind != c.first || r.Causes[1].Kind != c.second {
			t.Errorf("%s: %s before %s", c.name, r.Causes[0].Kind, r.Causes[1].Kind)
		}
	}
}

// A ring that overflows because its worker was away is not too small.
func TestOverflowIsAnEffect(t *testing.T) {
	e := loaded(0.3)
	e.hog(0.5)
	e.Ports[0].RxMissed, e.Workers[0].RxMissed = 1e6, 1e6
	for _, c := range Explain(*e).Causes {
		if c.Kind == RingOverflow {
			t.Errorf("%+v", c)
		}
	}
}

// Threads that belong together are one cause, with the sum of their time and the gaps of each.
func TestGroupsAreSummedUp(t *testing.T) {
	e := loaded(0.3)
	e.threads(30, kernel.Sum{Name: "worker", NS: 200 * msec, Parent: 7, ParentName: "bash"}, false)
	e.sum(kernel.Sum{Kind: kernel.KindThread, Why: kernel.WhyTaken, ID: 90, PID: 90, Name: "sshd", NS: sec, Count: 9,
		Parent: 1, ParentName: "systemd"})
	for i := range 30 {
		e.away(1, kernel.Gap{NS: 200 * msec, Kind: kernel.KindThread, Why: kernel.WhyTaken, ID: 1000 + i, PID: 1000 + i,
			Name: "worker"})
		e.Trace.Gaps[i].From = int64(i) * 300 * msec
	}
	r := Explain(*e)
	if c := r.Causes[0]; c.Threads != 30 || c.LostNS != 6*sec || c.PPS < 4e6 || c.PPS > 5e6 {
		t.Errorf("%d threads, %d ns, %.0f packets/s: %s", c.Threads, c.LostNS, c.PPS, r.Verdict)
	}
	if c := r.Causes[1]; c.Name != "sshd" || c.Threads != 0 || c.LostNS != sec {
		t.Errorf("%+v", c)
	}
}

// What ports could not receive costs what came in before and does not come any more.
func TestCostOfNoBuffers(t *testing.T) {
	e := loaded(0.3)
	e.Ports[0].Drops[noBuffer], e.Ports[0].Waiting, e.Buffers = 1e6, 16000, 16383
	e.Workers[0].Past = seconds(5e6, 5e6, 5e6)
	c := Explain(*e).Causes[0]
	if c.Kind != NoBuffers || c.Minor || c.PPS < 1.9e6 || c.PPS > 2.1e6 {
		t.Errorf("%s costs %.0f packets/s, not 2,000,000", c.Title, c.PPS)
	}
}
