// SPDX-License-Identifier: Apache-2.0
// Timers of neighbours: retries, ageing, failure.
//
// INCOMPLETE: solicits every second, NEIGHBOR_RETRIES times, then becomes FAILED.
// REACHABLE: after neighbor_age_seconds becomes PROBE if a next hop holds it, else STALE.
// PROBE: solicits its last MAC as INCOMPLETE does, and forwards meanwhile.
// STALE: becomes PROBE when it is used or held, else is removed after neighbor_age_seconds.
// FAILED: solicits every NEIGHBOR_RETRY_SECONDS if a next hop holds it, else is removed after that time.
#include <rte_cycles.h>

#include "neighbor/adjacency.h"
#include "neighbor/neighbor_private.h"
#include "port/registry.h"

// TSC when the timer expires, by adjacency; 0 = none. A poll that finds none expired reads only this.
static uint64_t deadlines[ADJ_MAX];
static uint32_t position = 1; // where the next poll begins: one that reaches its bound ends early

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

static void neighbor_timer_fail(struct neighbor *n)
{
	neighbor_change(n, NEIGH_FAILED, NULL);
	neighbor_give_up(n);
}

// Handles an expired timer. Returns the number of solicitations sent.
static unsigned neighbor_timer_due(struct neighbor *n)
{
	switch (n->state) {
	case NEIGH_INCOMPLETE:
	case NEIGH_PROBE:
		if (n->probes < NEIGHBOR_RETRIES)
			break;
		neighbor_timer_fail(n);
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

// Applies a changed neighbor_age_seconds to the existing entries.
static void neighbor_timer_apply_age(void)
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
	neighbor_timer_apply_age();
	for (i = 0; i < neighbor_end && sent < NEIGHBOR_POLL_SOLICITS && done < NEIGHBOR_POLL_CHANGES;
	     i++, position++) {
		if (position >= neighbor_end)
			position = 1;
		if (deadlines[position] == 0 || deadlines[position] > now)
			continue;
		sent += neighbor_timer_due(neighbor_at(position));
		done++;
	}
}
