// SPDX-License-Identifier: Apache-2.0
// punt: hands packets to the master thread.
// Reads: out_port (enum punt), port.  Next: only drop.
#include "worker/punt.h"

#include <errno.h>
#include <stdio.h>

#include <rte_cycles.h>
#include <rte_ring.h>

#include "base/bucket.h"
#include "base/clock.h"
#include "base/rcu.h"
#include "graph/held.h"
#include "graph/node.h"
#include "port/registry.h"

#define TURN_US 200 // bound on the master's time for one class in one turn

DROP_REASON(punt_rate,
	    "The port sent ARP or neighbour discovery for the control plane faster than one port may: 1,000 packets/s "
	    "of a tenant, 10,000 of each kind of a fabric port; or a guest sent more than 20 DHCP messages and router "
	    "solicitations "
	    "per second. A host may be flooding them: see "
	    "`corelane drops punt_rate --by-port` and `corelane capture`.");
DROP_REASON(punt_full, "Too many packets of one kind needed the control plane at once: what answers the router on the "
		       "fabric, other ARP and ND of the fabric, ARP and ND of tenants, packets for unknown neighbours, "
		       "and what guests ask for when they boot have "
		       "a queue each. See `corelane drops punt_full --by-port`.");

const struct punt_limits punt_limits[PUNT_CLASSES] = {
	[PUNT_REPLY] = {.room = 2047, .rate = 10000, .burst = 1024, .turn = 256},
	[PUNT_FABRIC] = {.room = 2047, .rate = 10000, .burst = 1024, .turn = 256},
	[PUNT_GUEST] = {.room = 2047, .rate = 1000, .burst = 256, .turn = 128},
	[PUNT_WAITING] = {.room = 4095, .turn = 128},
	[PUNT_BOOTING] = {.room = 1023, .rate = 20, .burst = 20, .turn = 32},
};

static struct rte_ring *rings[PUNT_CLASSES];
static void (*handlers[PUNT_KINDS])(struct rte_mbuf *m);
static uint64_t waiting_taken; // packets of PUNT_WAITING that have been handled. Master only

static __thread struct bucket buckets[PUNT_KINDS][PORT_MAX];

int punt_init(void)
{
	char name[16];
	unsigned i;

	for (i = 0; i < PUNT_CLASSES; i++) {
		snprintf(name, sizeof(name), "punt-%u", i);
		rings[i] = rte_ring_create(name, punt_limits[i].room + 1, SOCKET_ID_ANY, RING_F_SC_DEQ);
		if (rings[i] == NULL)
			return -ENOMEM;
	}
	return 0;
}

void punt_register(enum punt kind, void (*fn)(struct rte_mbuf *m))
{
	handlers[kind] = fn;
}

static void punt_handle(struct rte_mbuf *m)
{
	unsigned kind = meta(m)->out_port;

	held_end(m);
	if (kind < PUNT_KINDS && handlers[kind])
		handlers[kind](m);
	else
		rte_pktmbuf_free(m);
}

// Handles at least one packet, however long it takes. Returns their number.
static unsigned punt_turn(enum punt_class c)
{
	uint64_t until = clock_now() + rte_get_tsc_hz() / 1000000 * TURN_US;
	struct rte_mbuf *m;
	unsigned n = 0;

	while (n < punt_limits[c].turn && rte_ring_sc_dequeue(rings[c], (void **)&m) == 0) {
		punt_handle(m);
		n++;
		if (clock_now() > until)
			break;
	}
	return n;
}

void punt_poll(void)
{
	punt_turn(PUNT_REPLY);
	punt_turn(PUNT_FABRIC);
	punt_turn(PUNT_GUEST);
	waiting_taken += punt_turn(PUNT_WAITING);
	punt_turn(PUNT_BOOTING);
}

uint64_t punt_token(void)
{
	return waiting_taken + rte_ring_count(rings[PUNT_WAITING]);
}

bool punt_passed(uint64_t token)
{
	return waiting_taken >= token;
}

static inline enum punt_class punt_class_of(struct rte_mbuf *m)
{
	uint16_t kind = meta(m)->out_port;
	const struct port_fwd *f;

	if (kind == PUNT_HOLD || kind == PUNT_GLEAN)
		return PUNT_WAITING;
	if (kind == PUNT_BOOT)
		return PUNT_BOOTING;
	f = rcu_read(port_fwds[m->port % PORT_MAX]);
	if (f == NULL || f->role == PORT_TENANT)
		return PUNT_GUEST;
	return kind == PUNT_ARP_REPLY || kind == PUNT_ND_REPLY ? PUNT_REPLY : PUNT_FABRIC;
}

static inline bool punt_bucket_take(uint16_t port, enum punt_class c, uint16_t kind, uint64_t now)
{
	const struct punt_limits *l = &punt_limits[c];
	struct bucket *b = &buckets[c == PUNT_GUEST ? PUNT_ARP : kind][port % PORT_MAX];

	return l->rate == 0 || bucket_take(b, now, 1, l->rate, l->burst, rte_get_tsc_hz());
}

bool punt_take(uint16_t port, enum punt kind)
{
	return punt_bucket_take(port, PUNT_FABRIC, kind, clock_now());
}

static inline bool punt_allowed(struct rte_mbuf *m, enum punt_class c, uint64_t now)
{
	uint16_t kind = meta(m)->out_port;

	return kind == PUNT_ARP_ASKED || kind == PUNT_ND_ASKED || punt_bucket_take(m->port, c, kind % PUNT_KINDS, now);
}

static void punt_chunk(struct rte_mbuf **pkts, unsigned n)
{
	struct rte_mbuf *sorted[PUNT_CLASSES][NODE_CHUNK], *refused[NODE_CHUNK];
	unsigned of[PUNT_CLASSES] = {0}, n_refused = 0, i, taken;
	uint64_t now = clock_now();
	enum punt_class c;

	for (i = 0; i < n; i++) {
		c = punt_class_of(pkts[i]);
		if (punt_allowed(pkts[i], c, now)) {
			held_begin(pkts[i]);
			sorted[c][of[c]++] = pkts[i];
		} else {
			drop(pkts[i], punt_rate);
			refused[n_refused++] = pkts[i];
		}
	}
	for (c = 0; c < PUNT_CLASSES; c++) {
		// analyzer: core.uninitialized.Assign: of[c] are set
		taken = rte_ring_mp_enqueue_burst(rings[c], (void **)sorted[c], of[c], NULL);
		for (i = taken; i < of[c]; i++) {
			held_end(sorted[c][i]);
			drop(sorted[c][i], punt_full);
			refused[n_refused++] = sorted[c][i];
		}
	}
	if (n_refused > 0)
		drop_packets(refused, n_refused);
}

static uint16_t punt(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	unsigned done;

	for (done = 0; done < n; done += NODE_CHUNK)
		punt_chunk((struct rte_mbuf **)objs + done, RTE_MIN(n - done, NODE_CHUNK));
	return n;
}

NODE(punt, punt, );
