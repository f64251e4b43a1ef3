// SPDX-License-Identifier: Apache-2.0
#include "l2/bridge_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_debug.h>

#include "base/rcu.h"
#include "flow/bridged.h"
#include "graph/counters.h"
#include "graph/node_test.h"
#include "neighbor/answer.h"
#include "neighbor/frame.h"
#include "worker/worker.h"

#define PORTS 8
#define TUNNELS 8
#define TUNNEL_FIRST 101
#define OUTER_AT 32 // in the headroom

struct port *port_table[PORT_MAX];
struct port_fwd *port_fwds[PORT_MAX];
struct flow_zone flow_zones[1 << 16];
struct nexthop *nexthop_table[NEXTHOP_MAX];
struct error fixture_error;

static struct worker fixture_worker;
__thread struct worker *this_worker = &fixture_worker;

static struct port ports[PORTS + 1];
static struct port_fwd fwds[PORTS + 1];
static struct port_listener *listener;
static struct nexthop_entry entries[TUNNELS];
static struct referrer *nexthop_referrer;
static struct nexthop nexthops[TUNNELS];
static uint64_t now = 1ull << 40;

// Encapsulations, which are not linked.
static unsigned vxlan, mplsoudp; // places of their nodes

__attribute__((constructor)) static void add_encaps(void)
{
	vxlan = node_list_add(ENCAP_SEND_NODES, "encap_vxlan4");
	mplsoudp = node_list_add(ENCAP_SEND_NODES, "encap_mplsoudp4");
}

// --- What l2/ calls. ---

void answer_link_local(const struct rte_ether_addr *mac, uint8_t out[16])
{
	memcpy(out, (const uint8_t[16]){0xfe, 0x80, [15] = 1}, 16);
}

struct fixture_sent fixture_sent[FIXTURE_SENT];
unsigned fixture_n_sent;

struct rte_mbuf *frame_new(const struct port *p, const struct rte_ether_addr *dst, uint16_t ether_type, unsigned len,
			   void **payload)
{
	static const uint8_t zeroes[256];
	struct rte_mbuf *m = node_test_packet(zeroes, (unsigned)sizeof(struct rte_ether_hdr) + len);
	struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);

	eth->dst_addr = *dst;
	eth->src_addr = p->mac;
	eth->ether_type = rte_cpu_to_be_16(ether_type);
	*payload = eth + 1;
	return m;
}

void frame_send(const struct port *p, struct rte_mbuf *m)
{
	struct fixture_sent *s = &fixture_sent[fixture_n_sent++ % FIXTURE_SENT];

	*s = (struct fixture_sent){.port = p->id, .len = m->data_len};
	memcpy(s->bytes, rte_pktmbuf_mtod(m, void *), m->data_len);
	rte_pktmbuf_free(m);
}

void flow_frame_decide(const struct rte_mbuf *m, uint16_t sender, enum flow_flood flood, struct flow_frame *f)
{
	rte_panic("no bridge domain keeps flows here\n");
}

const struct drop_reason *flow_frame_denied(const struct flow_frame *f, uint16_t receiver)
{
	rte_panic("no bridge domain keeps flows here\n");
}

struct port *port_get(uint16_t id)
{
	return id < PORT_MAX ? port_table[id] : NULL;
}

struct port *port_next(const struct port *p)
{
	unsigned i = p ? p->id + 1u : 1;

	while (i <= PORTS && port_table[i] == NULL)
		i++;
	return i <= PORTS ? port_table[i] : NULL;
}

struct port *port_find(const char *name)
{
	struct port *p;

	for (p = port_next(NULL); p; p = port_next(p))
		if (strcmp(p->cfg.name, name) == 0)
			return p;
	return NULL;
}

unsigned port_count(void)
{
	return PORTS;
}

void port_listen(struct port_listener *l)
{
	listener = l;
}

struct nexthop_entry *nexthop_get(uint32_t id)
{
	return id >= TUNNEL_FIRST && id < TUNNEL_FIRST + TUNNELS ? &entries[id - TUNNEL_FIRST] : NULL;
}

void nexthop_ref(uint32_t id)
{
	nexthop_get(id)->refs++;
}

void nexthop_unref(uint32_t id)
{
	nexthop_get(id)->refs--;
}

void nexthop_refer(struct referrer *r)
{
	nexthop_referrer = r;
}

int nexthop_usable(uint32_t id, const char *field, struct error *err)
{
	return nexthop_get(id) ? 0 : error_set(err, ENOENT, field, NULL, NULL, "there is no such next hop");
}

static uint64_t clock_now(void)
{
	return now;
}

// --- What tests call. ---

const char *fixture_user(uint32_t nexthop)
{
	static char text[128];

	return nexthop_referrer->find(nexthop, text, sizeof(text)) ? text : NULL;
}

struct rte_ether_addr fixture_mac(const char *text)
{
	struct rte_ether_addr mac;

	if (rte_ether_unformat_addr(text, &mac) < 0)
		rte_panic("%s is not a MAC\n", text);
	return mac;
}

struct ip_addr fixture_addr(const char *text)
{
	struct ip_addr a;

	if (ip_parse_addr(text, NULL, &a, NULL) < 0)
		rte_panic("%s is not an address\n", text);
	return a;
}

static void publish(struct port *p)
{
	fwds[p->id] = (struct port_fwd){
		.mac = p->mac, .role = p->role, .vrf = p->cfg.vrf, .bridge = p->cfg.bridge, .mtu = 1500};
	port_fwds[p->id] = &fwds[p->id];
}

struct port *fixture_join(uint16_t id, uint16_t bridge, uint16_t vrf)
{
	struct port *p = &ports[id];
	struct port_config old = p->cfg, cfg = p->cfg;

	cfg.bridge = bridge;
	cfg.vrf = vrf;
	if (listener->check(port_table[id], &cfg, &fixture_error) < 0)
		return NULL;
	p->cfg = cfg;
	publish(p);
	if (port_table[id]) {
		listener->changed(p, &old);
		return p;
	}
	port_table[id] = p;
	listener->added(p);
	return p;
}

void fixture_link(uint16_t id, bool up)
{
	ports[id].up = up;
	listener->link(&ports[id]);
}

void fixture_leave(uint16_t id)
{
	listener->removed(&ports[id]);
	port_table[id] = NULL;
	port_fwds[id] = NULL;
}

static void make_port(uint16_t id)
{
	struct port *p = &ports[id];

	memset(p, 0, sizeof(*p));
	p->id = id;
	p->role = PORT_TENANT;
	p->up = true;
	p->mac = fixture_mac(GATEWAY);
	p->cfg.vrf = p->cfg.bridge = UINT16_MAX;
	snprintf(p->cfg.name, sizeof(p->cfg.name), "p%u", id);
	publish(p);
	port_table[id] = p;
}

void fixture_tunnel(uint32_t id, enum nexthop_kind kind, const char *remote, uint16_t mtu, const char *encap)
{
	struct nexthop_entry *e = nexthop_get(id);
	struct nexthop *nh = &nexthops[id - TUNNEL_FIRST];

	e->cfg = (struct nexthop_config){.id = id, .kind = kind, .tunnel = {.remote = fixture_addr(remote)}};
	*nh = (struct nexthop){.id = id, .kind = (uint8_t)kind, .mtu = mtu, .n_paths = 1};
	nh->edge = mtu == 0 ? NH_EDGE_DROP : NH_EDGE_ENCAP + (strcmp(encap, "vxlan") == 0 ? vxlan : mplsoudp);
	nh->inner_eth = strcmp(encap, "vxlan") == 0 ? sizeof(struct rte_ether_hdr) : 0;
	nexthop_table[id] = nh;
}

uint32_t fixture_refs(uint32_t id)
{
	return nexthop_get(id)->refs;
}

struct bridge *fixture_bridge(const char *name, unsigned n_flood)
{
	struct bridge_config c = {.n_flood = n_flood};
	struct bridge *b;
	unsigned i;

	snprintf(c.name, sizeof(c.name), "%s", name);
	for (i = 0; i < n_flood; i++)
		c.flood[i] = TUNNEL_FIRST + i;
	b = bridge_add(&c, &fixture_error);
	if (b == NULL)
		rte_panic("bridge %s: %s\n", name, fixture_error.message);
	return b;
}

int fixture_reset(void **state)
{
	struct bridge *b;
	uint16_t i;
	char text[32];

	for (i = 1; i <= PORTS; i++)
		if (port_table[i])
			fixture_leave(i);
	while ((b = bridge_next(NULL)) != NULL) {
		b->refs = 0;
		bridge_del(b->cfg.name, NULL);
	}
	bridge_tick(); // what was still in the ring
	rcu_poll();
	if (mac_count() != 0)
		rte_panic("%u MACs without a bridge\n", mac_count());
	for (i = 1; i <= PORTS; i++)
		make_port(i);
	for (i = 0; i < TUNNELS; i++) {
		if (entries[i].refs)
			rte_panic("tunnel %u is still referred to\n", TUNNEL_FIRST + i);
		snprintf(text, sizeof(text), "192.0.2.%u", i + 1u);
		fixture_tunnel(TUNNEL_FIRST + i, NH_TUNNEL, text, 1450, "vxlan");
	}
	mac_age_seconds = 300;
	fixture_wait(1); // another tenth of a second: workers ask again
	return 0;
}

int fixture_setup(void **state)
{
	bridge_clock = clock_now;
	if (node_test_setup(state) < 0 || bridge_init(&fixture_error) < 0)
		return -1;
	return fixture_reset(state);
}

int fixture_teardown(void **state)
{
	fixture_reset(state);
	return node_test_teardown(state);
}

void fixture_wait(unsigned seconds)
{
	unsigned i;

	for (i = 0; i < seconds * 10; i++) {
		now += rte_get_tsc_hz() / 10;
		bridge_tick();
		bridge_poll();
		rcu_poll();
	}
}

static void write_outer(struct rte_mbuf *m, const char *remote)
{
	struct ip_addr a = fixture_addr(remote);
	uint8_t *outer = RTE_PTR_ADD(m->buf_addr, OUTER_AT);

	memset(outer, 0, 40);
	outer[0] = a.family == IPV4 ? 0x45 : 0x60;
	memcpy(outer + (a.family == IPV4 ? 12 : 8), a.bytes, ip_bytes(a.family));
	meta(m)->outer = OUTER_AT;
	meta(m)->flags |= META_FROM_TUNNEL;
}

struct rte_mbuf *fixture_frame(uint16_t bridge, uint16_t port, const char *remote, const char *dst, const char *src,
			       uint16_t type)
{
	uint8_t data[60] = {0};
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)data;
	struct rte_mbuf *m;

	eth->dst_addr = fixture_mac(dst);
	eth->src_addr = fixture_mac(src);
	eth->ether_type = rte_cpu_to_be_16(type);
	data[14] = type == IP ? 0x45 : type == IP6 ? 0x60 : 0;
	m = node_test_packet(data, sizeof(data));
	m->port = port;
	meta(m)->bridge = bridge;
	meta(m)->vrf = UINT16_MAX;
	meta(m)->l3 = sizeof(*eth); // as tenant_input leaves it
	if (remote)
		write_outer(m, remote);
	return m;
}

struct rte_mbuf *fixture_frame_len(struct rte_mbuf *m, unsigned len)
{
	if (len > m->pkt_len)
		rte_pktmbuf_append(m, (uint16_t)(len - m->pkt_len));
	else
		rte_pktmbuf_trim(m, (uint16_t)(m->pkt_len - len));
	return m;
}

void fixture_learn(uint16_t bridge, uint16_t port, const char *remote, const char *mac)
{
	struct rte_mbuf *m = fixture_frame(bridge, port, remote, ALL, mac, ARP);

	node_test_one("bridge_input", m);
	rte_pktmbuf_free(m);
	bridge_tick();
}

bool fixture_find(uint16_t bridge, const char *mac, struct mac_entry *out)
{
	const struct rte_ether_addr want = fixture_mac(mac);
	struct mac_entry after = {.bridge = bridge}, e;

	while (mac_next(&after, &e) && e.bridge == bridge) {
		if (rte_is_same_ether_addr(&e.mac, &want)) {
			*out = e;
			return true;
		}
		after = e;
	}
	return false;
}

uint64_t fixture_drops(uint16_t port, const char *reason)
{
	const struct drop_reason *r = drop_reason_find(reason);

	if (r == NULL)
		rte_panic("no drop reason %s\n", reason);
	return counters_drops(port, r->id);
}
