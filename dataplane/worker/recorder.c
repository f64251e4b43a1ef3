// SPDX-License-Identifier: Apache-2.0
#include "worker/recorder.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>

// A critical section of one byte that nothing ever jumps to. The kernel requires the signature before the abort
// handler.
#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)
__asm__(".pushsection .text\n"
	"	.balign 4\n"
	"	.long " TEXT_OF(RSEQ_SIG) "\n"
					  "recorder_never_abort:\n"
					  "	.long 0\n"
					  "recorder_never:\n"
					  "	.long 0\n"
					  ".popsection\n");
extern const char recorder_never[], recorder_never_abort[];

static struct rseq_cs section = {
	.start_ip = (uintptr_t)recorder_never, .post_commit_offset = 1, .abort_ip = (uintptr_t)recorder_never_abort};

static struct rseq *own_rseq(void)
{
	// glibc has registered it, unless its tunable forbids that or the kernel refused.
	return __rseq_size > 0 ? (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset) : NULL;
}

static void recorder_arm(struct recorder *r)
{
	struct rseq *rseq = own_rseq();

	if (rseq == NULL || (int32_t)rseq->cpu_id < 0)
		return;
	r->armed = (volatile uint64_t *)&rseq->rseq_cs;
	r->mark = (uintptr_t)&section;
	r->sees_kernel = true;
}

static uint32_t recorder_present_cpu(const struct recorder *r)
{
	return r->sees_kernel ? *(volatile uint32_t *)&own_rseq()->cpu_id : (uint32_t)sched_getcpu();
}
#else
static void recorder_arm(struct recorder *r)
{
}

static uint32_t recorder_present_cpu(const struct recorder *r)
{
	return (uint32_t)sched_getcpu();
}
#endif

void recorder_init(struct recorder *r, const struct rte_graph *graph)
{
	graph_trail_init(&r->trail, graph);
	r->armed = &r->unarmed;
	r->unarmed = 1;
	r->mark = 1;
	r->generation = 1;
	r->since = rte_rdtsc();
	recorder_set_threshold(r, LONG_LOOP_US);
}

void recorder_enter(struct recorder *r)
{
	recorder_arm(r);
	r->cpu = recorder_present_cpu(r);
	r->loops = 1; // the fields that hold a loop's number use 0 for none
	recorder_return(r);
}

void recorder_taken(struct recorder *r)
{
	uint32_t cpu = recorder_present_cpu(r);

	r->taken++;
	r->taken_in = r->loops;
	r->moved += cpu != r->cpu;
	recorder_return(r);
}

void recorder_spent(struct recorder *r, enum loop_stage stage, uint64_t cycles)
{
	if (r->spent_in != r->loops)
		memset(r->spent, 0, sizeof(r->spent));
	r->spent_in = r->loops;
	r->spent[stage] += cycles;
}

// Returns the slot to overwrite: an expired one, or else that of the shortest loop; NULL if all recorded loops are
// longer.
static struct long_loop_slot *recorder_slot_for(struct recorder *r, uint64_t cycles, uint64_t now, uint32_t generation)
{
	struct long_loop_slot *s, *best = r->longest;

	for (s = r->longest; s < r->longest + LONGEST_LOOPS; s++) {
		if (s->generation != generation || now - s->loop.end > LONG_LOOP_FORGET_S * rte_get_tsc_hz())
			return s;
		if (s->loop.cycles < best->loop.cycles)
			best = s;
	}
	return best->loop.cycles < cycles ? best : NULL;
}

static struct loop_node *recorder_node(struct loop_node *nodes, unsigned *n, uint32_t node)
{
	unsigned i;

	for (i = 0; i < *n && nodes[i].node != node; i++)
		;
	if (i == *n)
		nodes[(*n)++] = (struct loop_node){.node = node};
	return &nodes[i];
}

// Sums the steps by node, the longest first.
static void recorder_sum_nodes(const struct graph_step *steps, unsigned n_steps, struct long_loop *l)
{
	struct loop_node nodes[GRAPH_TRAIL], *node;
	unsigned i, k, n = 0;

	for (i = 0; i < n_steps; i++) {
		node = recorder_node(nodes, &n, steps[i].node);
		node->runs++;
		node->cycles += steps[i].cycles;
	}
	l->n_nodes = RTE_MIN(n, (unsigned)LONG_LOOP_NODES);
	for (i = 0; i < l->n_nodes; i++) {
		node = &nodes[i];
		for (k = i + 1; k < n; k++)
			if (nodes[k].cycles > node->cycles)
				node = &nodes[k];
		l->nodes[i] = *node;
		*node = nodes[i];
	}
}

// Splits the loop's time into stages. The first node of a walk is the one that polls.
static void recorder_split(const struct recorder *r, uint64_t now, struct long_loop *l)
{
	uint64_t walk = r->trail.end - r->trail.begin, other = now - r->trail.end;
	struct graph_step steps[GRAPH_TRAIL];
	unsigned n = graph_steps(&r->trail, steps);

	memset(l->stages, 0, sizeof(l->stages));
	if (r->spent_in == r->loops)
		memcpy(l->stages, r->spent, sizeof(l->stages));
	l->stages[STAGE_RECEIVE] = n > 0 && n == r->trail.n ? steps[0].cycles : 0;
	l->stages[STAGE_GRAPH] = walk - l->stages[STAGE_RECEIVE];
	l->stages[STAGE_MESSAGES] = other - l->stages[STAGE_IDLE] - l->stages[STAGE_DELAY];
	recorder_sum_nodes(steps, n, l);
}

void recorder_long(struct recorder *r, uint64_t now, uint32_t packets)
{
	uint32_t generation = __atomic_load_n(&r->generation, __ATOMIC_RELAXED), cpu = recorder_present_cpu(r);
	uint64_t cycles = now - r->trail.begin;
	struct long_loop_slot *s = recorder_slot_for(r, cycles, now, generation);

	if (s) {
		__atomic_store_n(&s->sequence, s->sequence + 1, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_RELEASE);
		s->generation = generation;
		s->loop.end = now;
		s->loop.cycles = cycles;
		s->loop.packets = packets;
		s->loop.cpu = cpu;
		// An interruption between a loop's time stamp and its check of the pointer lengthens the next loop.
		s->loop.taken = r->taken_in != 0 && r->taken_in + 1 >= r->loops;
		s->loop.moved = cpu != r->cpu;
		recorder_split(r, now, &s->loop);
		__atomic_store_n(&s->sequence, s->sequence + 1, __ATOMIC_RELEASE);
	}
	r->cpu = cpu;
}

void recorder_set_threshold(struct recorder *r, uint32_t us)
{
	__atomic_store_n(&r->threshold, (uint64_t)us * rte_get_tsc_hz() / 1000000, __ATOMIC_RELAXED);
}

uint32_t recorder_threshold(const struct recorder *r)
{
	return (uint32_t)((r->threshold * 1000000 + rte_get_tsc_hz() / 2) / rte_get_tsc_hz());
}

void recorder_reset(struct recorder *r)
{
	histogram_copy(&r->busy_base, &r->busy);
	histogram_copy(&r->empty_base, &r->empty);
	r->taken_base = __atomic_load_n(&r->taken, __ATOMIC_RELAXED);
	r->moved_base = __atomic_load_n(&r->moved, __ATOMIC_RELAXED);
	r->since = rte_rdtsc();
	__atomic_store_n(&r->generation, r->generation + 1 ? r->generation + 1 : 1, __ATOMIC_RELAXED);
}

void recorder_counts(const struct recorder *r, struct histogram *busy, struct histogram *empty)
{
	histogram_copy(busy, &r->busy);
	histogram_subtract(busy, &r->busy_base);
	histogram_copy(empty, &r->empty);
	histogram_subtract(empty, &r->empty_base);
}

// False: it is empty, from before the reset, or being written right now.
static bool recorder_read_slot(const struct recorder *r, const struct long_loop_slot *s, struct long_loop *out)
{
	uint32_t sequence = __atomic_load_n(&s->sequence, __ATOMIC_ACQUIRE), generation = s->generation;

	if (sequence % 2 != 0 || generation != r->generation)
		return false;
	*out = s->loop;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&s->sequence, __ATOMIC_RELAXED) == sequence;
}

static unsigned recorder_buckets_used(const struct histogram *h)
{
	unsigned i = HISTOGRAM_BUCKETS;

	while (i > 0 && h->count[i - 1] == 0)
		i--;
	return i; // one past it
}

uint64_t recorder_max(const struct recorder *r, const struct histogram *busy, const struct histogram *empty)
{
	unsigned end = RTE_MAX(recorder_buckets_used(busy), recorder_buckets_used(empty)), i;
	struct long_loop l;
	uint64_t max = 0;

	if (end == 0)
		return 0;
	for (i = 0; i < LONGEST_LOOPS; i++)
		if (recorder_read_slot(r, &r->longest[i], &l) && histogram_bucket(l.cycles) == end - 1)
			max = RTE_MAX(max, l.cycles);
	return max ? max : histogram_most(end - 1);
}

static int recorder_longer(const void *a, const void *b)
{
	const struct long_loop *x = a, *y = b;

	return x->cycles > y->cycles ? -1 : x->cycles < y->cycles;
}

unsigned recorder_longest(const struct recorder *r, struct long_loop out[LONGEST_LOOPS])
{
	unsigned i, n = 0;

	for (i = 0; i < LONGEST_LOOPS; i++)
		n += recorder_read_slot(r, &r->longest[i], &out[n]);
	qsort(out, n, sizeof(out[0]), recorder_longer);
	return n;
}
