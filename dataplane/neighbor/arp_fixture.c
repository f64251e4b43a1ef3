// SPDX-License-Identifier: Apache-2.0
#include "neighbor/arp_fixture.h"

#include <netinet/in.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_debug.h>

#include "base/rcu.h"
#include "graph/counters.h"
#include "graph/node_test.h"
#include "neighbor/arp_packet.h"
#include "neighbor/nd_packet.h"
#include "neighbor/neighbor_private.h"
#include "worker/punt.h"
#include "worker/worker.h"

struct rte_mbuf *fixture_sent[FIXTURE_MAX_SENT];
unsigned fixture_n_sent, fixture_changes;
uint64_t fixture_punts, fixture_taken;
bool fixture_rebuilding, fixture_enough;

struct port *port_table[PORT_MAX];
struct port_fwd *port_fwds[PORT_MAX];

static struct port ports[3];
static struct port_fwd fwds[3];
static struct port_listener *listener;
static void (*handlers[PUNT_KINDS])(struct rte_mbuf *m);
static struct ip_prefix route;
static uint16_t route_port;
static uint64_t now = 1ull << 40, drops_before[DROP_MAX];

// --- Replacements for what neighbor/ calls. ---

struct port *port_get(uint16_t id)
{
	return id < PORT_MAX ? port_table[id] : NULL;
}

struct port *port_find(const char *name)
{
	unsigned i;

	for (i = 1; i < RTE_DIM(ports); i++)
		if (port_table[i] && strcmp(ports[i].cfg.name, name) == 0)
			return &ports[i];
	return NULL;
}

void port_listen(struct port_listener *l)
{
	listener = l;
}

uint16_t port_settings_reserve(size_t size)
{
	return 0; // the only room
}

struct rte_mempool *port_pool(int numa)
{
	return node_test_pool;
}

void punt_register(enum punt kind, void (*fn)(struct rte_mbuf *m))
{
	handlers[kind] = fn;
}

bool punt_take(uint16_t port, enum punt kind)
{
	return !fixture_enough;
}

uint64_t punt_token(void)
{
	return fixture_punts;
}

bool punt_passed(uint64_t token)
{
	return fixture_taken >= token;
}

int worker_inject(struct rte_mbuf *m, enum inject edge)
{
	if (edge != INJECT_TX || fixture_n_sent == FIXTURE_MAX_SENT)
		rte_panic("unexpected packet\n");
	fixture_sent[fixture_n_sent++] = m;
	return 0;
}

static void on_changed(void)
{
	fixture_changes++;
}

static bool is_rebuilding(void)
{
	return fixture_rebuilding;
}

static bool leads_elsewhere(uint16_t vrf, const struct ip_addr *addr, uint16_t port)
{
	return vrf == 7 && route.addr.family == addr->family && ip_prefix_covers(&route, addr) && route_port != port;
}

static uint64_t clock_now(void)
{
	return now;
}

// --- Called by tests. ---

struct ip_addr fixture_addr(const char *text)
{
	struct ip_addr a;

	if (ip_parse_addr(text, NULL, &a, NULL) < 0)
		rte_panic("%s is not an address\n", text);
	return a;
}

struct rte_ether_addr fixture_mac(const char *text)
{
	struct rte_ether_addr mac;

	if (rte_ether_unformat_addr(text, &mac) < 0)
		rte_panic("%s is not a MAC\n", text);
	return mac;
}

static struct ip_prefix ifaddr(const char *text)
{
	struct ip_prefix p;

	if (ip_parse_ifaddr(text, NULL, &p, NULL) < 0)
		rte_panic("%s is not a prefix\n", text);
	return p;
}

void fixture_publish(struct port *p)
{
	const struct ip_prefix *list = p->role == PORT_FABRIC ? p->cfg.addrs : p->cfg.gateways;
	unsigned i, n = p->role == PORT_FABRIC ? p->cfg.n_addrs : p->cfg.n_gateways;
	struct port_fwd *f = &fwds[p->id];

	memset(f, 0, sizeof(*f));
	f->mac = p->mac;
	f->role = p->role;
	f->proxy_arp = neighbor_config(&p->cfg)->proxy_arp;
	f->vrf = p->cfg.vrf;
	f->bridge = p->cfg.bridge;
	f->vlan_be = rte_cpu_to_be_16(p->cfg.vlan);
	for (i = 0; i < n; i++) {
		if (list[i].addr.family == IPV4)
			f->ip4[f->n_ip4++] = ip4_be(&list[i].addr);
		else
			memcpy(f->ip6[f->n_ip6++], list[i].addr.bytes, 16);
	}
	port_table[p->id] = p;
	port_fwds[p->id] = f;
	if (listener)
		listener->changed(p, &p->cfg);
}

static void make_port(uint16_t id, const char *name, enum port_role role, const char *mac, const char *ip4,
		      const char *ip6)
{
	struct port *p = &ports[id];
	struct ip_prefix *list = role == PORT_FABRIC ? p->cfg.addrs : p->cfg.gateways;

	memset(p, 0, sizeof(*p));
	p->id = id;
	p->role = (uint8_t)role;
	p->up = true;
	p->mac = fixture_mac(mac);
	snprintf(p->cfg.name, sizeof(p->cfg.name), "%s", name);
	p->cfg.role = role;
	p->cfg.vrf = role == PORT_FABRIC ? 0 : 7;
	p->cfg.bridge = UINT16_MAX;
	list[0] = ifaddr(ip4);
	list[1] = ifaddr(ip6);
	*(role == PORT_FABRIC ? &p->cfg.n_addrs : &p->cfg.n_gateways) = 2;
	fixture_publish(p);
}

int fixture_reset(void **state)
{
	struct neighbor *n;
	unsigned i;

	fixture_forget();
	for (i = 1; i < neighbor_end; i++) {
		n = neighbor_at(i);
		if (n && n->refs)
			rte_panic("a test still holds adjacency %u\n", i);
		if (n)
			neighbor_remove(n);
	}
	rcu_poll();
	make_port(FABRIC, "fabric0", PORT_FABRIC, "02:00:00:00:00:01", "192.0.2.1/24", "2001:db8::1/64");
	make_port(TENANT, "tenant0", PORT_TENANT, "00:00:5e:00:01:01", "10.0.0.1/24", "fd00::1/64");
	fixture_route(NULL, 0);
	fixture_changes = 0;
	fixture_enough = false;
	fixture_taken = fixture_punts;
	neighbor_age_seconds = 30;
	for (i = 0; i < DROP_MAX; i++)
		drops_before[i] = counters_drops(0, (uint16_t)i) + counters_drops(FABRIC, (uint16_t)i) +
				  counters_drops(TENANT, (uint16_t)i);
	return 0;
}

int fixture_setup(void **state)
{
	static struct neighbor_listener upper = {
		.changed = on_changed, .rebuilding = is_rebuilding, .leads_elsewhere = leads_elsewhere};

	neighbor_listen(&upper);
	neighbor_clock = clock_now;
	if (node_test_setup(state) < 0 || neighbor_init() < 0)
		return -1;
	return fixture_reset(state);
}

int fixture_teardown(void **state)
{
	fixture_reset(state);
	return node_test_teardown(state);
}

void fixture_wait(unsigned ms)
{
	unsigned t;

	for (t = 0; t < ms; t += 100) {
		now += rte_get_tsc_hz() / 10;
		rcu_poll();
		neighbor_poll();
	}
}

void fixture_remove(uint16_t port)
{
	listener->removed(&ports[port]);
	port_table[port] = NULL;
	port_fwds[port] = NULL;
}

void fixture_link(struct port *p, bool up)
{
	p->up = up;
	listener->link(p);
}

void fixture_route(const char *prefix, uint16_t port)
{
	memset(&route, 0, sizeof(route));
	if (prefix == NULL)
		return;
	route = ifaddr(prefix);
	route_port = port;
}

void fixture_punt(unsigned kind, struct rte_mbuf *m)
{
	handlers[kind](m);
}

struct rte_mbuf *fixture_take(void)
{
	struct rte_mbuf *m = fixture_sent[0];

	if (fixture_n_sent == 0)
		return NULL;
	memmove(&fixture_sent[0], &fixture_sent[1], --fixture_n_sent * sizeof(fixture_sent[0]));
	return m;
}

void fixture_forget(void)
{
	rte_pktmbuf_free_bulk(fixture_sent, fixture_n_sent);
	fixture_n_sent = 0;
}

uint64_t fixture_drops(const char *reason)
{
	const struct drop_reason *r = drop_reason_find(reason);

	if (r == NULL)
		rte_panic("no drop reason %s\n", reason);
	return counters_drops(0, r->id) + counters_drops(FABRIC, r->id) + counters_drops(TENANT, r->id) -
	       drops_before[r->id];
}

uint32_t fixture_hold(uint16_t port, const char *addr)
{
	const struct ip_addr a = fixture_addr(addr);
	struct error err;
	uint32_t adj;

	if (adjacency_hold(port, &a, NULL, &adj, &err) < 0)
		rte_panic("%s\n", err.message);
	return adj;
}

struct neighbor *fixture_find(uint16_t port, const char *addr)
{
	const struct ip_addr a = fixture_addr(addr);

	return neighbor_find(port, &a);
}

void fixture_learn(uint16_t port, const char *addr, const char *mac, bool create, bool confirmed)
{
	const struct rte_ether_addr m = fixture_mac(mac);
	const struct ip_addr a = fixture_addr(addr);

	neighbor_learn(port, &a, &m, create, confirmed);
}

struct rte_mbuf *fixture_packet(const char *dst, uint8_t tag)
{
	const struct ip_addr d = fixture_addr(dst);
	struct {
		struct rte_ipv4_hdr ip;
		uint8_t tag;
	} __rte_packed p = {.ip = {.version_ihl = 0x45, .dst_addr = ip4_be(&d)}, .tag = tag};

	return fixture_frame(TENANT, &p, sizeof(p), 0);
}

unsigned fixture_count_requests(void)
{
	unsigned i, n = 0;

	for (i = 0; i < fixture_n_sent; i++)
		n += rte_pktmbuf_mtod(fixture_sent[i], struct rte_ether_hdr *)->ether_type ==
		     RTE_BE16(RTE_ETHER_TYPE_ARP);
	fixture_forget();
	return n;
}

struct rte_mbuf *fixture_frame(uint16_t port, const void *data, size_t len, unsigned l3)
{
	struct rte_mbuf *m = node_test_packet(data, len);

	m->port = port;
	meta(m)->l3 = (uint8_t)l3;
	meta(m)->bridge = port_fwds[port] ? port_fwds[port]->bridge : UINT16_MAX;
	return m;
}

struct rte_mbuf *fixture_arp(uint16_t port, unsigned op, const char *smac, const char *sip, const char *tmac,
			     const char *tip)
{
	const struct ip_addr s = fixture_addr(sip), t = fixture_addr(tip);
	struct {
		struct rte_ether_hdr eth;
		struct rte_arp_hdr arp;
	} f = {.eth = {.dst_addr = fixture_mac(tmac),
		       .src_addr = fixture_mac(smac),
		       .ether_type = RTE_BE16(RTE_ETHER_TYPE_ARP)},
	       .arp = {.arp_hardware = RTE_BE16(1),
		       .arp_protocol = RTE_BE16(RTE_ETHER_TYPE_IPV4),
		       .arp_hlen = 6,
		       .arp_plen = 4,
		       .arp_opcode = rte_cpu_to_be_16((uint16_t)op),
		       .arp_data = {.arp_sha = fixture_mac(smac), .arp_sip = ip4_be(&s), .arp_tip = ip4_be(&t)}}};

	if (!rte_is_broadcast_ether_addr(&f.eth.dst_addr))
		f.arp.arp_data.arp_tha = f.eth.dst_addr;
	return fixture_frame(port, &f, sizeof(f), sizeof(f.eth));
}

struct rte_mbuf *fixture_nd(uint16_t port, unsigned type, uint32_t flags, const char *smac, const char *src,
			    const char *dst, const char *target, const char *option_mac)
{
	struct {
		struct rte_ether_hdr eth;
		struct rte_ipv6_hdr ip;
		struct nd_header nd;
		struct nd_mac_option o;
	} __rte_packed f = {.eth = {.src_addr = fixture_mac(smac), .ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV6)},
			    .nd = {.type = (uint8_t)type, .flags = flags},
			    .o = {.type = type == ND_ADVERT ? ND_OPT_TARGET_MAC : ND_OPT_SOURCE_MAC, .len = 1}};
	struct ip_addr s = fixture_addr(src), d = fixture_addr(dst), t = fixture_addr(target);
	unsigned len = sizeof(f) - (option_mac ? 0 : (unsigned)sizeof(f.o));

	memcpy(f.nd.target, t.bytes, 16);
	nd_fill_ip(&f.ip, s.bytes, d.bytes);
	f.ip.payload_len = rte_cpu_to_be_16((uint16_t)(len - sizeof(f.eth) - sizeof(f.ip)));
	f.eth.dst_addr = (struct rte_ether_addr){{0x33, 0x33, d.bytes[12], d.bytes[13], d.bytes[14], d.bytes[15]}};
	if (d.bytes[0] != 0xff)
		f.eth.dst_addr = port_fwds[port]->mac;
	if (option_mac)
		f.o.mac = fixture_mac(option_mac);
	nd_fill_checksum(&f.ip, &f.nd);
	return fixture_frame(port, &f, len, sizeof(f.eth));
}

void fixture_checksum(struct rte_mbuf *m)
{
	struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv6_hdr *, meta(m)->l3);

	nd_fill_checksum(ip, (struct nd_header *)(ip + 1));
}
