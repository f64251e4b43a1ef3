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

var injectPerf = samples("exec perf record -q -a -F 20000 --synth=no -o $DIR/perf.data", "perf")

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
		{Name: "fifo", unfixed: moveAway, says: "real-time",
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
		{Name: "shares", unpriced: none, says: "shares",
			Summary: "a control group with next to no share of the CPU, beside a busy thread",
			Kinds:   thread, Load: half, inject: injectShares},
		{Name: "perf", says: "perf (",
			Summary: "perf record of all CPUs, 20,000 samples a second", Kinds: kinds(explain.TimerTick),
			Load: nearly, inject: injectPerf},
		{Name: "uprobes", says: "perf (",
			Summary: "perf that counts the calls of two functions of the router", Kinds: kinds(explain.CostlyPackets),
			Load: nearly, inject: injectUprobes},
		{Name: "gdb", says: "gdb (",
			Summary: "gdb that takes backtraces of all threads", Kinds: still, Load: half, inject: then(runs(false,
				"while :; do gdb -q -batch -p $PID -ex 'thread apply all bt 1' </dev/null; sleep 1; done", "gdb"),
				resume)},
		{Name: "strace", Summary: "strace that attaches again and again", Load: half,
			Kinds:   kinds(explain.Stopped, explain.Nothing), // on a quiet machine the stops lose no packets
			unfixed: "the loop that starts strace has to end", inject: then(runs(false,
				"while :; do timeout 0.1 strace -q -f -p $PID -o /dev/null; done", "strace"), resume)},
		{Name: "traced", Summary: "strace that stays attached", Load: half,
			Kinds:   append(kinds(explain.Stopped), untouched...), // workers make no system calls
			unfixed: "nothing is lost", inject: then(runs(false, "exec strace -q -f -p $PID -o /dev/null", "strace"),
				resume)},
		{Name: "signal", unpriced: none,
			Summary: "SIGSTOP, and nothing that lets the process go on", Kinds: still, Load: half,
			inject: injectSignal},
		{Name: "freezer", says: "sh (", Summary: "the freezer of a control group, for 50 ms once a second",
			Kinds: still, Load: half, inject: injectFreezer(false)},
		{Name: "frozen", unpriced: none,
			Summary: "a frozen control group", Kinds: still, Load: half, inject: injectFreezer(true)},
		{Name: "moved", Summary: "taskset that moves the worker again and again", Kinds: kinds(explain.Moved),
			Load: half, says: "taskset (",
			inject: runs(false, "while :; do taskset -pc 0 $TID; sleep 0.5; done", "taskset")},
		{Name: "moved-once", Summary: "taskset that moves the worker once", Kinds: kinds(explain.Moved),
			Load: half, unpriced: "it has ended", unfixed: "corelaned moves it back",
			inject: runs(false, "sleep 0.7; taskset -pc 0 $TID; sleep 1000", "taskset")},
		{Name: "cpuset", Summary: "a control group whose CPUs do not include the worker's",
			Kinds: kinds(explain.Moved), Load: half, inject: injectCpuset},
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
		{Name: "bpftrace", says: "bpftrace (",
			Summary: "bpftrace that samples all CPUs 20,000 times a second",
			Kinds:   kinds(explain.TimerTick), Load: nearly,
			inject: samples("exec bpftrace -e 'profile:hz:20000 { @ = count(); }'", "bpftrace")},
		{Name: "bpftrace-uprobe", Summary: "bpftrace that counts the calls of a function of the router",
			Kinds: kinds(explain.CostlyPackets), Load: nearly, says: "breakpoints",
			inject: samples("exec bpftrace -e \"uprobe:$(readlink /proc/$PID/exe):graph_walk { @ = count(); }\"",
				"bpftrace")},
		{Name: "tracefs-uprobe", Summary: "the kernel's tracing, which records the calls of a function of the router",
			Kinds: kinds(explain.CostlyPackets), Load: nearly, says: "uprobe_events", inject: injectTracing},
		{Name: "renice", Summary: "a worker with the lowest priority, beside a busy thread", Kinds: thread, Load: half,
			inject: runs(true, "renice -n 19 -p $TID; exec sh -c '"+endless+"'", "renice")},
		{Name: "idle", Summary: "a worker of policy SCHED_IDLE, beside a busy thread", Kinds: thread, Load: half,
			says: "SCHED_IDLE", inject: runs(true, "chrt -i -p 0 $TID; exec sh -c '"+endless+"'", "chrt")},
		{Name: "round-robin", Summary: "a real-time thread of policy SCHED_RR that runs and sleeps in turn",
			Kinds: thread, Load: half, unfixed: moveAway, says: "real-time",
			inject: runs(true, "exec chrt -r 2 sh -c 'while :; do i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done; "+
				"sleep 0.005; done'", "chrt")},
		{Name: "gzip", Summary: "a program that compresses", Kinds: thread, Load: nearly,
			inject: runs(true, "exec gzip -c /dev/zero >/dev/null", "gzip")},
		{Name: "ps", Summary: "a shell that lists all threads again and again", Kinds: thread, Load: nearly,
			inject: runs(true, "while :; do ps -eLf >/dev/null; sleep 0.05; done", "ps")},
		{Name: "smaps", Summary: "a monitor that reads the memory map of the router again and again",
			Kinds: untouched, Load: nearly, unfixed: "nothing is lost",
			inject: runs(false, "while :; do cat /proc/$PID/smaps >/dev/null; done", "cat")},
		{Name: "ping", Summary: "a flood of pings over the loopback",
			Kinds: kinds(explain.ForeignThread, explain.Softirq), Load: nearly,
			inject: runs(true, "exec ping -q -f 127.0.0.1 >/dev/null", "ping")},
		{Name: "messaging", Summary: "perf bench: processes that send each other messages", Kinds: thread, Load: half,
			inject: runs(true, "exec perf bench -f simple sched messaging -g 1 -l 100000000", "perf")},
		stress("fork", "a process of stress-ng that forks", half, "--fork 1"),
		stress("pthread", "a process of stress-ng that starts threads", half, "--pthread 1"),
		stress("pipe", "processes of stress-ng that send each other data", half, "--pipe 1"),
		stress("nanosleep", "threads of stress-ng that sleep for short times", nearly, "--nanosleep 1"),
		stress("udp", "processes of stress-ng that send each other datagrams", half, "--udp 1"),
		stress("memory", "a process of stress-ng that writes to memory", half, "--vm 1 --vm-bytes 64M"),
		{Name: "itimer", Summary: "timers and signals of stress-ng on the worker's CPU", Load: nearly,
			Kinds: kinds(explain.ForeignThread, explain.TimerTick), inject: runs(true,
				"exec stress-ng -q --itimer 1 --itimer-freq 10000", "stress-ng")},
	}
}

// stress is a case of processes of stress-ng on the worker's CPU.
func stress(name, summary string, load float64, options string) Case {
	return Case{Name: name, Summary: summary, Load: load,
		Kinds:  kinds(explain.ForeignThread, explain.Softirq),
		inject: runs(true, "exec stress-ng -q "+options, "stress-ng")}
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
		{Name: "stress-and-moved", Load: half, parts: []part{
			{kind: explain.ForeignThread, inject: runs(true, "exec stress-ng -q --cpu 1", "stress-ng")},
			{kind: explain.Moved, inject: runs(false, "while :; do taskset -pc 0 $TID; sleep 1; done", "taskset")}},
			Summary: "a busy process of stress-ng, and taskset that moves the worker"},
		{Name: "gdb-and-fork", Load: half, parts: []part{
			{kind: explain.Stopped, inject: then(runs(false,
				"while :; do gdb -q -batch -p $PID -ex bt </dev/null; sleep 1; done", "gdb"), resume)},
			{kind: explain.ForeignThread, inject: runs(true, "exec stress-ng -q --fork 1", "stress-ng")}},
			Summary: "gdb that attaches again and again, and a process that forks"},
		{Name: "uprobes-and-cron", Load: nearly, parts: []part{
			{kind: explain.CostlyPackets, inject: injectUprobes}, cron},
			Summary: "perf that counts calls of the router, and a job of 20 ms ten times a second"},
		{Name: "three", Load: nearly, parts: []part{cron, stop, tlb},
			Summary: "a job of 20 ms ten times a second, SIGSTOP once a second, and a thread that changes mappings"},
	}
	for i := range list {
		c := &list[i]
		c.Kinds, c.unfixed, c.inject = kindsOf(c.parts), "one command cannot fix several causes", together(c.parts)
	}
	return list
}
