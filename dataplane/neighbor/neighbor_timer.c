// SPDX-License-Identifier: Apache-2.0
// What time does to neighbours: probes, ageing, giving up.
//
// INCOMPLETE asks every second, NEIGHBOR_RETRIES times, then FAILED. REACHABLE becomes PROBE after neighbor_age_seconds when next
// hops hold it (PROBE asks its last MAC as often, and forwards meanwhile), else STALE, which goes after the same time unless it is
// used.
#include <rte_cycles.h>

#include "neighbor/adjacency.h"
#include "neighbor/neighbor_private.h"
#include "port/registry.h"

// When something is due, by adjacency: a poll that finds nothing reads only this. 0 = nothing.
static uint64_t deadlines[ADJ_MAX];
static uint32_t position = 1; // where a poll goes on whose predecessor has sent its share

static uint64_t neighbor_timer_seconds(unsigned n)
{
	return n * rte_get_tsc_hz();
}

static uint64_t neighbor_timer_deadline(const struct neighbor *n)
{
	switch (n->state) {
	case NEIGH_INCOMPLETE:
	case NEIGH_PROBE:
		return n->changed + neighbor_timer_seconds(1);
	case NEIGH_REACHABLE:
		return n->confirmed + neighbor_timer_seconds(neighbor_age_seconds);
	case NEIGH_STALE:
		return n->refs ? n->changed : n->changed + neighbor_timer_seconds(neighbor_age_seconds);
	case NEIGH_FAILED:
		return n->port ? n->changed + neighbor_timer_seconds(NEIGHBOR_RETRY_SECONDS) : 0;
	case NEIGH_PERMANENT:
		break;
	}
	return 0;
}

void neighbor_timer_set(const struct neighbor *n)
{
	deadlines[n->adj] = neighbor_timer_deadline(n);
}

void neighbor_timer_now(const struct neighbor *n)
{
	deadlines[n->adj] = 1;
}

void neighbor_timer_stop(const struct neighbor *n)
{
	deadlines[n->adj] = 0;
}

bool neighbor_may_retry(const struct neighbor *n)
{
	return n->state == NEIGH_FAILED && n->port && neighbor_clock() - n->changed >= neighbor_timer_seconds(1);
}

void neighbor_solicit(struct neighbor *n)
{
	const struct port *p = port_get(n->port);

	n->probes++;
	n->changed = neighbor_clock();
	neighbor_timer_set(n);
	if (p == NULL || !p->up)
		return;
	if (n->addr.family == IPV4)
		arp_send_request(p, &n->addr);
	else
		nd_send_solicit(p, &n->addr);
}

static void no_answer(struct neighbor *n)
{
	neighbor_change(n, NEIGH_FAILED, NULL);
	neighbor_give_up(n);
}

// Returns the solicitations that it has sent.
static unsigned neighbor_timer_due(struct neighbor *n)
{
	switch (n->state) {
	case NEIGH_INCOMPLETE:
	case NEIGH_PROBE:
		if (n->probes < NEIGHBOR_RETRIES)
			break;
		no_answer(n);
		return 0;
	case NEIGH_REACHABLE:
		neighbor_change(n, n->refs ? NEIGH_PROBE : NEIGH_STALE, NULL);
		if (n->refs == 0)
			return 0;
		break;
	case NEIGH_STALE:
	case NEIGH_FAILED:
		if (n->refs == 0) {
			neighbor_remove(n);
			return 0;
		}
		if (n->state == NEIGH_STALE)
			neighbor_change(n, NEIGH_PROBE, NULL);
		break;
	case NEIGH_PERMANENT:
		neighbor_timer_stop(n);
		return 0;
	}
	neighbor_solicit(n);
	return 1;
}

// The operator has set another age: it holds for those that are known already.
static void follow_age(void)
{
	static uint32_t age;
	uint32_t i;

	for (i = 1; age != neighbor_age_seconds && i < neighbor_end; i++)
		if (neighbor_at(i) && neighbor_at(i)->state == NEIGH_REACHABLE)
			neighbor_timer_set(neighbor_at(i));
	age = neighbor_age_seconds;
}

void neighbor_poll(void)
{
	uint64_t now = neighbor_clock();
	unsigned sent = 0, done = 0;
	uint32_t i;

	adjacency_poll();
	follow_age();
	for (i = 0; i < neighbor_end && sent < NEIGHBOR_POLL_SOLICITS && done < NEIGHBOR_POLL_CHANGES; i++, position++) {
		if (position >= neighbor_end)
			position = 1;
		if (deadlines[position] == 0 || deadlines[position] > now)
			continue;
		sent += neighbor_timer_due(neighbor_at(position));
		done++;
	}
}
