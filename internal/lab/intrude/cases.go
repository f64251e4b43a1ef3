// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
	"slices"

	"golang.org/x/sys/unix"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/explain"
)

const (
	nearly = 0.75 // of the worker's capacity: time that it loses becomes lost packets
	half   = 0.5
	full   = 0.95 // a tenth of its time is more than it has left
)

// Cases of the matrix.
func Cases() []Case {
	return slices.Concat(ownCases(), toolCases(), jointCases())
}

// ownCases need no tools.
func ownCases() []Case {
	return []Case{
		{Name: "hog",
			Summary: "a thread that never sleeps, bound to the worker's CPU",
			Kinds:   kinds(explain.ForeignThread), Load: nearly, inject: injectHog},
		{Name: "softirq",
			Summary: "kernel traffic that RPS steers to the worker's CPU", Kinds: kinds(explain.Softirq),
			Load: nearly, inject: injectSoftirq},
		{Name: "irq", unfixed: "the disk has one queue, whose interrupt is managed",
			Summary: "the disk's interrupt on the worker's CPU, while the disk is read",
			Kinds:   kinds(explain.IRQ, explain.Softirq), Load: full, // interrupts are short, and rings hold what comes
			inject: injectIRQ}, // for a disk with one queue, the kernel does most of the work in softirq BLOCK
		{Name: "own-thread", unfixed: "the thread is moved there again and again",
			Summary: "a service thread of corelaned on the worker's CPU, with work",
			Kinds:   kinds(explain.OwnThread), Load: nearly, inject: injectOwnThread},
		{Name: "yield",
			Summary: "a worker that yields in each empty loop, beside a thread that is always ready",
			Kinds:   kinds(explain.Yield), Load: half,
			inject: injectYield},
		{Name: "reader", unfixed: "the reader has to read",
			Summary: "a guest that does not read", Kinds: kinds(explain.ReaderStopped), Load: half,
			setting: setting{both: true}, inject: injectReader},
		{Name: "ring", unfixed: "the bursts are longer than any ring",
			Summary: "bursts through a ring of 64 between two workers", Kinds: kinds(explain.RingOverflow),
			Load: 0.2, setting: setting{second: true}, prepare: handOver, inject: burstsOf(2048)},
		{Name: "small-ring", unpriced: senders, unfixed: "a ring has its size from the beginning",
			Summary: "bursts of 8,192 into a port's ring of 128", Kinds: kinds(explain.SmallRing),
			Load: 0.05, setting: setting{slots: 2 * smallRing}, inject: burstsOf(8192)},
		{Name: "skew", unpriced: senders, unfixed: "one flow cannot be spread",
			Summary: "one flow for one of two workers", Kinds: kinds(explain.Skew), Load: half,
			setting: setting{second: true}, prepare: apart, inject: injectElephant},
		{Name: "quota", Summary: "a cgroup that gives the process half of a CPU", Kinds: kinds(explain.CgroupQuota),
			Load: nearly, inject: injectQuota},
		{Name: "stopped", says: "sh (", Summary: "SIGSTOP for 50 ms, once a second", Kinds: kinds(explain.Stopped),
			Load: nearly, inject: then(runs(false,
				"while :; do kill -STOP $PID; sleep 0.05; kill -CONT $PID; sleep 0.95; done"), resume)},
		{Name: "page-faults", unfixed: "corelane debug faults has to end",
			Summary: "pages of the process that are taken away", Kinds: kinds(explain.PageFaults),
			Load: 0.85, inject: injectFaults},
		{Name: "tlb", unfixed: "the thread has to keep its mappings",
			Summary: "another thread of the process that changes mappings",
			Kinds:   kinds(explain.TLBShootdown), Load: full,
			inject: injectFlushes}, // at less load, its cost is noise
		{Name: "nothing", unfixed: "nothing is wrong",
			Summary: "nothing is wrong, at 30 % load", Kinds: untouched, Load: 0.3,
			inject: injectNothing},
		{Name: "overload", unpriced: senders, unfixed: "it needs another CPU",
			Summary: "1.5 times the worker's capacity is offered", Kinds: kinds(explain.Overload),
			Load: nearly, inject: injectOverload},
		{Name: "small-pages", unpriced: senders, unfixed: "it needs hugepages", says: "no hugepages",
			Summary: "1.5 times the capacity of a worker without hugepages", Kinds: kinds(explain.Overload),
			Load: nearly, setting: setting{small: true}, inject: injectOverload},
		{Name: "delay", Summary: "a delay in each of the worker's loops (corelane debug delay)",
			Kinds: kinds(explain.Delay), Load: nearly, inject: injectDelay},
		{Name: "disabled", says: "disabled", Summary: "a port that somebody disabled", Kinds: kinds(explain.Drops),
			Load: half, inject: injectDisabled},
		{Name: "link", says: "administratively down", Summary: "a link of which somebody took the other end down",
			Kinds: kinds(explain.NoInput), Load: half, inject: injectDeadLink},
		{Name: "sender", Summary: "a sender that is stopped", Kinds: kinds(explain.NoInput), Load: half,
			inject: injectSilence},
	}
}

// untouched are the answers where nothing disturbs, unless the hypervisor does.
var untouched = kinds(explain.Nothing, explain.Steal)

func kinds(list ...explain.Kind) []explain.Kind { return list }

func nothing() error { return nil }

func injectNothing(context.Context, *loadedVictim) (*injection, error) {
	return &injection{undo: nothing}, nil
}

func injectOverload(ctx context.Context, b *loadedVictim) (*injection, error) {
	return &injection{undo: nothing}, b.change(ctx, &apiv1.GeneratorTrial{PacketsPerSecond: 1.5 * b.capacity})
}

func injectHog(_ context.Context, b *loadedVictim) (*injection, error) {
	i, err := b.intrude(b.Dir, "", []int{b.WorkerCPU}, "hog")
	if err != nil {
		return nil, err
	}
	return &injection{culprit: Culprit{PID: i.Pid, Name: "cl-hog"}, undo: i.Stop}, nil
}

// injectLoad runs the ordinary load of a host, whose threads belong to one process.
func injectLoad(_ context.Context, b *loadedVictim) (*injection, error) {
	i, err := b.intrude(b.Dir, "", []int{b.WorkerCPU}, "load")
	if err != nil {
		return nil, err
	}
	return &injection{culprit: Culprit{PID: i.Pid}, undo: i.Stop}, nil
}

// injectSilence stops the generator.
func injectSilence(_ context.Context, b *loadedVictim) (*injection, error) {
	pid := b.generator.Pid()
	return &injection{culprit: Culprit{PID: pid}, undo: func() error { return unix.Kill(pid, unix.SIGCONT) }},
		unix.Kill(pid, unix.SIGSTOP)
}

type injector = func(context.Context, *loadedVictim) (*injection, error)
