// SPDX-License-Identifier: Apache-2.0
// The table of neighbours, indexed by port and address (or MAC), and by adjacency.
#include "neighbor/neighbor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_jhash.h>

#include "base/field_limits.h"
#include "base/setting.h"
#include "neighbor/adjacency.h"
#include "neighbor/answer.h"
#include "neighbor/neighbor_private.h"
#include "port/registry.h"

#define BUCKETS 16384
#define FAMILIES 2

uint32_t neighbor_end = 1;
uint32_t neighbor_age_seconds = LIMIT_SETTINGS_NEIGHBOR_AGE_SECONDS_DEFAULT;
SETTING(neighbor_age_seconds, neighbor_age_seconds);
uint64_t (*neighbor_clock)(void) = rte_get_tsc_cycles;

static struct neighbor *buckets[BUCKETS];
static struct neighbor *by_adj[ADJ_MAX];
static unsigned total, all_unheld, unheld[FAMILIES][PORT_MAX];
static TAILQ_HEAD(idle_list, neighbor) idle[FAMILIES][PORT_MAX], all_idle; // idle for longest first

static const struct rte_ether_addr no_mac;

static struct neighbor **neighbor_bucket(uint16_t port, const struct ip_addr *addr, const struct rte_ether_addr *mac)
{
	uint32_t key[5] = {port};

	if (addr->family)
		memcpy(&key[1], addr->bytes, ip_bytes(addr->family));
	else
		memcpy(&key[1], mac, sizeof(*mac));
	return &buckets[rte_jhash_32b(key, RTE_DIM(key), 0) % BUCKETS];
}

static struct neighbor *neighbor_lookup(uint16_t port, const struct ip_addr *addr, const struct rte_ether_addr *mac)
{
	struct neighbor *n;

	for (n = *neighbor_bucket(port, addr, mac); n; n = n->next)
		if (n->port == port && ip_addr_eq(&n->addr, addr) &&
		    (addr->family || rte_is_same_ether_addr(&n->mac, mac)))
			return n;
	return NULL;
}

struct neighbor *neighbor_find(uint16_t port, const struct ip_addr *addr)
{
	return addr->family ? neighbor_lookup(port, addr, &no_mac) : NULL;
}

struct neighbor *neighbor_at(uint32_t i)
{
	return i < ADJ_MAX ? by_adj[i] : NULL;
}

unsigned neighbor_count(void)
{
	return total;
}

bool neighbor_usable(const struct neighbor *n)
{
	return adjacency_table[n->adj]->resolved;
}

void neighbor_table_init(void)
{
	unsigned f, port;

	TAILQ_INIT(&all_idle);
	for (f = 0; f < FAMILIES; f++)
		for (port = 0; port < PORT_MAX; port++)
			TAILQ_INIT(&idle[f][port]);
}

static unsigned neighbor_family(const struct ip_addr *a)
{
	return a->family == IPV6;
}

static enum neighbor_use neighbor_use_now(const struct neighbor *n)
{
	if (n->refs || n->state == NEIGH_PERMANENT || n->port == 0)
		return NEIGH_HELD;
	if (n->state == NEIGH_REACHABLE && n->use == NEIGH_IDLE) // by an answer that nobody had asked for
		return NEIGH_IDLE;
	return n->state == NEIGH_STALE || n->state == NEIGH_FAILED ? NEIGH_IDLE : NEIGH_SENT_TO;
}

// Counts it by its use. Called after each change of what neighbor_use_now() reads.
static void neighbor_count_use(struct neighbor *n, enum neighbor_use use)
{
	unsigned f = neighbor_family(&n->addr);

	if (n->use == use)
		return;
	if ((n->use == NEIGH_HELD) != (use == NEIGH_HELD)) {
		unheld[f][n->port] += use == NEIGH_HELD ? -1u : 1u;
		all_unheld += use == NEIGH_HELD ? -1u : 1u;
	}
	if (n->use == NEIGH_IDLE) {
		TAILQ_REMOVE(&idle[f][n->port], n, idle_port);
		TAILQ_REMOVE(&all_idle, n, idle_all);
	}
	if (use == NEIGH_IDLE) {
		TAILQ_INSERT_TAIL(&idle[f][n->port], n, idle_port);
		TAILQ_INSERT_TAIL(&all_idle, n, idle_all);
	}
	n->use = use;
}

static bool neighbor_state_usable(enum neighbor_state s)
{
	return s == NEIGH_REACHABLE || s == NEIGH_STALE || s == NEIGH_PROBE || s == NEIGH_PERMANENT;
}

// The only place where state and MAC change.
void neighbor_change(struct neighbor *n, enum neighbor_state state, const struct rte_ether_addr *mac)
{
	bool was_usable = neighbor_usable(n), usable = neighbor_state_usable(state);

	if (!usable)
		mac = &no_mac;
	else if (mac == NULL)
		mac = &n->mac;
	if (adjacency_set(n->adj, n->port, mac, usable) < 0 && usable)
		return;     // no memory: the next answer tries again
	if (n->addr.family) // else the MAC is its hash key
		n->mac = *mac;
	n->state = state;
	n->changed = neighbor_clock();
	n->probes = 0;
	neighbor_count_use(n, neighbor_use_now(n));
	neighbor_timer_set(n);
	if (n->refs && was_usable != neighbor_usable(n))
		neighbor_notify_changed();
}

static struct neighbor *neighbor_create(uint16_t port, const struct ip_addr *addr, const struct rte_ether_addr *mac,
					struct error *err)
{
	struct neighbor *n = calloc(1, sizeof(*n)), **b = neighbor_bucket(port, addr, mac);
	char text[16];
	int ret = n ? adjacency_new(&n->adj) : -ENOMEM;

	if (ret < 0) {
		free(n);
		snprintf(text, sizeof(text), "%u", total);
		error_full(err, -ret, "neighbor", text, ADJ_MAX - 1, "neighbours");
		return NULL;
	}
	n->port = port;
	n->addr = *addr;
	n->mac = *mac;
	n->next = *b;
	*b = n;
	by_adj[n->adj] = n;
	neighbor_end = RTE_MAX(neighbor_end, n->adj + 1);
	total++;
	neighbor_change(n, NEIGH_INCOMPLETE, NULL);
	neighbor_timer_now(n);
	return n;
}

// Removes it from its hash chain, so that lookups no longer find it.
static void neighbor_unlink(struct neighbor *n)
{
	struct neighbor **b = neighbor_bucket(n->port, &n->addr, &n->mac);

	while (*b && *b != n)
		b = &(*b)->next;
	if (*b)
		*b = n->next;
}

void neighbor_remove(struct neighbor *n)
{
	neighbor_give_up(n);
	neighbor_timer_stop(n);
	neighbor_count_use(n, NEIGH_HELD);
	if (n->port)
		neighbor_unlink(n);
	by_adj[n->adj] = NULL;
	adjacency_free(n->adj);
	total--;
	free(n);
}

// The port is being removed. Entries that next hops hold stay, unresolved, until they are released.
void neighbor_orphan(struct neighbor *n)
{
	if (n->refs == 0) {
		neighbor_remove(n);
		return;
	}
	neighbor_give_up(n);
	neighbor_unlink(n);
	n->port = 0;
	neighbor_change(n, NEIGH_FAILED, NULL);
}

static bool neighbor_has_room(uint16_t port, const struct ip_addr *addr, bool displace)
{
	unsigned f = neighbor_family(addr);
	bool port_full = unheld[f][port] >= NEIGHBOR_PORT_UNHELD;
	struct neighbor *oldest = TAILQ_FIRST(port_full ? &idle[f][port] : &all_idle);

	if (!port_full && all_unheld < NEIGHBOR_ALL_UNHELD)
		return true;
	if (!displace || oldest == NULL || adjacency_leaving() >= NEIGHBOR_LEAVING)
		return false;
	neighbor_remove(oldest);
	return true;
}

struct neighbor *neighbor_unheld(uint16_t port, const struct ip_addr *addr, bool displace)
{
	struct neighbor *n = neighbor_find(port, addr);

	if (n || !neighbor_has_room(port, addr, displace))
		return n;
	return neighbor_create(port, addr, &no_mac, NULL);
}

static int neighbor_check_port(uint16_t port, const char *field, struct error *err)
{
	char text[16];

	if (port_get(port))
		return 0;
	snprintf(text, sizeof(text), "%u", port);
	return error_set(err, ENOENT, field, text, "the id of a port", "there is no such port");
}

static int neighbor_check_addr(uint16_t port, const struct ip_addr *addr, const char *field, struct error *err)
{
	char text[IP_TEXT];

	ip_format_addr(addr, text);
	if (ip_is_multicast(addr) || ip_is_unspecified(addr))
		return error_set(err, EINVAL, field, text, "a unicast address", "cannot be a neighbour's address");
	if (answer_is_own(port_fwds[port], addr))
		return error_set(err, EINVAL, field, text, "another host's address",
				 "is the router's own address on this port");
	return 0;
}

static void neighbor_add_reference(struct neighbor *n)
{
	n->refs++;
	neighbor_count_use(n, NEIGH_HELD);
	if (n->state == NEIGH_STALE || n->state == NEIGH_FAILED)
		neighbor_timer_now(n);
}

int adjacency_hold(uint16_t port, const struct ip_addr *addr, const struct rte_ether_addr *mac, uint32_t *adj,
		   struct error *err)
{
	static const struct ip_addr none;
	bool by_mac = mac && !rte_is_zero_ether_addr(mac);
	struct neighbor *n;
	int ret = neighbor_check_port(port, "nexthop.port", err);

	if (ret == 0 && !by_mac)
		ret = neighbor_check_addr(port, addr, "nexthop.port.address", err);
	if (ret < 0)
		return ret;
	if (by_mac)
		addr = &none;
	else
		mac = &no_mac;
	n = neighbor_lookup(port, addr, mac);
	if (n == NULL)
		n = neighbor_create(port, addr, mac, err);
	if (n == NULL)
		return -ENOSPC;
	if (by_mac && n->state != NEIGH_PERMANENT)
		neighbor_change(n, NEIGH_PERMANENT, mac);
	if (by_mac && n->state != NEIGH_PERMANENT) {
		neighbor_remove(n);
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for an adjacency");
	}
	neighbor_add_reference(n);
	*adj = n->adj;
	return 0;
}

void adjacency_put(uint32_t adj)
{
	struct neighbor *n = neighbor_at(adj);

	if (n == NULL || --n->refs > 0)
		return;
	if (n->port == 0 || n->addr.family == 0)
		neighbor_remove(n);
	else
		neighbor_count_use(n, neighbor_use_now(n));
}

static bool neighbor_is_link_local(const struct ip_addr *a)
{
	return a->family == IPV6 && a->bytes[0] == 0xfe && (a->bytes[1] & 0xc0) == 0x80;
}

int neighbor_check_link(uint16_t port, const struct ip_addr *addr, const char *field, struct error *err)
{
	const struct port *p = port_get(port);
	const struct port_config *cfg = &p->cfg;
	char text[IP_TEXT], valid[2 * IP_TEXT] = "an address of the port's family";
	bool family = false, prefixes = false;
	unsigned i;

	if (p->role != PORT_FABRIC || cfg->n_addrs == 0 || neighbor_is_link_local(addr) || ip_is_multicast(addr))
		return 0;
	for (i = 0; i < cfg->n_addrs; i++) {
		const struct ip_prefix *own = &cfg->addrs[i], link = ip_prefix_of(&own->addr, own->len);

		if (ip_prefix_covers(&link, addr))
			return 0;
		if (own->addr.family != addr->family)
			continue;
		family = true;
		if (own->len < ip_bits(own->addr.family)) {
			prefixes = true;
			snprintf(valid, sizeof(valid), "an address on the link of %s", ip_format_prefix(own, text));
		}
	}
	return family && !prefixes ? 0
				   : error_set(err, EINVAL, field, ip_format_addr(addr, text), valid,
					       "is on no link of port %s", cfg->name);
}

int neighbor_set(uint16_t port, const struct ip_addr *addr, const struct rte_ether_addr *mac, struct error *err)
{
	struct neighbor *n;
	char text[18];
	int ret = neighbor_check_port(port, "neighbor.port", err);

	if (ret == 0)
		ret = neighbor_check_addr(port, addr, "neighbor.address", err);
	if (ret < 0)
		return ret;
	if (!rte_is_valid_assigned_ether_addr(mac))
		return error_set(err, EINVAL, "neighbor.mac", mac_format(mac, text), "a unicast MAC",
				 "cannot be a neighbour's MAC");
	n = neighbor_find(port, addr);
	if (n == NULL)
		n = neighbor_create(port, addr, &no_mac, err);
	if (n == NULL)
		return -ENOSPC;
	neighbor_change(n, NEIGH_PERMANENT, mac);
	neighbor_flush(n);
	return 0;
}

int neighbor_del(uint16_t port, const struct ip_addr *addr, struct error *err)
{
	struct neighbor *n = neighbor_find(port, addr);
	char text[IP_TEXT];

	if (n == NULL)
		return error_set(err, ENOENT, "address", ip_format_addr(addr, text), NULL,
				 "there is no such neighbour on this port");
	neighbor_give_up(n);
	if (n->refs == 0) {
		neighbor_remove(n);
		return 0;
	}
	neighbor_change(n, NEIGH_INCOMPLETE, NULL); // a next hop holds it: it is resolved again
	neighbor_timer_now(n);
	return 0;
}

void neighbor_learn(uint16_t port, const struct ip_addr *addr, const struct rte_ether_addr *mac, bool create,
		    bool confirmed)
{
	// Who asks displaces nobody: a host without an entry is asked for its MAC when somebody sends to it.
	struct neighbor *n = create ? neighbor_unheld(port, addr, false) : neighbor_find(port, addr);

	if (n == NULL || n->state == NEIGH_PERMANENT)
		return;
	if (!confirmed && neighbor_usable(n) && rte_is_same_ether_addr(&n->mac, mac))
		return;
	if (confirmed)
		n->confirmed = neighbor_clock();
	neighbor_change(n, confirmed ? NEIGH_REACHABLE : NEIGH_STALE, mac);
	neighbor_flush(n);
}
