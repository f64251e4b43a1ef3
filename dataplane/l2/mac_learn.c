// SPDX-License-Identifier: Apache-2.0
// MAC learning and ageing. Workers report sources that are unknown or have moved through a ring, and the master
// decides; frames never wait for it. Ageing checks a slice of the table with every poll.
//
// The ring and the master's time are everyone's, and the addresses of a domain are those of all its ports. So a port
// may report so many sources per second, and in a domain that is nearly full it learns no more than its share.
#include <errno.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "base/bucket.h"
#include "base/field_limits.h"
#include "base/setting.h"
#include "l2/mac.h"
#include "l2/mac_watch.h"
#include "l2/snoop.h"
#include "l3/nexthop.h"
#include "port/registry.h"

#define LEARN_RING 16384
#define LEARN_PER_TICK 2048      // about 1.2 ms of the master's time
#define REPORTS_PER_SECOND 10000 // of a port, and of the tunnels of a domain: 1 % of the master's time
#define REPORTS_BURST 1024
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
static struct bucket of_port[PORT_MAX], of_tunnels[BRIDGE_MAX]; // workers: rw
// Frames whose sources were not reported; atomic.
static uint64_t too_many[BRIDGE_MAX], port_too_many[PORT_MAX];

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

static inline uint64_t mac_learn_tag_of(const struct rte_mbuf *m, const uint8_t *remote, uint8_t family, uint64_t key)
{
	uint64_t place =
		(uint64_t)family << 48 | (uint64_t)m->port << 32 | (family ? mac_print(remote, family == IPV6) : 0);

	return (key ^ place * 0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd;
}

static bool mac_learn_may_report(const struct rte_mbuf *m, bool from_tunnel, uint16_t bridge)
{
	struct bucket *b = from_tunnel ? &of_tunnels[bridge] : &of_port[m->port % PORT_MAX];

	if (likely(bucket_take(b, rte_rdtsc(), 1, REPORTS_PER_SECOND, REPORTS_BURST, rte_get_tsc_hz())))
		return true;
	__atomic_fetch_add(&too_many[bridge], 1, __ATOMIC_RELAXED);
	if (!from_tunnel)
		__atomic_fetch_add(&port_too_many[m->port % PORT_MAX], 1, __ATOMIC_RELAXED);
	return false;
}

// remote: the outer source address of a frame from a tunnel. family: its family; 0: from a local port.
static __rte_noinline bool mac_learn_report(const struct rte_mbuf *m, const uint8_t *remote, uint8_t family,
					    uint64_t key)
{
	struct learn l = {.key = key, .port = m->port, .family = family};

	if (family)
		memcpy(l.remote, remote, ip_bytes(family));
	// analyzer: core.uninitialized.Assign: all of l is set
	return mac_learn_may_report(m, family != 0, mac_key_bridge(key)) &&
	       rte_ring_mp_enqueue_elem(ring, &l, sizeof(l)) == 0;
}

void mac_learn_ask(const struct rte_mbuf *m, uint64_t key)
{
	const struct pkt_meta *md = meta((struct rte_mbuf *)(uintptr_t)m);
	const uint8_t *outer = RTE_PTR_ADD(m->buf_addr, md->outer), *remote = outer;
	uint32_t now = __atomic_load_n(&mac_clock, __ATOMIC_RELAXED);
	uint8_t family = 0;
	uint64_t tag;
	unsigned at;

	if (md->flags & META_FROM_TUNNEL) {
		family = (outer[0] >> 4) == 6 ? IPV6 : IPV4;
		remote += family == IPV6 ? 8 : 12; // the source address
	}
	tag = mac_learn_tag_of(m, remote, family, key);
	at = (unsigned)(tag >> 56) % RECENT;
	if (recent[at].tag == tag && recent[at].when == now)
		return;
	if (mac_learn_report(m, remote, family, key)) { // else a later frame retries
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

	if (!(old & MAC_LEARNT)) { // static
		if ((old & MAC_TUNNEL) && !(target & MAC_TUNNEL))
			mac_change_note(MAC_WAS_SEEN, mac_slot_key(slot), target);
		return;
	}
	if (old != target) {
		b->moves++;
		mac_change_note(MAC_HAS_MOVED, mac_slot_key(slot), target);
	}
	mac_count_learnt(b, old, -1);
	mac_count_learnt(b, target, 1);
	mac_slot_set(slot, target);
}

// The last eighth of a domain's addresses is for ports that have less than their share, and for tunnels if all tunnels
// together have less than that. So a guest that invents addresses does not keep those of others from being learnt, for
// frames to an unknown address are flooded, and the guest would read them.
static bool mac_learn_has_room(const struct bridge *b, uint64_t target)
{
	const struct bridge_fwd *f = bridge_fwds[b->id];
	uint32_t limit = b->cfg.mac_limit;

	if (b->n_learnt < limit - limit / 8)
		return true;
	return b->n_learnt < limit && f && mac_learnt_at(b, target) < limit / (f->n_ports + 1);
}

void mac_learn_begin(uint16_t bridge)
{
	__atomic_store_n(&too_many[bridge], 0, __ATOMIC_RELAXED);
}

void mac_learn_begin_port(uint16_t port)
{
	__atomic_store_n(&port_too_many[port % PORT_MAX], 0, __ATOMIC_RELAXED);
}

uint64_t mac_learn_too_many_of(uint16_t port)
{
	return __atomic_load_n(&port_too_many[port % PORT_MAX], __ATOMIC_RELAXED);
}

uint64_t mac_learn_too_many(uint16_t bridge)
{
	return __atomic_load_n(&too_many[bridge], __ATOMIC_RELAXED);
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
	if (l->family == 0 && mac_guest_of_another(l->key, l->port)) {
		b->learn_refused++;
		return;
	}
	slot = mac_table_find(l->key);
	if (slot != MAC_NONE)
		mac_learn_move(b, slot, target);
	else if (!mac_learn_has_room(b, target) || mac_add(b, l->key, target) < 0)
		b->learn_refused++;
	else
		mac_change_note(MAC_WAS_LEARNT, l->key, target);
}

bool mac_learn_again(uint64_t key, uint16_t port, const struct ip_addr *remote, uint64_t idle)
{
	struct learn l = {.key = key, .port = port, .family = remote->family};
	uint32_t slot;

	if (mac_table_find(key) != MAC_NONE || idle > mac_age_seconds * 10ull || idle > mac_clock)
		return false;
	memcpy(l.remote, remote->bytes, sizeof(l.remote));
	mac_learn_one(&l);
	slot = mac_table_find(key);
	if (slot != MAC_NONE)
		mac_slot_set_seen(slot, mac_clock - (uint32_t)idle);
	return slot != MAC_NONE;
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
	snoop_tick();
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
	snoop_poll();
}
