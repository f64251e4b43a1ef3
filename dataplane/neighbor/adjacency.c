// SPDX-License-Identifier: Apache-2.0
// Adjacencies: allocates their indices, and publishes their contents.
#include <errno.h>
#include <string.h>

#include <rte_malloc.h>

#include "base/rcu.h"
#include "neighbor/adjacency.h"
#include "neighbor/neighbor_private.h"
#include "port/registry.h"
#include "worker/punt.h"

struct adjacency *adjacency_table[ADJ_MAX];

// Freed indices, oldest first. An index is not reused while something may still refer to it: tunnels, until the
// listener has rebuilt them; workers, for a grace period; and packets that were punted before that.
static struct {
	uint32_t index;
	uint64_t token; // punt_token() when it was freed
} freed[ADJ_MAX];
static uint32_t freed_head, freed_tail, never_used = 1;
static uint32_t leaving[ADJ_MAX], n_leaving; // freed, but tunnels may still use them

static uint32_t adjacency_index_alloc(void)
{
	if (freed_head != freed_tail && punt_passed(freed[freed_head % ADJ_MAX].token))
		return freed[freed_head++ % ADJ_MAX].index;
	return never_used < ADJ_MAX ? never_used++ : 0;
}

static void adjacency_index_free(uint32_t index)
{
	freed[freed_tail % ADJ_MAX].index = index;
	freed[freed_tail++ % ADJ_MAX].token = punt_token();
}

static void adjacency_build(struct adjacency *a, uint32_t index, uint16_t port, const struct rte_ether_addr *mac,
			    bool resolved)
{
	const struct port_fwd *f = port_fwds[port];
	bool tagged = f && f->vlan_be;
	struct rte_ether_hdr *eth;
	struct rte_vlan_hdr *vlan;

	memset(a, 0, sizeof(*a));
	a->index = index;
	a->port = port;
	a->resolved = resolved;
	a->l2_len = (uint8_t)(sizeof(*eth) + (tagged ? sizeof(*vlan) : 0));
	eth = (struct rte_ether_hdr *)(a->l2 + sizeof(a->l2) - a->l2_len);
	eth->dst_addr = *mac;
	if (f)
		eth->src_addr = f->mac;
	if (tagged) {
		vlan = (struct rte_vlan_hdr *)(eth + 1);
		eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_VLAN);
		vlan->vlan_tci = f->vlan_be;
	}
}

int adjacency_set(uint32_t index, uint16_t port, const struct rte_ether_addr *mac, bool resolved)
{
	struct adjacency wanted, *new, *old = adjacency_table[index];

	adjacency_build(&wanted, index, port, mac, resolved);
	if (old && memcmp(old, &wanted, sizeof(wanted)) == 0)
		return 0;
	new = rte_malloc("adjacency", sizeof(*new), RTE_CACHE_LINE_SIZE);
	if (new == NULL)
		return -ENOMEM;
	memcpy(new, &wanted, sizeof(wanted));
	rcu_publish(adjacency_table[index], new);
	if (old)
		rcu_defer(rte_free, old);
	return 0;
}

static const struct rte_ether_addr no_mac;

int adjacency_new(uint32_t *index)
{
	uint32_t i = adjacency_index_alloc();
	int ret;

	if (i == 0)
		return -ENOSPC;
	ret = adjacency_set(i, 0, &no_mac, false);
	if (ret < 0) {
		adjacency_index_free(i);
		return ret;
	}
	*index = i;
	return 0;
}

static void adjacency_release(void *arg)
{
	adjacency_index_free((uint32_t)(uintptr_t)arg);
}

// A worker that still uses the index finds an unresolved adjacency, never NULL.
void adjacency_free(uint32_t index)
{
	adjacency_set(index, 0, &no_mac, false);
	leaving[n_leaving++] = index;
}

unsigned adjacency_leaving(void)
{
	return n_leaving;
}

void adjacency_poll(void)
{
	if (neighbor_rebuilding())
		return;
	while (n_leaving > 0)
		rcu_defer(adjacency_release, (void *)(uintptr_t)leaving[--n_leaving]);
}
