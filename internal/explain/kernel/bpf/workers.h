// SPDX-License-Identifier: Apache-2.0
// Types that the programs share with internal/explain/kernel.
#pragma once

#define MAX_CPUS 4096
#define MAX_WATCHED 64 // most workers of a daemon

enum kind {            // of a sum, with the meaning of its id
	KIND_GAP = 1,  // 0: all time in which the worker was away from its CPU
	KIND_THREAD,   // tid that ran meanwhile; 0: the CPU was idle
	KIND_IRQ,      // number
	KIND_SOFTIRQ,  // number
	KIND_VECTOR,   // enum vector
	KIND_SYSCALL,  // number; the time excludes the gaps in it
	KIND_FAULT,    // 0; the time is that of the kernel's handle_mm_fault
	KIND_TLB_SENT, // tid of the process that made other CPUs flush their TLB
	KIND_IPI_SENT, // tid that interrupted the worker's CPU
	KIND_RECEIVED, // interface index of packets that the kernel received on the worker's CPU, one in SAMPLE
	KIND_SIGNAL,   // tid that sent the process a stop or continue signal; why is its number
	KIND_AFFINITY, // tid that changed the affinity of the worker
	KIND_TRACED,   // tid that attached to the worker or stopped it by ptrace
	KIND_FREEZER,  // tid that froze or thawed a control group
};

enum why {             // reason for which a worker was away from its CPU
	WHY_TAKEN = 1, // it was ready to run
	WHY_YIELD,     // it called sched_yield
	WHY_SLEEP,     // it waited in a system call
	WHY_STOPPED,   // it was stopped by a signal or a debugger
	WHY_FROZEN,    // it was stopped by the freezer
	WHY_FAULT,     // it waited for memory
	WHY_MOVED,     // it was moved to another CPU, where it may run
};

enum vector {
	VECTOR_TIMER = 1,
	VECTOR_RESCHEDULE,
	VECTOR_CALL,
	VECTOR_CALL_SINGLE,
	VECTOR_IRQ_WORK,
	VECTOR_FLUSH, // a function call that flushed the TLB
};

#define SAMPLE 32

struct key {
	__u32 cpu;    // of the worker
	__u32 worker; // tid; 0: the event belongs to the CPU
	__u32 id;
	__u8 kind;
	__u8 why;
	__u16 zero;
};

struct sum {
	__u64 ns;
	__u64 count;
	__u64 longest; // ns
	__u32 pid;     // process of a thread
	__u32 parent;  // of that process
	char name[16];
	char parent_name[16];
};

struct worker {          // by tid
	__u64 out_since; // ns of the kernel's monotonic clock; 0: it has its CPU
	__u64 syscall_since;
	__u64 fault_since;
	__u64 given;   // ns for which it was away in the current system call or page fault
	__u32 syscall; // number + 1, 0 = none
	__u32 why;
	__u32 home;    // the CPU of the worker
	__u32 assumed; // out_since is when the watch began, and it is not known yet whether the worker had its CPU then
	// The thread that had most of the current gap.
	__u64 most;
	__u32 most_tid;
	__u32 most_pid;
	char most_name[16];
};

struct cpu {               // a CPU of a worker
	__u64 slice_since; // when the running thread was switched in; 0: not known
	__u64 irq_since, softirq_since, vector_since;
	__u32 out; // tid of the worker that left last and is still away; 0: none
	__u32 received;
	__u64 second; // begin of the second in which records are counted
	__u32 records;
	__u32 running; // tid that was switched in last
	__u32 flushed; // the current vector flushed the TLB
	__u32 zero;
};

struct gap {              // one record; those of a CPU are in order of time
	__u64 start, end; // ns of the kernel's monotonic clock
	__u32 cpu, worker;
	__u32 id, pid; // the thread or interrupt that had most of it
	__u8 kind, why;
	__u16 zero;
	char name[16];
	__u32 zero2;
};
