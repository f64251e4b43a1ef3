// SPDX-License-Identifier: Apache-2.0
#include "worker/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_malloc.h>

#include "base/log.h"
#include "base/rcu.h"
#include "base/setting.h"
#include "port/registry.h"
#include "worker/balance.h"
#include "worker/spread.h"
#include "worker/worker.h"

#define POLL_COST 0.25  // share of a packet's cost that its poller bears when another worker finishes it
#define BUSY 0.80       // a port in mode auto is spread when a poller uses more than this share of its time
#define QUIET 0.50      // and no longer, when all workers together use less than this share of its pollers' time
#define QUIET_SECONDS 3 // for this long
#define NEW_SHARE 0.5   // weight of the last second in the moving averages

uint32_t rebalance_seconds;
SETTING(rebalance_seconds, rebalance_seconds);

static struct { // of each queue
	uint64_t packets;
	double rate;
} queues[PORT_MAX][PORT_MAX_QUEUES];

static struct {
	uint64_t busy, idle;
	double share;
} workers[WORKER_MAX];

static double seconds; // length of the last interval

static void load_follow(double *value, double sample)
{
	*value += (sample - *value) * NEW_SHARE;
}

static void load_sample_queue(struct port_queue *q)
{
	uint64_t now = __atomic_load_n(&q->rx_packets, __ATOMIC_RELAXED),
		 *last = &queues[q->port->id][q->index].packets;
	struct spread_view *v = q->view;
	unsigned i;

	load_follow(&queues[q->port->id][q->index].rate, now >= *last ? (double)(now - *last) / seconds : 0);
	*last = now;
	for (i = 0; v && i < SPREAD_ENTRIES; i++) {
		load_follow(&v->rate[i], (double)(v->load[i] - v->seen[i]) / seconds);
		v->seen[i] = v->load[i];
	}
}

static void load_sample_worker(const struct worker *w)
{
	uint64_t busy = w->busy_cycles, idle = w->idle_cycles,
		 all = busy + idle - workers[w->id].busy - workers[w->id].idle;

	if (busy >= workers[w->id].busy && idle >= workers[w->id].idle && all > 0)
		load_follow(&workers[w->id].share, (double)(busy - workers[w->id].busy) / (double)all);
	else
		workers[w->id].share = 0; // a new worker with this id
	workers[w->id].busy = busy;
	workers[w->id].idle = idle;
}

double load_of_queue(const struct port_queue *q)
{
	return queues[q->port->id][q->index].rate;
}

double load_of_worker(const struct worker *w)
{
	return workers[w->id].share;
}

// --- Ports in mode auto. ---

static double load_busiest_poller(const struct port *p)
{
	double most = 0;
	unsigned i;

	for (i = 0; i < p->n_queues; i++)
		if (p->queues[i].rx_worker != WORKER_NONE && workers[p->queues[i].rx_worker].share > most)
			most = workers[p->queues[i].rx_worker].share;
	return most;
}

static double load_of_all(void)
{
	struct worker *w;
	double sum = 0;

	for (w = worker_next(NULL); w; w = worker_next(w))
		if (w->role == WORKER_FORWARDING)
			sum += workers[w->id].share;
	return sum;
}

static unsigned load_pollers(const struct port *p)
{
	uint64_t seen = 0;
	unsigned i;

	for (i = 0; i < p->n_queues; i++)
		if (p->queues[i].rx_worker != WORKER_NONE)
			seen |= 1ull << p->queues[i].rx_worker;
	return (unsigned)__builtin_popcountll(seen);
}

static bool load_auto_port(struct port *p)
{
	struct spread_port *s = &spread_ports[p->id];

	if (!s->busy && load_busiest_poller(p) > BUSY) {
		s->busy = true;
		s->quiet_seconds = 0;
		return true;
	}
	s->quiet_seconds = s->busy && load_of_all() < QUIET * load_pollers(p) ? s->quiet_seconds + 1 : 0;
	if (s->quiet_seconds < QUIET_SECONDS)
		return false;
	s->busy = false;
	s->quiet_seconds = 0;
	return true;
}

static void load_auto_ports(void)
{
	bool changed = false;
	struct port *p;

	for (p = port_next(NULL); p; p = port_next(p)) {
		if (spread_config(&p->cfg)->mode != PORT_AUTO || !load_auto_port(p))
			continue;
		LOG(INFO, "port %s is %s spread over workers", p->cfg.name,
		    spread_ports[p->id].busy ? "now" : "no longer");
		changed = true;
	}
	if (changed)
		spread_refresh(NULL);
}

// --- Rebalancing. ---

struct subject { // what an item of balance() stands for: a queue, or an entry of a port's table
	struct port *port;
	struct port_queue *queue;
	unsigned entry;
	uint32_t was;
};

struct work {
	struct balance_worker workers[WORKER_MAX];
	struct balance_item *items;
	struct subject *subjects; // one for each item
	unsigned n;
};

static void load_add_item(struct work *k, struct port *p, struct port_queue *q, unsigned entry, uint32_t worker,
			  double load)
{
	k->subjects[k->n] = (struct subject){p, q, entry, worker};
	k->items[k->n++] = (struct balance_item){worker, load};
}

static void load_add_queue(struct work *k, struct port_queue *q)
{
	struct worker *w = worker_get(q->rx_worker);
	bool spread = spread_ports[q->port->id].table != NULL;
	double rate = load_of_queue(q);

	if (w == NULL)
		return;
	if (w->role == WORKER_FORWARDING && !spread && spread_config(&q->port->cfg)->polled_by[q->index])
		k->workers[w->id].load += rate; // it is configured for this worker
	else if (w->role == WORKER_FORWARDING && !spread)
		load_add_item(k, q->port, q, 0, w->id, rate);
	else if (w->role == WORKER_FORWARDING)
		k->workers[w->id].load += rate * POLL_COST;
	else if (!spread && w->target < WORKER_MAX && q->port->role != PORT_HOST)
		k->workers[w->target].load += rate;
}

// While all entries lead to one worker they are not measured one by one: each gets the same share, until some have
// moved.
static double load_of_entry(const struct port_queue *q, unsigned entry)
{
	const struct spread_view *v = q->view;

	if (v == NULL)
		return 0;
	return v->all_to == SPREAD_SEVERAL ? v->rate[entry] : load_of_queue(q) / SPREAD_ENTRIES;
}

static void load_add_entries(struct work *k, struct port *p)
{
	const struct spread *s = spread_ports[p->id].table;
	unsigned i, e;

	for (e = 0; e < SPREAD_ENTRIES; e++) {
		double rate = 0;

		for (i = 0; i < p->n_queues; i++)
			rate += load_of_entry(&p->queues[i], e);
		if (s->to[e] < WORKER_MAX)
			load_add_item(k, p, NULL, e, s->to[e], rate);
	}
}

static int load_gather(struct work *k)
{
	struct worker *w;
	struct port *p;
	unsigned i, n = 0;

	for (p = port_next(NULL); p; p = port_next(p))
		n += p->n_queues + (spread_ports[p->id].table ? SPREAD_ENTRIES : 0);
	memset(k, 0, sizeof(*k));
	k->items = calloc(n + 1, sizeof(*k->items));
	k->subjects = calloc(n + 1, sizeof(*k->subjects));
	if (k->items == NULL || k->subjects == NULL)
		return -ENOMEM;
	for (w = worker_next(NULL); w; w = worker_next(w)) {
		k->workers[w->id].eligible = w->role == WORKER_FORWARDING && !w->leaving;
		k->workers[w->id].numa = w->numa;
	}
	for (p = port_next(NULL); p; p = port_next(p)) {
		for (i = 0; i < p->n_queues; i++)
			load_add_queue(k, &p->queues[i]);
		if (spread_ports[p->id].table)
			load_add_entries(k, p);
	}
	return 0;
}

// Entries of one port that move between the same two workers become one move.
static void load_add_move(struct load_plan *plan, const struct subject *subject, const struct balance_item *item)
{
	const struct load_move new = {subject->queue, subject->port->id, 0, subject->was, item->worker, 0};
	struct load_move *m;
	unsigned i;

	for (i = 0; i < plan->n; i++) {
		m = &plan->moves[i];
		if (!new.queue && !m->queue && m->port == new.port && m->from == new.from && m->to == new.to)
			break;
	}
	m = &plan->moves[i];
	if (i == plan->n)
		plan->moves[plan->n++] = new;
	m->entries += new.queue == NULL;
	m->packets += item->load;
}

static int load_apply_moves(const struct work *k, struct error *err)
{
	unsigned i;
	int ret = 0;

	for (i = 0; i < k->n && ret == 0; i++) {
		if (k->items[i].worker == k->subjects[i].was)
			continue;
		if (k->subjects[i].queue)
			ret = worker_assign(k->subjects[i].queue, worker_get(k->items[i].worker), err);
		else
			ret = spread_move(k->subjects[i].port, k->subjects[i].entry, (uint8_t)k->items[i].worker, err);
	}
	return ret < 0 ? ret : spread_refresh(err);
}

static int load_make_plan(struct work *k, bool cross_numa, struct load_plan *plan)
{
	unsigned i, eligible = 0, moved = balance(k->workers, k->items, k->n, cross_numa, &plan->before, &plan->after);

	for (i = 0; i < WORKER_MAX; i++) {
		eligible += k->workers[i].eligible;
		plan->mean += k->workers[i].eligible ? k->workers[i].load : 0;
	}
	plan->mean /= RTE_MAX(eligible, 1u);
	plan->moves = calloc(moved + 1, sizeof(*plan->moves));
	if (plan->moves == NULL)
		return -ENOMEM;
	for (i = 0; i < k->n; i++)
		if (k->items[i].worker != k->subjects[i].was)
			load_add_move(plan, &k->subjects[i], &k->items[i]);
	return 0;
}

int load_rebalance(bool cross_numa, bool apply, struct load_plan *plan, struct error *err)
{
	struct work k;
	int ret = load_gather(&k);

	*plan = (struct load_plan){0};
	if (ret == 0)
		ret = load_make_plan(&k, cross_numa, plan);
	if (ret < 0)
		error_set(err, ENOMEM, NULL, NULL, NULL, "no memory to compare loads");
	else if (apply && plan->n > 0)
		ret = load_apply_moves(&k, err);
	free(k.items);
	free(k.subjects);
	return ret;
}

static void load_rebalance_regularly(void)
{
	static uint32_t waited;
	struct load_plan plan;
	struct error err;

	if (rebalance_seconds == 0 || ++waited < rebalance_seconds)
		return;
	waited = 0;
	if (load_rebalance(false, true, &plan, &err) < 0)
		LOG(WARNING, "rebalancing: %s", err.message);
	else if (plan.n > 0)
		LOG(INFO, "rebalanced: busiest worker had %.0f packets/s, now about %.0f", plan.before, plan.after);
	free(plan.moves);
}

void load_measure(double passed)
{
	struct worker *w;
	struct port *p;
	unsigned i;

	seconds = passed;
	for (p = port_next(NULL); p; p = port_next(p))
		for (i = 0; i < p->n_queues; i++)
			load_sample_queue(&p->queues[i]);
	for (w = worker_next(NULL); w; w = worker_next(w))
		load_sample_worker(w);
	load_auto_ports();
	load_rebalance_regularly();
}

void load_poll(void)
{
	static uint64_t last;
	uint64_t now = rte_rdtsc(), passed = now - last;
	bool first = last == 0;

	if (passed < rte_get_tsc_hz())
		return;
	last = now;
	load_measure(first ? 1 : (double)passed / (double)rte_get_tsc_hz());
}
