// SPDX-License-Identifier: Apache-2.0

// Package explain finds what keeps a worker from processing packets. It compares what each worker did in a window of
// time with what its core can do, and splits the difference over the causes. Run observes a running daemon; Explain
// decides, from plain data. Each kind of cause is one row of a table (table.go).
package explain

// Kind of a cause. The strings are stable: programs compare them. The table says what each means.
type Kind string

// Causes that take a worker's time, its packets, or both.
const (
	ForeignThread Kind = "foreign-thread"
	OwnThread     Kind = "own-thread"
	Softirq       Kind = "softirq"
	IRQ           Kind = "irq"
	IPI           Kind = "ipi"
	TLBShootdown  Kind = "tlb-shootdown"
	TimerTick     Kind = "timer-tick"
	PageFaults    Kind = "page-faults"
	Yield         Kind = "yield"
	Stopped       Kind = "stopped"
	CgroupQuota   Kind = "cgroup-quota"
	Moved         Kind = "moved"
	Steal         Kind = "steal"
	Delay         Kind = "injected-delay"
	OwnWork       Kind = "own-work"
	Gap           Kind = "gap"
	CostlyPackets Kind = "costly-packets"
	ManySmall     Kind = "many-small"
)

// Causes that lose packets while the worker has its CPU, and answers without a culprit.
const (
	ReaderStopped Kind = "reader-stopped"
	RingOverflow  Kind = "ring-overflow"
	SmallRing     Kind = "small-ring"
	NoBuffers     Kind = "no-buffers"
	Skew          Kind = "skew"
	NoisyPort     Kind = "noisy-port"
	Drops         Kind = "drops"
	SmallBatches  Kind = "small-batches"
	Overload      Kind = "overload"
	ThreadEnded   Kind = "thread-ended"
	NoAnswer      Kind = "no-answer"
	NoInput       Kind = "no-input"
	Nothing       Kind = "nothing"
)
