// SPDX-License-Identifier: Apache-2.0
// Two hash tables of the same entries: workers search by domain and IP address, the master by domain and MAC. A chain
// is changed by one pointer store, and an entry is freed after a grace period. Guests add no entries, so that they
// cannot make a chain long.
#include "l2/mac_ip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_jhash.h>

#include "base/rcu.h"
#include "l2/mac_table.h"

#define BUCKETS (1u << 15)

struct mac_ip {
	struct mac_ip *by_ip;  // master: rw, workers: ro (RCU)
	struct mac_ip *by_mac; // master only
	uint64_t key;          // mac_key()
	struct ip_addr addr;
};

static struct mac_ip *mac_ip_by_ip[BUCKETS], *mac_ip_by_mac[BUCKETS];
static uint32_t mac_ips;

static inline struct mac_ip **mac_ip_bucket(uint16_t bridge, const struct ip_addr *a)
{
	uint32_t seed = (uint32_t)mac_secret ^ ((uint32_t)bridge << 8 | a->family);

	return &mac_ip_by_ip[rte_jhash(a->bytes, ip_bytes(a->family), seed) % BUCKETS];
}

static struct mac_ip **mac_ip_bucket_of_mac(uint64_t key)
{
	return &mac_ip_by_mac[mac_hash(key) % BUCKETS];
}

bool mac_ip_find(uint16_t bridge, const struct ip_addr *addr, struct rte_ether_addr *out)
{
	const struct mac_ip *e = rcu_read(*mac_ip_bucket(bridge, addr));

	for (; e; e = rcu_read(e->by_ip)) {
		if (mac_key_bridge(e->key) == bridge && ip_addr_eq(&e->addr, addr)) {
			*out = mac_key_addr(e->key);
			return true;
		}
	}
	return false;
}

static void mac_ip_link(struct mac_ip *e)
{
	struct mac_ip **ip = mac_ip_bucket(mac_key_bridge(e->key), &e->addr), **mac = mac_ip_bucket_of_mac(e->key);

	e->by_mac = *mac;
	*mac = e;
	e->by_ip = *ip;
	rcu_publish(*ip, e);
	mac_ips++;
}

static void mac_ip_unlink(struct mac_ip *e)
{
	struct mac_ip **at = mac_ip_bucket(mac_key_bridge(e->key), &e->addr);

	while (*at != e)
		at = &(*at)->by_ip;
	rcu_publish(*at, e->by_ip);
	rcu_defer(free, e);
	mac_ips--;
}

int mac_ip_add(uint64_t key, const struct ip_addr *addrs, unsigned n, struct error *err)
{
	struct mac_ip *e;
	unsigned i;

	if (n > MAC_IP_TOTAL - mac_ips)
		return error_set(err, ENOSPC, "mac.addresses", NULL, "65536 IP addresses of all MACs together",
				 "no room for another one");
	for (i = n; i > 0; i--) { // the latest is found first
		e = malloc(sizeof(*e));
		if (e == NULL) {
			mac_ip_remove(key);
			return error_set(err, ENOMEM, "mac.addresses", NULL, NULL, "no memory for an IP address");
		}
		e->key = key;
		e->addr = addrs[i - 1];
		mac_ip_link(e);
	}
	return 0;
}

void mac_ip_remove(uint64_t key)
{
	struct mac_ip **at = mac_ip_bucket_of_mac(key), *e;

	while ((e = *at) != NULL) {
		if (e->key != key) {
			at = &e->by_mac;
			continue;
		}
		*at = e->by_mac;
		mac_ip_unlink(e);
	}
}

unsigned mac_ip_get(uint64_t key, struct ip_addr out[MAC_IP_MAX])
{
	const struct mac_ip *e;
	unsigned n = 0;

	for (e = *mac_ip_bucket_of_mac(key); e && n < MAC_IP_MAX; e = e->by_mac)
		if (e->key == key)
			out[n++] = e->addr;
	return n;
}
