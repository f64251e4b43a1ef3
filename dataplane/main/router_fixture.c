// SPDX-License-Identifier: Apache-2.0
#include "main/router_fixture.h"

#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_debug.h>

#include "arp/neighbor.h"
#include "base/rcu.h"
#include "eth/underlay.h"
#include "graph/counters.h"
#include "l3/fib.h"
#include "overlay/overlay.h"
#include "worker/punt.h"
#include "worker/worker.h"

struct router_sent router_sent[NODE_TEST_MAX];
unsigned router_n_sent;
uint16_t (*router_rx)(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n);
uint16_t (*router_tx)(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n);

static struct error err;

// --- A kind of port without a device. It stands in for each of the real ones, which are not linked. ---

static int fake_open(struct port *p, const struct port_config *cfg, struct error *e)
{
	p->mac = cfg->mac;
	p->link_up = p->up = true;
	snprintf(p->driver, sizeof(p->driver), "test");
	return 0;
}

static void fake_close(struct port *p)
{
}

static uint16_t fake_rx(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	return router_rx ? router_rx(q, pkts, n) : 0;
}

static uint16_t fake_tx(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i;

	if (router_tx)
		return router_tx(q, pkts, n);
	for (i = 0; i < n && router_n_sent < NODE_TEST_MAX; i++)
		router_sent[router_n_sent++] = (struct router_sent){q->port->id, q->index, pkts[i]};
	return i;
}

const struct port_ops port_dpdk_ops = {.kind = "dpdk", .open = fake_open, .close = fake_close, .rx = fake_rx, .tx = fake_tx};
const struct port_ops port_tap_ops = {.kind = "tap", .open = fake_open, .close = fake_close, .rx = fake_rx, .tx = fake_tx};
const struct port_ops port_memif_ops = {.kind = "memif", .open = fake_open, .close = fake_close, .rx = fake_rx, .tx = fake_tx};
const struct port_ops port_vhost_ops = {.kind = "vhost", .open = fake_open, .close = fake_close, .rx = fake_rx, .tx = fake_tx};

struct rte_mempool *port_pool(int numa)
{
	return node_test_pool;
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
		rte_panic("%s is no MAC\n", text);
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
	bridge_tick();
	rcu_poll();
}

void router_nexthop(const struct nexthop_config *cfg)
{
	must(nexthop_add(cfg, true, &err) == 0, "next hop");
	router_poll();
}

void router_tunnel(uint32_t id, enum encap encap, const char *remote, uint32_t label_or_vni)
{
	struct nexthop_config c = {.id = id, .kind = NH_TUNNEL};

	c.tunnel =
		(struct tunnel_config){.encap = encap, .remote = router_addr(remote), .label = label_or_vni, .vni = label_or_vni};
	router_nexthop(&c);
}

void router_route(const char *vrf, const char *prefix, uint32_t nexthop)
{
	struct ip_prefix p;

	must(ip_parse_prefix(prefix, NULL, &p, &err) == 0, prefix);
	must(route_set(vrf_find(vrf), &p, nexthop, ROUTE_API, &err) == 0, prefix);
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
	must(port_set(port_get(port), cfg, &err) == 0, cfg->name);
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
	struct port_config c = {.role = PORT_FABRIC, .mac = router_mac(mac), .vlan = vlan, .vrf = UINT16_MAX, .bridge = UINT16_MAX};

	add_port(&c, name, ip4, ip6);
}

static void add_tenant(const char *name, uint16_t vrf, uint16_t bridge, const char *ip4, const char *ip6, const char *guest4,
		       const char *guest6, const char *mac)
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
	static struct worker w = {.rx = &nothing};

	if (w.inject == NULL)
		w.inject = rte_ring_create("router_fixture", 1024, SOCKET_ID_ANY, RING_F_SC_DEQ);
	if (w.inject == NULL)
		rte_panic("no memory for a ring\n");
	return this_worker = &w;
}

int router_setup(void **state)
{
	if (node_test_setup(state) < 0)
		return -1;
	must(fib_init(64 << 20) == 0 && punt_init() == 0, "memory");
	must(vrf_init(&err) == 0 && overlay_init(&err) == 0 && bridge_init(&err) == 0, "tables");
	must(neighbor_init() == 0 && nexthop_init() == 0 && underlay_init(&err) == 0, "tables");
	overlay_router_mac = router_mac(ROUTER);
	configure();
	router_worker();
	return 0;
}

int router_teardown(void **state)
{
	router_forget();
	return node_test_teardown(state);
}

uint64_t router_drops(uint16_t port, const char *reason)
{
	const struct drop_reason *r = drop_reason_find(reason);

	if (r == NULL)
		rte_panic("no drop reason %s\n", reason);
	return counters_drops(port, r->id);
}

// --- Packets. ---

static int nibble(char c)
{
	if (!isxdigit((unsigned char)c))
		rte_panic("'%c' is no hex digit\n", c);
	return isdigit((unsigned char)c) ? c - '0' : tolower(c) - 'a' + 10;
}

// The next byte of the text: -1 = end, 256 = any.
static int next_byte(const char **s)
{
	int v;

	while (**s == ' ')
		(*s)++;
	if (**s == '\0')
		return -1;
	v = **s == '.' ? 256 : nibble(**s) << 4 | nibble((*s)[1]);
	*s += 2;
	return v;
}

struct rte_mbuf *router_hex(const char *hex)
{
	struct rte_mbuf *m = node_test_packet("", 0);
	int v;

	while ((v = next_byte(&hex)) >= 0)
		*(uint8_t *)rte_pktmbuf_append(m, 1) = (uint8_t)v;
	meta(m)->bridge = UINT16_MAX;
	return m;
}

bool router_equal(struct rte_mbuf *m, const char *hex)
{
	const uint8_t *data = rte_pktmbuf_mtod(m, const uint8_t *);
	unsigned at = 0;
	int v;

	for (; (v = next_byte(&hex)) >= 0; at++) {
		if (at < m->data_len && (v == 256 || data[at] == v))
			continue;
		fprintf(stderr, "byte %u of %u: wanted %02x, got %02x; then wanted: %s\n", at, m->data_len, v,
			at < m->data_len ? data[at] : 0, hex);
		rte_pktmbuf_dump(stderr, m, m->data_len);
		return false;
	}
	if (at == m->pkt_len && m->pkt_len == m->data_len)
		return true;
	fprintf(stderr, "wanted %u bytes, got %u\n", at, m->pkt_len);
	rte_pktmbuf_dump(stderr, m, m->data_len);
	return false;
}

uint16_t router_sum(const void *data, unsigned len, uint32_t start)
{
	const uint8_t *p = data;
	uint32_t sum = start;
	unsigned i;

	for (i = 0; i < len; i++)
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	while (sum > 0xffff)
		sum = (sum >> 16) + (sum & 0xffff);
	return (uint16_t)sum;
}

void router_checksum4(struct rte_mbuf *m, unsigned at)
{
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, at);
	uint16_t sum;

	ip[10] = ip[11] = 0;
	sum = (uint16_t)~router_sum(ip, (ip[0] & 15) * 4u, 0);
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
}

bool router_l4_ok(struct rte_mbuf *m, unsigned at)
{
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, at);
	bool v6 = (ip[0] >> 4) == 6;
	unsigned hlen = v6 ? 40 : (ip[0] & 15) * 4u, len = m->data_len - at - hlen;
	uint8_t proto = v6 ? ip[6] : ip[9];
	uint32_t pseudo = router_sum(ip + (v6 ? 8 : 12), v6 ? 32 : 8, proto + len);

	return router_sum(ip + hlen, len, proto == IPPROTO_ICMP ? 0 : pseudo) == 0xffff;
}

static void fill_ip4(uint8_t *ip, const struct packet *p, unsigned len)
{
	struct ip_addr src = router_addr(p->src), dst = router_addr(p->dst);

	ip[0] = 0x45;
	ip[1] = p->tos;
	ip[2] = (uint8_t)(len >> 8);
	ip[3] = (uint8_t)len;
	ip[4] = (uint8_t)(p->id >> 8);
	ip[5] = (uint8_t)p->id;
	ip[6] = (uint8_t)(p->frag >> 8);
	ip[7] = (uint8_t)p->frag;
	ip[8] = p->ttl ? p->ttl : 64;
	ip[9] = p->proto ? p->proto : IPPROTO_UDP;
	memcpy(ip + 12, src.bytes, 4);
	memcpy(ip + 16, dst.bytes, 4);
}

static void fill_ip6(uint8_t *ip, const struct packet *p, unsigned len)
{
	struct ip_addr src = router_addr(p->src), dst = router_addr(p->dst);

	ip[0] = (uint8_t)(0x60 | p->tos >> 4);
	ip[1] = (uint8_t)(p->tos << 4);
	ip[4] = (uint8_t)((len - 40) >> 8);
	ip[5] = (uint8_t)(len - 40);
	ip[6] = p->proto ? p->proto : IPPROTO_UDP;
	ip[7] = p->ttl ? p->ttl : 64;
	memcpy(ip + 8, src.bytes, 16);
	memcpy(ip + 24, dst.bytes, 16);
}

// Adds to what is there.
static void append_packet(struct rte_mbuf *m, const struct packet *p)
{
	static const uint8_t ports[] = {1000 >> 8, 1000 & 255, 2000 >> 8, 2000 & 255};
	bool v6 = strchr(p->src, ':') != NULL;
	unsigned i, hlen = v6 ? 40 : 20, payload = p->payload ? p->payload : 26, at = m->data_len;
	uint8_t *ip = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(hlen + payload));

	if (ip == NULL)
		rte_panic("%u bytes do not fit into a packet\n", hlen + payload);
	memset(ip, 0, hlen);
	for (i = 0; i < payload; i++)
		ip[hlen + i] = (uint8_t)i;
	if (p->proto == 0 || p->proto == IPPROTO_UDP) {
		memcpy(ip + hlen, ports, sizeof(ports));
		ip[hlen + 4] = (uint8_t)(payload >> 8);
		ip[hlen + 5] = (uint8_t)payload;
		ip[hlen + 6] = ip[hlen + 7] = 0;
	}
	if (v6) {
		fill_ip6(ip, p, hlen + payload);
	} else {
		fill_ip4(ip, p, hlen + payload);
		router_checksum4(m, at);
	}
}

struct rte_mbuf *router_packet(uint16_t vrf, const struct packet *p)
{
	struct rte_mbuf *m = router_hex("");

	append_packet(m, p);
	meta(m)->vrf = vrf;
	return m;
}

struct rte_mbuf *router_frame(uint16_t port, const char *dst, const char *src, const struct packet *p)
{
	struct rte_mbuf *m = router_hex("");
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)rte_pktmbuf_append(m, sizeof(*eth));

	eth->dst_addr = router_mac(dst);
	eth->src_addr = router_mac(src);
	eth->ether_type = strchr(p->src, ':') ? RTE_BE16(RTE_ETHER_TYPE_IPV6) : RTE_BE16(RTE_ETHER_TYPE_IPV4);
	append_packet(m, p);
	m->port = port;
	return m;
}
