// SPDX-License-Identifier: Apache-2.0
// What the programs and internal/explain/kernel share.
#pragma once

#define MAX_CPUS 4096
#define MAX_WATCHED 64 // as many workers as a daemon can have

enum kind {            // of a sum; the id's meaning
	KIND_GAP = 1,  // 0: all time in which the worker was away from its CPU
	KIND_THREAD,   // tid that ran meanwhile, 0 = nobody: the CPU stood idle
	KIND_IRQ,      // number
	KIND_SOFTIRQ,  // number
	KIND_VECTOR,   // enum vector
	KIND_SYSCALL,  // number; time includes the gaps in it
	KIND_FAULT,    // 0; time is that of the faults that the kernel's memory management served
	KIND_TLB_SENT, // tid of the process that made others flush
	KIND_IPI_SENT, // tid that interrupted the worker's CPU
	KIND_RECEIVED, // interface index of packets that the kernel received on the worker's CPU, one in SAMPLE
	KIND_SIGNAL,   // tid that sent the process a signal that stops; in why: which
	KIND_AFFINITY, // tid that changed the affinity of the worker
};

enum why {             // a worker was away
	WHY_TAKEN = 1, // ready to run
	WHY_YIELD,     // by sched_yield
	WHY_SLEEP,     // waited in a system call
	WHY_STOPPED,   // by a signal, a debugger
	WHY_FROZEN,    // by the freezer
	WHY_FAULT,     // for memory
	WHY_MOVED,     // to another CPU, where it may run
};

enum vector {
	VECTOR_TIMER = 1,
	VECTOR_RESCHEDULE,
	VECTOR_CALL,
	VECTOR_CALL_SINGLE,
	VECTOR_IRQ_WORK,
	VECTOR_FLUSH, // a function call that flushed translations
};

#define SAMPLE 32

struct key {
	__u32 cpu;    // of the worker
	__u32 worker; // tid; 0: nobody's
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
	char name[16];
	__u32 zero;
};

struct worker {          // by tid
	__u64 out_since; // ns of the kernel's monotonic clock; 0: has its CPU
	__u64 syscall_since;
	__u64 fault_since;
	__u64 given;   // ns away during the present system call
	__u32 syscall; // number + 1, 0 = none
	__u32 why;
	__u32 home; // its CPU
	__u32 zero;
	// The thread that had most of the present gap.
	__u64 most;
	__u32 most_tid;
	__u32 most_pid;
	char most_name[16];
};

struct cpu {               // of those that workers have
	__u64 slice_since; // the thread that runs now, 0 = not known
	__u64 irq_since, softirq_since, vector_since;
	__u32 out; // tid of the worker that was last sent away, and is still; 0 = none
	__u32 received;
	__u64 second; // of the records below
	__u32 records;
	__u32 running; // tid that came last
	__u32 flushed; // translations, in the vector that is handled now
	__u32 zero;
};

struct gap {              // one record, in order of time by CPU
	__u64 start, end; // ns of the kernel's monotonic clock
	__u32 cpu, worker;
	__u32 id, pid; // who had most of it
	__u8 kind, why;
	__u16 zero;
	char name[16];
	__u32 zero2;
};
