// SPDX-License-Identifier: Apache-2.0
// Programs that find out what runs on the CPUs of workers while the workers do not. They keep sums, and record each
// long gap. A worker that spins alone on its CPU triggers them only by its timer interrupts.
#include "kernel.h"
#include "workers.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

volatile const __u32 daemon_pid;
volatile const __u64 record_ns;      // shortest gap that is recorded
volatile const __u32 records_second; // most records per second and CPU
volatile const __u32 nr_yield, nr_setaffinity, nr_ptrace, n_watched;
volatile const __u32 watched_cpus[MAX_WATCHED];
volatile const __u8 watched[MAX_CPUS];

__u64 lost_sums, lost_records;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct key);
	__type(value, struct sum);
} sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_WATCHED);
	__type(key, __u32);
	__type(value, struct worker);
} workers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CPUS);
	__type(key, __u32);
	__type(value, struct cpu);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} gaps SEC(".maps");

const struct gap *type_of_a_record __attribute__((unused)); // makes the object describe the type

static __always_inline bool is_watched(__u32 cpu)
{
	return cpu < MAX_CPUS && watched[cpu];
}

// A worker that runs was not away when the watch began.
static __always_inline void runs(struct worker *w)
{
	if (w && w->assumed) {
		w->assumed = 0;
		w->out_since = 0;
	}
}

static __always_inline struct worker *current_worker(__u32 *tid)
{
	struct worker *w;

	*tid = (__u32)bpf_get_current_pid_tgid();
	w = bpf_map_lookup_elem(&workers, tid);
	runs(w);
	return w;
}

static __always_inline struct sum *sum_of(const struct key *key)
{
	struct sum *s = bpf_map_lookup_elem(&sums, key);
	struct sum none = {};

	if (s)
		return s;
	if (bpf_map_update_elem(&sums, key, &none, BPF_NOEXIST) == -7) // E2BIG: full
		__sync_fetch_and_add(&lost_sums, 1);
	return bpf_map_lookup_elem(&sums, key);
}

static __always_inline struct sum *add(const struct key *key, __u64 ns, __u64 count)
{
	struct sum *s = sum_of(key);

	if (!s)
		return NULL;
	__sync_fetch_and_add(&s->ns, ns);
	__sync_fetch_and_add(&s->count, count);
	if (ns > s->longest)
		s->longest = ns;
	return s;
}

// Notes the process of a thread, and the one that started it.
static __always_inline void describe(struct sum *s, struct task_struct *t)
{
	s->pid = BPF_CORE_READ(t, tgid);
	BPF_CORE_READ_INTO(&s->name, t, comm);
	s->parent = BPF_CORE_READ(t, real_parent, tgid);
	BPF_CORE_READ_INTO(&s->parent_name, t, real_parent, comm);
}

// Reserves a record, unless this CPU has used up the number of records that it may write per second.
static __always_inline struct gap *record(struct cpu *c, __u64 now)
{
	struct gap *g;

	if (now - c->second > 1000000000) {
		c->second = now;
		c->records = 0;
	}
	g = c->records++ < records_second ? bpf_ringbuf_reserve(&gaps, sizeof(*g), 0) : NULL;
	if (!g)
		__sync_fetch_and_add(&lost_records, 1);
	return g;
}

// --- threads

static __always_inline __u32 state_of(struct task_struct *t)
{
	if (bpf_core_field_exists(t->__state))
		return BPF_CORE_READ(t, __state);
	return (__u32)BPF_CORE_READ((struct task_struct___old *)t, state);
}

static __always_inline __u32 why_out(const struct worker *w, struct task_struct *t, __u32 state, bool preempt)
{
	if (state == 0 || preempt)
		return w->syscall == nr_yield + 1 && !preempt ? WHY_YIELD : WHY_TAKEN;
	if (state & 0x4 || state & 0x8) // __TASK_STOPPED, __TASK_TRACED
		return WHY_STOPPED;
	if (state & 0x8000 || BPF_CORE_READ(t, jobctl) & 1 << 23) // TASK_FROZEN; JOBCTL_TRAP_FREEZE of cgroup v2
		return WHY_FROZEN;
	if (w->fault_since)
		return WHY_FAULT;
	return WHY_SLEEP;
}

static __always_inline void worker_out(struct cpu *c, struct worker *w, struct task_struct *prev, __u32 state,
				       bool preempt, __u64 now)
{
	w->out_since = now;
	w->why = why_out(w, prev, state, preempt);
	w->most = 0;
	c->out = BPF_CORE_READ(prev, pid);
}

// Ends a gap of a worker, or the part of it that had one reason.
static __always_inline void gap_ends(struct cpu *c, __u32 cpu, __u32 tid, struct worker *w, __u64 now)
{
	struct key key = {.cpu = cpu, .worker = tid, .kind = KIND_GAP, .why = (__u8)w->why};
	__u64 start = w->out_since, ns = now - start;
	struct gap *g;

	w->out_since = 0;
	if (start == 0)
		return;
	w->given += ns;
	add(&key, ns, 1);
	g = ns >= record_ns ? record(c, now) : NULL;
	if (!g)
		return;
	*g = (struct gap){.start = start,
			  .end = now,
			  .cpu = cpu,
			  .worker = tid,
			  .id = w->most_tid,
			  .pid = w->most_pid,
			  .kind = KIND_THREAD,
			  .why = (__u8)w->why};
	__builtin_memcpy(g->name, w->most_name, sizeof(g->name));
	bpf_ringbuf_submit(g, BPF_RB_NO_WAKEUP);
}

static __always_inline void worker_in(struct cpu *c, __u32 cpu, __u32 tid, struct worker *w, __u64 now)
{
	if (c->out == tid)
		c->out = 0;
	gap_ends(c, cpu, tid, w, now);
}

// Counts the time that prev had on the CPU while the worker c->out was away.
static __always_inline void slice(struct cpu *c, __u32 cpu, struct task_struct *prev, __u32 tid, __u64 now)
{
	struct worker *w = bpf_map_lookup_elem(&workers, &c->out);
	struct key key = {.cpu = cpu, .worker = c->out, .id = tid, .kind = KIND_THREAD};
	__u64 ns = now - c->slice_since;
	struct sum *s;

	if (!w || w->out_since == 0)
		return;
	w->assumed = 0;
	key.why = (__u8)w->why;
	s = add(&key, ns, 1);
	if (s && s->count == 1)
		describe(s, prev);
	if (s && ns > w->most) {
		w->most = ns;
		w->most_tid = tid;
		w->most_pid = s->pid;
		__builtin_memcpy(w->most_name, s->name, sizeof(w->most_name));
	}
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u32 cpu = bpf_get_smp_processor_id(), from, to;
	struct worker *w;
	struct cpu *c;
	__u64 now;

	if (!is_watched(cpu))
		return 0;
	c = bpf_map_lookup_elem(&cpus, &cpu);
	if (!c)
		return 0;
	now = bpf_ktime_get_ns();
	from = BPF_CORE_READ(prev, pid);
	to = BPF_CORE_READ(next, pid);
	runs(bpf_map_lookup_elem(&workers, &from));
	if (c->out && c->out != from && c->slice_since)
		slice(c, cpu, prev, from, now);
	w = bpf_map_lookup_elem(&workers, &from);
	if (w && w->home == cpu && w->why != WHY_MOVED)
		worker_out(c, w, prev, state_of(prev), preempt, now);
	w = bpf_map_lookup_elem(&workers, &to);
	if (w && w->home == cpu)
		worker_in(c, cpu, to, w, now);
	c->slice_since = now;
	c->running = to;
	return 0;
}

// A worker is moved to another CPU, or back to its own to wait there. It is moved while it waits or just after it ran.
SEC("tp_btf/sched_migrate_task")
int BPF_PROG(on_migrate, struct task_struct *p, int to)
{
	__u32 tid = BPF_CORE_READ(p, pid), home;
	struct worker *w = bpf_map_lookup_elem(&workers, &tid);
	struct cpu *c;
	__u64 now;

	if (!w)
		return 0;
	home = w->home;
	c = bpf_map_lookup_elem(&cpus, &home);
	if (!c || ((__u32)to == home) != (w->why == WHY_MOVED))
		return 0;
	now = bpf_ktime_get_ns();
	gap_ends(c, home, tid, w, now);
	w->out_since = now;
	w->why = (__u32)to == home ? WHY_TAKEN : WHY_MOVED;
	w->most = 0;
	c->out = (__u32)to == home ? tid : 0;
	c->slice_since = now;
	return 0;
}

// --- interrupts

// An interrupt of another thread shows that the worker was away when the watch began, and which thread had its CPU.
static __always_inline void ran_instead(struct cpu *c, __u32 tid)
{
	struct worker *w = bpf_map_lookup_elem(&workers, &c->out);

	if (!w || !w->assumed)
		return;
	w->assumed = 0;
	c->running = tid;
}

// Returns the current CPU if it belongs to a worker that is interrupted; NULL if another thread is.
static __always_inline struct cpu *interrupted(__u32 *cpu, __u32 *tid)
{
	struct cpu *c;
	bool worker;

	*cpu = bpf_get_smp_processor_id();
	if (!is_watched(*cpu))
		return NULL;
	worker = current_worker(tid) != NULL;
	c = bpf_map_lookup_elem(&cpus, cpu);
	if (c && !worker)
		ran_instead(c, *tid);
	return worker ? c : NULL;
}

static __always_inline struct sum *interruption(struct cpu *c, const struct key *key, __u64 since, __u64 now)
{
	struct sum *s = add(key, now - since, 1);
	struct gap *g = now - since >= record_ns ? record(c, now) : NULL;

	if (!g)
		return s;
	*g = (struct gap){
		.start = since, .end = now, .cpu = key->cpu, .worker = key->worker, .id = key->id, .kind = key->kind};
	if (s)
		__builtin_memcpy(g->name, s->name, sizeof(g->name));
	bpf_ringbuf_submit(g, BPF_RB_NO_WAKEUP);
	return s;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(on_irq, int irq, struct irqaction *action)
{
	__u32 cpu, tid;
	struct cpu *c = interrupted(&cpu, &tid);

	if (c && c->softirq_since == 0) // in one, its time is the softirq's
		c->irq_since = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(on_irq_end, int irq, struct irqaction *action)
{
	__u32 cpu, tid;
	struct cpu *c = interrupted(&cpu, &tid);
	struct key key = {.kind = KIND_IRQ, .id = (__u32)irq};
	struct sum *s;

	if (!c || c->irq_since == 0)
		return 0;
	key.cpu = cpu;
	key.worker = tid;
	s = interruption(c, &key, c->irq_since, bpf_ktime_get_ns());
	c->irq_since = 0;
	if (s && s->name[0] == 0)
		bpf_probe_read_kernel_str(s->name, sizeof(s->name), BPF_CORE_READ(action, name));
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(on_softirq, unsigned int number)
{
	__u32 cpu, tid;
	struct cpu *c = interrupted(&cpu, &tid);

	if (c)
		c->softirq_since = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(on_softirq_end, unsigned int number)
{
	__u32 cpu, tid;
	struct cpu *c = interrupted(&cpu, &tid);
	struct key key = {.kind = KIND_SOFTIRQ, .id = number};

	if (!c || c->softirq_since == 0)
		return 0;
	key.cpu = cpu;
	key.worker = tid;
	interruption(c, &key, c->softirq_since, bpf_ktime_get_ns());
	c->softirq_since = 0;
	return 0;
}

static __always_inline int vector_begins(void)
{
	__u32 cpu, tid;
	struct cpu *c = interrupted(&cpu, &tid);

	if (c && c->softirq_since == 0) {
		c->vector_since = bpf_ktime_get_ns();
		c->flushed = 0;
	}
	return 0;
}

static __always_inline int vector_ends(enum vector which)
{
	__u32 cpu, tid;
	struct cpu *c = interrupted(&cpu, &tid);
	struct key key = {.kind = KIND_VECTOR, .id = which};

	if (!c || c->vector_since == 0)
		return 0;
	key.cpu = cpu;
	key.worker = tid;
	if (c->flushed && (which == VECTOR_CALL || which == VECTOR_CALL_SINGLE))
		key.id = VECTOR_FLUSH;
	interruption(c, &key, c->vector_since, bpf_ktime_get_ns());
	c->vector_since = 0;
	return 0;
}

#define VECTOR(name, which)                       \
	SEC("tp_btf/" #name "_entry")             \
	int BPF_PROG(on_##name, int vector)       \
	{                                         \
		return vector_begins();           \
	}                                         \
	SEC("tp_btf/" #name "_exit")              \
	int BPF_PROG(on_##name##_end, int vector) \
	{                                         \
		return vector_ends(which);        \
	}

VECTOR(local_timer, VECTOR_TIMER)
VECTOR(reschedule, VECTOR_RESCHEDULE)
VECTOR(call_function, VECTOR_CALL)
VECTOR(call_function_single, VECTOR_CALL_SINGLE)
VECTOR(irq_work, VECTOR_IRQ_WORK)

// --- senders of interrupts and signals, and received packets

static __always_inline void sent_by_current(struct key *key)
{
	struct task_struct *t = (struct task_struct *)bpf_get_current_task();
	struct sum *s;

	key->id = (__u32)bpf_get_current_pid_tgid();
	s = add(key, 0, 1);
	if (s && s->count == 1)
		describe(s, t);
}

SEC("tp_btf/ipi_send_cpu")
int BPF_PROG(on_ipi, unsigned int cpu)
{
	struct key key = {.kind = KIND_IPI_SENT, .cpu = cpu};

	if (is_watched(cpu))
		sent_by_current(&key);
	return 0;
}

SEC("tp_btf/ipi_send_cpumask")
int BPF_PROG(on_ipi_mask, const unsigned long *mask)
{
	struct key key = {.kind = KIND_IPI_SENT};
	unsigned long word;
	unsigned i;

	for (i = 0; i < MAX_WATCHED && i < n_watched; i++) {
		key.cpu = watched_cpus[i];
		if (bpf_probe_read_kernel(&word, sizeof(word), &mask[key.cpu / 64]) == 0 && word >> (key.cpu % 64) & 1)
			sent_by_current(&key);
	}
	return 0;
}

SEC("tp_btf/tlb_flush")
int BPF_PROG(on_tlb_flush, int reason, unsigned long pages)
{
	struct key key = {.kind = KIND_TLB_SENT};
	__u32 cpu = bpf_get_smp_processor_id();
	struct cpu *c;

	if (reason == 4 && bpf_get_current_pid_tgid() >> 32 == daemon_pid) { // TLB_REMOTE_SEND_IPI
		sent_by_current(&key);
	} else if (reason == 1 && is_watched(cpu)) { // TLB_REMOTE_SHOOTDOWN
		c = bpf_map_lookup_elem(&cpus, &cpu);
		if (c)
			c->flushed = 1;
	}
	return 0;
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(on_received, struct sk_buff *skb)
{
	struct key key = {.kind = KIND_RECEIVED, .cpu = bpf_get_smp_processor_id()};
	struct net_device *dev;
	struct cpu *c;
	struct sum *s;

	if (!is_watched(key.cpu))
		return 0;
	c = bpf_map_lookup_elem(&cpus, &key.cpu);
	if (!c || c->received++ % SAMPLE != 0)
		return 0;
	dev = BPF_CORE_READ(skb, dev);
	key.id = (__u32)BPF_CORE_READ(dev, ifindex);
	s = add(&key, 0, 1);
	if (s && s->name[0] == 0)
		BPF_CORE_READ_INTO(&s->name, dev, name);
	return 0;
}

SEC("tp_btf/signal_generate")
int BPF_PROG(on_signal, int sig, void *info, struct task_struct *task)
{
	struct key key = {.kind = KIND_SIGNAL, .why = (__u8)sig};

	if (sig >= 18 && sig <= 22 && (__u32)BPF_CORE_READ(task, tgid) == daemon_pid) // SIGCONT, STOP, TSTP, TTIN, TTOU
		sent_by_current(&key);
	return 0;
}

// Who freezes or thaws a control group, whichever it is. Version 1 has no event for that, so its function is hooked.
static __always_inline int freezer(void)
{
	struct key key = {.kind = KIND_FREEZER};

	sent_by_current(&key);
	return 0;
}

SEC("tp_btf/cgroup_freeze")
int BPF_PROG(on_freeze)
{
	return freezer();
}

SEC("tp_btf/cgroup_unfreeze")
int BPF_PROG(on_thaw)
{
	return freezer();
}

SEC("fentry/freezer_write")
int BPF_PROG(on_freezer_v1)
{
	return freezer();
}

// --- system calls and page faults of workers, and system calls that change their affinity

// The registers of a system call's first two arguments on x86-64.
struct pt_regs___x86 {
	unsigned long di, si;
} KERNEL;

// Counts a system call that does something to a worker.
static __always_inline void done_to(__u32 tid, enum kind kind)
{
	struct worker *w = bpf_map_lookup_elem(&workers, &tid);
	struct key key = {.kind = kind, .worker = tid};

	if (!w)
		return;
	key.cpu = w->home;
	sent_by_current(&key);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_syscall, void *regs, long number)
{
	struct worker *w;
	__u32 tid;

	if (number == nr_setaffinity)
		done_to((__u32)BPF_CORE_READ((struct pt_regs___x86 *)regs, di), KIND_AFFINITY);
	else if (number == nr_ptrace)
		done_to((__u32)BPF_CORE_READ((struct pt_regs___x86 *)regs, si), KIND_TRACED);
	if (!is_watched(bpf_get_smp_processor_id()))
		return 0;
	w = current_worker(&tid);
	if (!w)
		return 0;
	w->syscall_since = bpf_ktime_get_ns();
	w->given = 0;
	w->syscall = (__u32)number + 1;
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_syscall_end, void *regs, long ret)
{
	struct key key = {.kind = KIND_SYSCALL, .cpu = bpf_get_smp_processor_id()};
	struct worker *w;
	__u64 ns;

	if (!is_watched(key.cpu))
		return 0;
	w = current_worker(&key.worker);
	if (!w || w->syscall == 0)
		return 0;
	key.id = w->syscall - 1;
	ns = bpf_ktime_get_ns() - w->syscall_since;
	add(&key, ns > w->given ? ns - w->given : 0, 1);
	w->syscall = 0;
	return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_fault, unsigned long address)
{
	struct key key = {.kind = KIND_FAULT, .cpu = bpf_get_smp_processor_id()};
	struct worker *w;

	if (!is_watched(key.cpu))
		return 0;
	w = current_worker(&key.worker);
	if (!w)
		return 0;
	w->fault_since = bpf_ktime_get_ns();
	w->given = 0;
	add(&key, 0, 1);
	return 0;
}

SEC("fexit/handle_mm_fault")
int BPF_PROG(on_fault_end)
{
	struct key key = {.kind = KIND_FAULT, .cpu = bpf_get_smp_processor_id()};
	struct worker *w;
	__u64 ns;

	if (!is_watched(key.cpu))
		return 0;
	w = current_worker(&key.worker);
	if (!w || w->fault_since == 0)
		return 0;
	ns = bpf_ktime_get_ns() - w->fault_since;
	add(&key, ns > w->given ? ns - w->given : 0, 0);
	w->fault_since = 0;
	return 0;
}
