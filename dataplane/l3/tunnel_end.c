// SPDX-License-Identifier: Apache-2.0
// The hash table of tunnel ends. The master changes it; workers read it without locks.
#include "l3/tunnel_end.h"

#include <netinet/in.h>
#include <stdlib.h>

#include <rte_hash_crc.h>

#include "base/rcu.h"
#include "base/setting.h"
#include "l3/nexthop.h"
#include "l3/tunnel.h"

#define BUCKETS NEXTHOP_API_MAX // memory that is not used is not there

static struct tunnel_end *buckets[BUCKETS];

bool accept_udp6_zero;
SETTING(accept_udp6_zero, accept_udp6_zero);

static uint32_t tunnel_end_hash6(const uint8_t bytes[16])
{
	const unaligned_uint64_t *half = (const unaligned_uint64_t *)bytes;

	return rte_hash_crc_8byte(half[1], rte_hash_crc_8byte(half[0], 0)) % BUCKETS;
}

static struct tunnel_end **tunnel_end_bucket(const struct ip_addr *addr)
{
	return &buckets[addr->family == IPV6 ? tunnel_end_hash6(addr->bytes)
					     : rte_hash_crc_4byte(ip4_be(addr), 0) % BUCKETS];
}

struct tunnel_end *tunnel_end_find(const struct ip_addr *addr)
{
	struct tunnel_end *e = rcu_read(*tunnel_end_bucket(addr));

	while (e && !ip_addr_eq(&e->addr, addr))
		e = rcu_read(e->next);
	return e;
}

bool tunnel_end_sends(const struct ip_addr *addr)
{
	const struct tunnel_end *e = tunnel_end_find(addr);

	return e && __atomic_load_n(&e->nexthops, __ATOMIC_RELAXED) > 0;
}

static const struct tunnel_end *tunnel_end_find6(const uint8_t bytes[16])
{
	const struct tunnel_end *e = rcu_read(buckets[tunnel_end_hash6(bytes)]);

	while (e && !(e->addr.family == IPV6 && memcmp(e->addr.bytes, bytes, 16) == 0))
		e = rcu_read(e->next);
	return e;
}

bool tunnel_end_may_send_zero(const struct rte_ipv6_hdr *ip, unsigned place)
{
	const struct tunnel_end *e = tunnel_end_find6(ip->src_addr);

	return (e && __atomic_load_n(&e->zero[place], __ATOMIC_RELAXED) > 0) || accept_udp6_zero;
}

static struct tunnel_end *tunnel_end_get(const struct ip_addr *addr)
{
	struct tunnel_end **bucket = tunnel_end_bucket(addr), *e = tunnel_end_find(addr);

	if (e)
		return e;
	e = calloc(1, sizeof(*e));
	if (e == NULL)
		return NULL;
	e->addr = *addr;
	e->next = *bucket;
	rcu_publish(*bucket, e);
	return e;
}

static void tunnel_end_free_unused(struct tunnel_end *end)
{
	struct tunnel_end **e = tunnel_end_bucket(&end->addr);

	if (end->ways)
		return;
	while (*e != end)
		e = &(*e)->next;
	rcu_publish(*e, end->next);
	rcu_defer(free, end);
}

static struct tunnel_way *tunnel_way_get(struct tunnel_end *end, const struct tunnel_config *t)
{
	struct tunnel_way *w;

	for (w = end->ways; w; w = w->next)
		if (w->encap == t->encap && ip_addr_eq(&w->local, &t->local))
			return w;
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return NULL;
	*w = (struct tunnel_way){.next = end->ways, .end = end, .encap = t->encap, .local = t->local};
	end->ways = w;
	return w;
}

static void tunnel_end_count(struct tunnel_end *end, uint32_t nexthop, const struct tunnel_config *t, uint32_t step)
{
	unsigned place = encap_receive_place(t->encap);

	if (nexthop >= NEXTHOP_API_MAX || place == 0)
		return;
	__atomic_store_n(&end->nexthops, end->nexthops + step, __ATOMIC_RELAXED);
	if (t->encap->proto == IPPROTO_UDP && !tunnel_udp6_checksum(t))
		__atomic_store_n(&end->zero[place], end->zero[place] + step, __ATOMIC_RELAXED);
}

struct tunnel_way *tunnel_way_hold(uint32_t nexthop, const struct tunnel_config *t)
{
	struct tunnel_end *end = tunnel_end_get(&t->remote);
	struct tunnel_way *w = end ? tunnel_way_get(end, t) : NULL;

	if (w == NULL) {
		if (end)
			tunnel_end_free_unused(end);
		return NULL;
	}
	w->refs++;
	tunnel_end_count(end, nexthop, t, 1);
	return w;
}

void tunnel_way_put(struct tunnel_way *w, uint32_t nexthop, const struct tunnel_config *t)
{
	struct tunnel_end *end = w->end;
	struct tunnel_way **at = &end->ways;

	tunnel_end_count(end, nexthop, t, UINT32_MAX);
	if (--w->refs > 0)
		return;
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	free(w);
	tunnel_end_free_unused(end);
}
