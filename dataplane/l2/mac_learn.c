// SPDX-License-Identifier: Apache-2.0
// MAC learning and ageing. Workers report sources that are unknown or have moved through a ring, and the master
// decides; frames never wait for it. Ageing checks a slice of the table with every poll.
#include <errno.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "base/field_limits.h"
#include "base/setting.h"
#include "l2/mac.h"
#include "l3/nexthop.h"
#include "port/registry.h"

#define LEARN_RING 16384
#define LEARN_PER_TICK 2048 // about 1.2 ms of the master's time
#define RECENT 256
#define SWEEP_POLLS 100 // a sweep of the whole table takes 10 s, or a quarter of the age if that is less

struct learn {
	uint64_t key;
	uint16_t port;  // ingress port
	uint8_t family; // family of `remote`; 0: from a local port
	uint8_t remote[16];
};

uint32_t mac_age_seconds = LIMIT_SETTINGS_MAC_AGE_SECONDS_DEFAULT;
SETTING(mac_age_seconds, mac_age_seconds);
static uint32_t sweep_at;

static uint64_t mac_learn_tsc(void)
{
	return rte_rdtsc();
}

uint64_t (*bridge_clock)(void) = mac_learn_tsc;
static struct rte_ring *ring;

// Reports of this worker in the current tenth of a second. A source that cannot be learnt, or that many frames have
// before the master reads the ring, thus takes only one entry.
static __thread struct {
	uint64_t tag;
	uint32_t when;
} recent[RECENT];

static void mac_learn_clock_update(void)
{
	__atomic_store_n(&mac_clock, (uint32_t)(bridge_clock() / (rte_get_tsc_hz() / 10)), __ATOMIC_RELAXED);
}

int mac_learn_init(struct error *err)
{
	ring = rte_ring_create_elem("learn", sizeof(struct learn), LEARN_RING, SOCKET_ID_ANY, RING_F_SC_DEQ);
	if (ring == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for MAC learning");
	mac_learn_clock_update();
	return 0;
}

static inline uint64_t mac_learn_tag_of(const struct learn *l)
{
	uint64_t place = (uint64_t)l->family << 48 | (uint64_t)l->port << 32 |
			 (l->family ? mac_print(l->remote, l->family == IPV6) : 0);

	return (l->key ^ place * 0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd;
}

void mac_learn_ask(const struct rte_mbuf *m, uint64_t key)
{
	const struct pkt_meta *md = meta((struct rte_mbuf *)(uintptr_t)m);
	const uint8_t *outer = RTE_PTR_ADD(m->buf_addr, md->outer);
	struct learn l = {.key = key, .port = m->port};
	uint32_t now = __atomic_load_n(&mac_clock, __ATOMIC_RELAXED);
	uint64_t tag;
	unsigned at;

	if (md->flags & META_FROM_TUNNEL) {
		l.family = (outer[0] >> 4) == 6 ? IPV6 : IPV4;
		memcpy(l.remote, outer + (l.family == IPV6 ? 8 : 12), ip_bytes(l.family)); // the source address
	}
	tag = mac_learn_tag_of(&l);
	at = (unsigned)(tag >> 56) % RECENT;
	if (recent[at].tag == tag && recent[at].when == now)
		return;
	// analyzer: core.uninitialized.Assign: all of l is set
	if (rte_ring_mp_enqueue_elem(ring, &l, sizeof(l)) == 0) { // full: a later frame retries
		recent[at].tag = tag;
		recent[at].when = now;
	}
}

// The target to learn, 0 = none.
static uint64_t mac_learn_place_of(struct bridge *b, const struct learn *l)
{
	struct ip_addr remote = {.family = l->family};
	const struct port *p;
	uint32_t nexthop;

	if (l->family == 0) {
		p = port_get(l->port);
		return p && p->cfg.bridge == b->id ? MAC_LEARNT | l->port : 0; // the port may have left meanwhile
	}
	memcpy(remote.bytes, l->remote, sizeof(remote.bytes));
	nexthop = bridge_tunnel_to(b, &remote);
	if (nexthop == 0) {
		b->learn_unreachable++;
		return 0;
	}
	return (uint64_t)mac_print(l->remote, l->family == IPV6) << 32 | MAC_LEARNT | MAC_TUNNEL | nexthop;
}

static void mac_learn_move(struct bridge *b, uint32_t slot, uint64_t target)
{
	uint64_t old = mac_slot_target(slot);

	if (!(old & MAC_LEARNT)) // static
		return;
	b->moves += old != target;
	mac_slot_set(slot, target);
}

static void mac_learn_one(const struct learn *l)
{
	struct bridge *b = bridge_get(mac_key_bridge(l->key));
	struct rte_ether_addr mac = mac_key_addr(l->key);
	uint64_t target;
	uint32_t slot;

	if (b == NULL || b->cfg.no_learning || bridge_is_gateway(b, &mac))
		return;
	target = mac_learn_place_of(b, l);
	if (target == 0)
		return;
	slot = mac_table_find(l->key);
	if (slot != MAC_NONE)
		mac_learn_move(b, slot, target);
	else if (b->n_learnt >= b->cfg.mac_limit || mac_add(b, l->key, target) < 0)
		b->learn_refused++;
}

void bridge_tick(void)
{
	struct learn l[64];
	unsigned i, n, done = 0;

	while (done < LEARN_PER_TICK &&
	       (n = rte_ring_sc_dequeue_burst_elem(ring, l, sizeof(l[0]), RTE_DIM(l), NULL)) > 0) {
		for (i = 0; i < n; i++)
			// analyzer: core.CallAndMessage core.UndefinedBinaryOperatorResult: the ring has copied n
			mac_learn_one(&l[i]);
		done += n;
	}
}

static bool mac_learn_too_old(uint32_t slot)
{
	return (mac_slot_target(slot) & MAC_LEARNT) && mac_clock - mac_slot_seen(slot) > mac_age_seconds * 10;
}

void bridge_poll(void)
{
	uint32_t polls = RTE_MIN((uint32_t)SWEEP_POLLS, mac_age_seconds * 10 / 4 + 1), slots = mac_table_slots(), n;

	mac_learn_clock_update();
	for (n = slots / polls + 1; n > 0; n--) {
		if (sweep_at >= slots)
			sweep_at = 0;
		if (mac_slot_key(sweep_at) != MAC_FREE && mac_learn_too_old(sweep_at))
			mac_remove(sweep_at);
		sweep_at++;
	}
}
