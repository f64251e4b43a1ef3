// SPDX-License-Identifier: Apache-2.0
package intrude

import "github.com/corelane/corelane/internal/explain"

// Why a cost cannot be known from within the router.
const (
	senders = "only the senders know how much more is offered than before"
	none    = "a worker that does not run sees no packets"
)

// A real-time thread that moves to the generator's CPU stops the generator.
const moveAway = "it needs a CPU without a generator"

// Loops of a shell.
const (
	endless  = "while :; do :; done"
	cronLoop = "while :; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.08; done"
)

var injectPerf = runs(false, "exec perf record -q -a -F 20000 -o $DIR/perf.data", "perf")

// toolCases are disturbances by tools that hosts have, and by several at once.
func toolCases() []Case {
	thread, still := kinds(explain.ForeignThread), kinds(explain.Stopped)
	return []Case{
		{Name: "thirty",
			Summary: "thirty busy processes of one program", Kinds: thread, Load: nearly,
			inject: runs(true, "for i in $(seq 30); do sh -c '"+endless+"' & done; wait")},
		{Name: "threads", Summary: "the threads of an ordinary program, bound to the worker's CPU", Kinds: thread,
			Load: half, inject: injectLoad},
		{Name: "forks",
			Summary: "a shell on the worker's CPU that starts short processes", Kinds: thread, Load: nearly,
			inject: runs(true, "while :; do /bin/true; done")},
		{Name: "probes",
			Summary: "short processes that a shell on another CPU binds to the worker's", Kinds: thread,
			Load: nearly, unfixed: "the script that binds them has to be changed",
			inject: runs(false, "for i in 1 2 3; do sh -c 'while :; do taskset -c $CPU /bin/true; done' & done; wait",
				"taskset")},
		{Name: "cron", Summary: "a job of 20 ms that starts ten times a second", Kinds: thread, Load: half,
			inject: runs(true, cronLoop)},
		{Name: "nice",
			Summary: "a busy thread of nice 10", Kinds: thread, Load: nearly,
			inject: runs(true, "exec nice -n 10 sh -c '"+endless+"'", "nice")},
		{Name: "fifo", unfixed: moveAway,
			Summary: "a real-time thread that never sleeps", Kinds: thread, Load: half,
			inject: runs(true, "exec chrt -f 1 sh -c '"+endless+"'", "chrt")},
		{Name: "bursts", unfixed: moveAway,
			Summary: "a real-time thread that runs and sleeps in turn", Kinds: thread, Load: half,
			inject: runs(true, "exec chrt -f 1 sh -c 'while :; do i=0; while [ $i -lt 9000 ]; do i=$((i+1)); done; "+
				"sleep 0.01; done'", "chrt")},
		{Name: "writer", unfixed: "the disk's interrupt is managed",
			Summary: "a program that writes a file and waits for the disk", Load: nearly,
			Kinds:  kinds(explain.ForeignThread, explain.Softirq, explain.ManySmall),
			inject: runs(true, "while :; do dd if=/dev/zero of=$DIR/file bs=64k count=16 conv=fsync; done", "dd")},
		{Name: "shares", unpriced: none,
			Summary: "a control group with next to no share of the CPU, beside a busy thread",
			Kinds:   thread, Load: half, inject: injectShares},
		{Name: "perf", unfixed: "the profiler has to end",
			Summary: "perf record of all CPUs, 20,000 samples a second", Kinds: kinds(explain.TimerTick),
			Load: nearly, inject: injectPerf},
		{Name: "uprobes", unfixed: "perf has to end",
			Summary: "perf that counts the calls of two functions of the router", Kinds: kinds(explain.CostlyPackets),
			Load: nearly, inject: injectUprobes},
		{Name: "gdb",
			Summary: "gdb that takes backtraces of all threads", Kinds: still, Load: half,
			unfixed: "the loop that starts gdb has to end", inject: then(runs(false,
				"while :; do gdb -q -batch -p $PID -ex 'thread apply all bt 1' </dev/null; sleep 1; done", "gdb"),
				resume)},
		{Name: "strace", Summary: "strace that attaches again and again", Load: half,
			Kinds:   kinds(explain.Stopped, explain.Nothing), // on a quiet machine the stops lose no packets
			unfixed: "the loop that starts strace has to end", inject: then(runs(false,
				"while :; do timeout 0.1 strace -q -f -p $PID -o /dev/null; done", "strace"), resume)},
		{Name: "signal", unpriced: none,
			Summary: "SIGSTOP, and nothing that lets the process go on", Kinds: still, Load: half,
			inject: injectSignal},
		{Name: "freezer", Summary: "the freezer of a control group, for 50 ms once a second", Kinds: still, Load: half,
			unfixed: "what freezes the group has to end", inject: injectFreezer(false)},
		{Name: "frozen", unpriced: none,
			Summary: "a frozen control group", Kinds: still, Load: half, inject: injectFreezer(true)},
		{Name: "moved", Summary: "taskset that moves the worker again and again", Kinds: kinds(explain.Moved),
			Load: half, unfixed: "the loop that starts taskset has to end",
			inject: runs(false, "while :; do taskset -pc 0 $TID; sleep 0.5; done", "taskset")},
		{Name: "stress", Summary: "two busy processes of stress-ng", Kinds: thread, Load: nearly,
			inject: runs(true, "exec stress-ng -q --cpu 2", "stress-ng")},
		{Name: "switch", Summary: "processes of stress-ng that wake each other", Kinds: thread, Load: half,
			inject: runs(true, "exec stress-ng -q --switch 2", "stress-ng")},
		{Name: "timer", Summary: "timers of stress-ng on the worker's CPU", Load: nearly,
			Kinds:   kinds(explain.ForeignThread, explain.TimerTick),
			unfixed: "the timers stay on the CPU where they were set", inject: runs(true,
				"exec stress-ng -q --timer 1 --timer-freq 20000", "stress-ng")},
		{Name: "fio", Summary: "fio that reads a file from the disk", Load: nearly,
			unfixed: "the disk's interrupt is managed",
			Kinds:   kinds(explain.ForeignThread, explain.Softirq, explain.ManySmall), inject: runs(true,
				"exec fio --name=x --directory=$DIR --rw=randread --size=16M --bs=4k --direct=1 --time_based "+
					"--runtime=1000", "fio")},
		{Name: "bpftrace", unfixed: "bpftrace has to end",
			Summary: "bpftrace that samples all CPUs 20,000 times a second",
			Kinds:   kinds(explain.TimerTick), Load: nearly,
			inject: runs(false, "exec bpftrace -e 'profile:hz:20000 { @ = count(); }'", "bpftrace")},
	}
}

// jointCases are several disturbances at once.
func jointCases() []Case {
	hog := part{kind: explain.ForeignThread, inject: injectHog}
	stop := part{kind: explain.Stopped, inject: injectStop}
	tlb := part{kind: explain.TLBShootdown, inject: injectFlushes}
	cron := part{kind: explain.ForeignThread, inject: runs(true, cronLoop)}
	list := []Case{
		{Name: "hog-and-stop", Load: half, parts: []part{hog, stop},
			Summary: "a busy thread, and SIGSTOP for 50 ms once a second"},
		{Name: "hog-and-softirq", Load: half, parts: []part{hog, {kind: explain.Softirq, inject: injectSoftirq}},
			Summary: "a busy thread, and kernel traffic on the same CPU"},
		{Name: "quota-and-cron", Load: half, parts: []part{{kind: explain.CgroupQuota, inject: injectQuota}, cron},
			Summary: "half of a CPU's quota, and a job of 20 ms ten times a second"},
		{Name: "hog-and-tlb", Load: nearly, parts: []part{hog, tlb},
			Summary: "a busy thread, and another that changes mappings"},
		{Name: "perf-and-cron", Load: nearly, parts: []part{{kind: explain.TimerTick, inject: injectPerf}, cron},
			Summary: "perf record, and a job of 20 ms ten times a second"},
		{Name: "three", Load: nearly, parts: []part{cron, stop, tlb},
			Summary: "a job of 20 ms ten times a second, SIGSTOP once a second, and a thread that changes mappings"},
	}
	for i := range list {
		c := &list[i]
		c.Kinds, c.unfixed, c.inject = kindsOf(c.parts), "one command cannot fix several causes", together(c.parts)
	}
	return list
}
