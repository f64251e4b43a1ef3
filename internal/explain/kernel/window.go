// SPDX-License-Identifier: Apache-2.0
package kernel

// Kind of a Sum; it defines the meaning of the ID. bpf/workers.h has the same numbers.
type Kind uint8

// Kinds of sums.
const (
	KindGap      Kind = iota + 1 // the worker was away from its CPU; no ID
	KindThread                   // tid that ran meanwhile; 0: the CPU was idle
	KindIRQ                      // number of the line
	KindSoftirq                  // number, see Softirqs
	KindVector                   // number, see Vectors
	KindSyscall                  // number of the call; the time excludes the gaps in it
	KindFault                    // page faults of the worker; no ID
	KindTLBSent                  // tid of the process that made other CPUs flush their TLB
	KindIPISent                  // tid that interrupted the worker's CPU
	KindReceived                 // interface index of packets that the kernel received on that CPU, one in Sample
	KindSignal                   // tid that sent the process a stop or continue signal; Why is its number
	KindAffinity                 // tid that changed the worker's affinity
	KindTraced                   // tid that attached to the worker or stopped it by ptrace
	KindFreezer                  // tid that froze or thawed a control group
)

// Why a worker was away from its CPU.
type Why uint8

// Reasons of gaps.
const (
	WhyTaken   Why = iota + 1 // it was ready to run
	WhyYield                  // it called sched_yield
	WhySleep                  // it waited in a system call
	WhyStopped                // it was stopped by a signal or a debugger
	WhyFrozen                 // it was stopped by the freezer
	WhyFault                  // it waited for memory
	WhyMoved                  // it was moved to another CPU, where it may run
)

// Sample is the number of received packets of which one is counted.
const Sample = 32

// Softirqs by number (include/linux/interrupt.h).
var Softirqs = []string{"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"}

// Vectors by number.
var Vectors = []string{
	"", "local timer", "reschedule", "function call", "single function call", "irq work", "TLB flush",
}

// Numbers of Vectors.
const (
	VectorTimer      = 1
	VectorReschedule = 2
	VectorCall       = 3
	VectorCallSingle = 4
	VectorIRQWork    = 5
	VectorFlush      = 6 // a function call that flushed the TLB
)

// Sum adds up the events of one kind and ID that happened to one worker.
type Sum struct {
	CPU     int    `json:"cpu"`
	Worker  int    `json:"worker"` // tid; 0: the event belongs to the CPU
	Kind    Kind   `json:"kind"`
	Why     Why    `json:"why,omitempty"`
	ID      int    `json:"id"`
	NS      int64  `json:"ns"`
	Count   int64  `json:"count"`
	Longest int64  `json:"longest_ns"`
	PID     int    `json:"pid,omitempty"`
	Name    string `json:"name,omitempty"`
	// the process that started the process of a thread
	Parent     int    `json:"parent,omitempty"`
	ParentName string `json:"parent_name,omitempty"`
}

// Gap is one interval in which a worker did not have its CPU.
type Gap struct {
	From   int64  `json:"from_ns"` // since the window began
	NS     int64  `json:"ns"`
	CPU    int    `json:"cpu"`
	Worker int    `json:"worker"` // tid
	Kind   Kind   `json:"kind"`   // KindThread, KindIRQ, KindSoftirq, KindVector
	Why    Why    `json:"why,omitempty"`
	ID     int    `json:"id"` // the thread or interrupt that had most of it
	PID    int    `json:"pid,omitempty"`
	Name   string `json:"name,omitempty"`
}

// Window has the events between Begin and End.
type Window struct {
	Sums    []Sum    `json:"sums"`
	Gaps    []Gap    `json:"gaps"`
	Missing []string `json:"missing,omitempty"` // events that this kernel does not report
	Lost    uint64   `json:"lost,omitempty"`    // gaps that are only in the sums
}
