// SPDX-License-Identifier: Apache-2.0

// Package explain finds what keeps a worker from moving packets: it compares what each worker did in a window of time with
// what its core can do, and splits the difference over who or what took the rest. Run looks at a running daemon; Explain
// decides, from plain data.
package explain

// Kind of a cause. The strings are stable: programs compare them.
type Kind string

// Causes that take a worker's time, its packets, or both.
const (
	ForeignThread Kind = "foreign-thread" // a thread of another process, or of the kernel, ran on the worker's CPU
	OwnThread     Kind = "own-thread"     // a thread of corelaned itself did, another worker too
	Softirq       Kind = "softirq"        // the kernel's deferred work, mostly its own network traffic
	IRQ           Kind = "irq"            // a device interrupted the CPU
	IPI           Kind = "ipi"            // another CPU did, not to flush translations
	TimerTick     Kind = "timer-tick"     // the kernel's periodic timer
	TLBShootdown  Kind = "tlb-shootdown"  // another thread of the process changed mappings
	PageFaults    Kind = "page-faults"    // the worker touched memory that was not mapped
	Yield         Kind = "yield"          // the worker gave its CPU away: idle policy yield or sleep, system calls
	Stopped       Kind = "stopped"        // a signal, a debugger or the freezer held the worker
	CgroupQuota   Kind = "cgroup-quota"   // the process had used up its share of CPU time
	Steal         Kind = "steal"          // the hypervisor ran somebody else
	Delay         Kind = "injected-delay" // corelane debug delay
	Moved         Kind = "moved"          // the worker ran on another CPU than its own
	Gap           Kind = "gap"            // the worker was away, and nothing that was looked at tells why
)

// Causes that lose packets while the worker has its CPU.
const (
	ReaderStopped Kind = "reader-stopped" // who should take a port's packets does not
	RingOverflow  Kind = "ring-overflow"  // a ring is too small for the bursts that come
	Skew          Kind = "skew"           // one worker has far more to do than the others
	Drops         Kind = "drops"          // the router refused packets for a reason of their own
	SmallBatches  Kind = "small-batches"  // few packets per poll: each costs more
	Overload      Kind = "overload"       // more is offered than the core can do
	Nothing       Kind = "nothing"        // nothing is wrong: the input is the limit
)
