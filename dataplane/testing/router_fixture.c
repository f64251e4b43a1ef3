// SPDX-License-Identifier: Apache-2.0
#include "testing/router_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_debug.h>

#include "base/rcu.h"
#include "flow/flow.h"
#include "graph/counters.h"
#include "graph/graph.h"
#include "l3/fib.h"
#include "l3/tunnel.h"
#include "l3/underlay.h"
#include "neighbor/neighbor.h"
#include "overlay/overlay.h"
#include "policy/rules.h"
#include "port/port_after.h"
#include "worker/punt.h"
#include "worker/worker.h"

struct router_sent router_sent[NODE_TEST_MAX];
unsigned router_n_sent;
uint16_t (*router_rx)(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n);
uint16_t (*router_tx)(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n);
int (*router_arm)(struct port_queue *q);
int (*router_disarm)(struct port_queue *q, bool signalled);
void *(*router_steer)(struct port *p, const struct ip_addr *addr, uint16_t queue, struct error *err);
void (*router_unsteer)(struct port *p, void *rule);

static struct error err;

// --- A kind of port without a device. It stands in for each of the real ones, which are not linked. ---

static int test_open(struct port *p, const struct port_config *cfg, struct error *e)
{
	p->mac = cfg->mac;
	p->link_up = p->up = true;
	snprintf(p->driver, sizeof(p->driver), "test");
	return 0;
}

static void test_close(struct port *p)
{
}

static uint16_t test_rx(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	return router_rx ? router_rx(q, pkts, n) : 0;
}

static uint16_t test_tx(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i;

	if (router_tx)
		return router_tx(q, pkts, n);
	for (i = 0; i < n && router_n_sent < NODE_TEST_MAX; i++)
		router_sent[router_n_sent++] = (struct router_sent){q->port->id, q->index, pkts[i]};
	return i;
}

static void *test_steer(struct port *p, const struct ip_addr *addr, uint16_t queue, struct error *e)
{
	if (router_steer)
		return router_steer(p, addr, queue, e);
	error_set(e, ENOTSUP, NULL, NULL, NULL, "the NIC has no rules");
	return NULL;
}

static void test_unsteer(struct port *p, void *rule)
{
	router_unsteer(p, rule);
}

static bool test_wakes(const struct port_queue *q)
{
	return router_arm != NULL;
}

static int test_arm(struct port_queue *q)
{
	return router_arm ? router_arm(q) : -ENOTSUP;
}

static int test_disarm(struct port_queue *q, bool signalled)
{
	return router_disarm ? router_disarm(q, signalled) : 0;
}

uint16_t router_mtu;

static int test_set_mtu(struct port *port, uint16_t mtu, struct error *why)
{
	router_mtu = mtu;
	return 0;
}

#define TEST_OPS                                                                                                    \
	.open = test_open, .close = test_close, .rx = test_rx, .tx = test_tx, .wakes = test_wakes, .arm = test_arm, \
	.disarm = test_disarm
const struct port_ops port_dpdk_ops = {.kind = "dpdk", TEST_OPS, .rx_least = 8};
const struct port_ops port_tap_ops = {
	.kind = "tap", TEST_OPS, .set_mtu = test_set_mtu, .steer = test_steer, .unsteer = test_unsteer};
const struct port_ops port_memif_ops = {.kind = "memif", TEST_OPS};
const struct port_ops port_vhost_ops = {.kind = "vhost", TEST_OPS};

struct rte_mempool *port_pool(int numa)
{
	return node_test_pool;
}

uint32_t port_pool_share_least(void)
{
	return port_pool_share(0);
}

uint32_t port_pool_share(int numa)
{
	return port_share_of(node_test_pool->size, rte_mempool_avail_count(node_test_pool));
}

void port_pool_usage(unsigned *total, unsigned *in_use)
{
	*total = node_test_pool->size;
	*in_use = rte_mempool_in_use_count(node_test_pool);
}

void router_forget(void)
{
	while (router_n_sent > 0)
		rte_pktmbuf_free(router_sent[--router_n_sent].m);
}

// --- Configuration. ---

static void must(bool ok, const char *what)
{
	if (!ok)
		rte_panic("%s: %s\n", what, err.message);
}

struct ip_addr router_addr(const char *text)
{
	struct ip_addr a;

	must(ip_parse_addr(text, NULL, &a, &err) == 0, text);
	return a;
}

struct rte_ether_addr router_mac(const char *text)
{
	struct rte_ether_addr mac;

	if (rte_ether_unformat_addr(text, &mac) < 0)
		rte_panic("%s is not a MAC address\n", text);
	return mac;
}

static struct ip_prefix ifaddr(const char *text)
{
	struct ip_prefix p;

	must(ip_parse_ifaddr(text, NULL, &p, &err) == 0, text);
	return p;
}

void router_poll(void)
{
	nexthop_poll();
	vrf_poll();
	bridge_tick();
	rcu_poll();
	port_poll();
}

void router_nexthop(const struct nexthop_config *cfg)
{
	must(nexthop_add(cfg, true, &err) == 0, "next hop");
	router_poll();
}

void router_tunnel(uint32_t id, const char *encap, const char *remote, uint32_t label_or_vni)
{
	struct nexthop_config c = {.id = id, .kind = NH_TUNNEL};

	c.tunnel = (struct tunnel_config){
		.encap = encap_find(encap), .remote = router_addr(remote), .label = label_or_vni, .vni = label_or_vni};
	router_nexthop(&c);
}

void router_route(const char *vrf, const char *prefix, uint32_t nexthop)
{
	struct ip_prefix p;

	must(ip_parse_prefix(prefix, NULL, &p, &err) == 0, prefix);
	must(route_set(vrf_find(vrf), &p, &(struct rib_route){nexthop, ROUTE_API}, &err) == 0, prefix);
	router_poll();
}

void router_unroute(const char *vrf, const char *prefix)
{
	struct ip_prefix p;

	must(ip_parse_prefix(prefix, NULL, &p, &err) == 0, prefix);
	must(route_unset(vrf_find(vrf), &p, ROUTE_API, &err) == 0, prefix);
	router_poll();
}

struct port_config router_config(uint16_t port)
{
	return port_get(port)->cfg;
}

void router_set(uint16_t port, const struct port_config *cfg)
{
	unsigned tries = 0;

	while (port_set(port_get(port), cfg, &err) < 0) // -EAGAIN: the machine did not run a worker for 200 ms
		must(err.code == EAGAIN && ++tries < 10, cfg->name);
	router_poll();
}

static void add_port(struct port_config *c, const char *name, const char *ip4, const char *ip6)
{
	struct ip_prefix *list = c->role == PORT_FABRIC ? c->addrs : c->gateways;

	snprintf(c->name, sizeof(c->name), "%s", name);
	c->kind = "tap";
	c->queues = 2;
	if (ip4) {
		list[0] = ifaddr(ip4);
		list[1] = ifaddr(ip6);
		*(c->role == PORT_FABRIC ? &c->n_addrs : &c->n_gateways) = 2;
	}
	must(port_add(c, &err) != NULL, name);
}

static void add_fabric(const char *name, const char *mac, uint16_t vlan, const char *ip4, const char *ip6)
{
	struct port_config c = {
		.role = PORT_FABRIC, .mac = router_mac(mac), .vlan = vlan, .vrf = UINT16_MAX, .bridge = UINT16_MAX};

	add_port(&c, name, ip4, ip6);
}

static void add_tenant(const char *name, uint16_t vrf, uint16_t bridge, const char *ip4, const char *ip6,
		       const char *guest4, const char *guest6, const char *mac)
{
	struct port_config c = {.role = PORT_TENANT, .vrf = vrf, .bridge = bridge};

	if (guest4) {
		c.guest_mac = router_mac(mac);
		c.guests[0] = ifaddr(guest4);
		c.guests[1] = ifaddr(guest6);
		c.n_guests = 2;
	}
	add_port(&c, name, ip4, ip6);
}

static void add_bridge(const char *name)
{
	struct bridge_config c = {0};

	snprintf(c.name, sizeof(c.name), "%s", name);
	must(bridge_add(&c, &err) != NULL, name);
}

static void add_via(uint32_t id, uint16_t port, const char *mac)
{
	struct nexthop_config c = {.id = id, .kind = NH_PORT, .port = {.id = port, .mac = router_mac(mac)}};

	router_nexthop(&c);
}

static void configure(void)
{
	const uint16_t none = UINT16_MAX;

	must(vrf_add("red", RED, &err) && vrf_add("blue", BLUE, &err), "VRF");
	add_bridge("lan");
	add_bridge("irb");
	add_fabric("fabric0", "02:00:00:00:f0:01", 0, "192.0.2.1/24", "2001:db8::1/64");
	add_fabric("fabric1", "02:00:00:00:f0:02", 100, "198.51.100.1/24", "2001:db8:1::1/64");
	add_tenant("red0", RED, none, "10.0.0.1/24", "fd00::1/64", "10.0.0.2/32", "fd00::2/128", "02:00:00:00:00:03");
	add_tenant("red1", RED, none, "10.0.0.1/24", "fd00::1/64", "10.0.0.3/32", "fd00::3/128", "02:00:00:00:00:04");
	add_tenant("blue0", BLUE, none, "10.0.0.1/24", "fd00::1/64", "10.0.0.2/32", "fd00::2/128", "02:00:00:00:00:03");
	add_tenant("lan0", none, LAN, NULL, NULL, NULL, NULL, NULL);
	add_tenant("lan1", none, LAN, NULL, NULL, NULL, NULL, NULL);
	add_tenant("irb0", RED, IRB, "10.0.1.1/24", "fd00:1::1/64", NULL, NULL, NULL);
	add_via(VIA0, FABRIC0, "02:00:00:00:0f:01");
	add_via(VIA1, FABRIC1, "02:00:00:00:0f:02");
	router_route("fabric", "203.0.113.0/24", VIA0);
	router_route("fabric", "203.0.114.0/24", VIA1);
	router_route("fabric", "2001:db8:f::/48", VIA0);
}

struct worker *router_worker(void)
{
	static struct rx_list nothing;
	static struct worker w = {.rx = &nothing, .share = BUFFERS_ENOUGH};

	if (w.inject == NULL)
		w.inject = rte_ring_create("router_fixture", 1024, SOCKET_ID_ANY, RING_F_SC_DEQ);
	if (w.inject == NULL)
		rte_panic("no memory for a ring\n");
	graph_worker = 0;
	return this_worker = &w;
}

int router_setup(void **state)
{
	if (node_test_setup(state) < 0)
		return -1;
	must(fib_init(64 << 20) == 0 && punt_init() == 0, "memory");
	must(vrf_init(&err) == 0 && overlay_init(&err) == 0 && bridge_init(&err) == 0, "tables");
	must(neighbor_init() == 0 && nexthop_init() == 0 && rules_init(&err) == 0 && underlay_init(&err) == 0,
	     "tables");
	must(flow_init(FLOW_CAPACITY_MIN) == 0, "flows");
	flow_zone_init();
	tunnel_router_mac = router_mac(ROUTER);
	configure();
	router_worker();
	return 0;
}

int router_teardown(void **state)
{
	router_forget();
	flow_fini();
	return node_test_teardown(state);
}

uint64_t router_drops(uint16_t port, const char *reason)
{
	const struct drop_reason *r = drop_reason_find(reason);

	if (r == NULL)
		rte_panic("there is no drop reason %s\n", reason);
	return counters_drops(port, r->id);
}
