// SPDX-License-Identifier: Apache-2.0
#include "fuzz_router.h"

#include <netinet/in.h>
#include <stdio.h>

#include <rte_cycles.h>
#include <rte_ring.h>

#include "base/field_limits.h"
#include "base/rcu.h"
#include "boot/boot.h"
#include "eth/source_check.h"
#include "fuzz_frame.h"
#include "fuzz_view.h"
#include "graph/counters.h"
#include "graph/graph.h"
#include "graph/held.h"
#include "host/host.h"
#include "l2/mac.h"
#include "l3/icmp.h"
#include "l3/underlay.h"
#include "neighbor/neighbor_private.h"
#include "overlay/overlay.h"
#include "policy/rules.h"
#include "worker/handoff.h"
#include "worker/punt.h"
#include "worker/spread.h"
#include "worker/worker.h"

// First control byte, besides those of fuzz_view.h. SPLIT: into segments, at the second control byte. MORE: two more
// control bytes are the length of the frame, and another frame with its own port and control bytes follows. BUSY: the
// worker bounds its bursts, and another one sends to the kernel, but does nothing until the input's end. EMPTY: no
// buffer is free. A frame that is BUSY, EMPTY and has one bits only in its second control byte comes often.
enum { TAILROOM = 8, SPLIT = 16, MORE = 32, BUSY = 64, EMPTY = 128 };
#define FRAMES_MAX 4
#define STORM 256 // frames
#define STORM_WALKS 4
#define FLOOD_FAST 1000000000 // copies per second: the bucket is full at once
#define HOST_WORKER 7
#define HOST_RING 2 // packets that fit

// Labels and VNIs of the tunnels, by the VRF that may use them.
enum { OUT_RED = 1000, OUT_BLUE = 2000, OUT_LAN = 3000, OUT_IRB = 4000, OUT_RANGE = 1000 };

// Labels and VNIs of received packets.
enum {
	IN_RED = 100,
	IN_BLUE,
	IN_LAN,
	IN_IRB,
	IN_PORT,
	IN_REJECT,
	IN_UNIFORM,
	IN_TRANSIT,
	IN_GROUP,
	IN_HOLD,
	IN_SOURCES,
	IN_END
};

enum {
	NH_TUNNELS = 200,
	NH_BLUE = 220,
	NH_REJECTS = 230,
	NH_DISCARDS,
	NH_GROUPS,
	NH_GUEST,
	NH_ABSENT,
	NH_LAN = 240,
	NH_IRB = 250
};

static struct rte_graph *graph;
static struct rx_list *rx;
static struct rte_mbuf *waiting[STORM / STORM_WALKS];
static unsigned n_waiting;
static struct handoff host_ring = {.size = HOST_RING, .opened = true, .flowing = true};
static struct rte_ring *punts[PUNT_CLASSES];
static uint64_t now = 1ull << 40;
static unsigned neighbors, macs;

static uint64_t fuzz_clock(void)
{
	return now;
}

static uint16_t receive(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	unsigned i;

	n = (uint16_t)RTE_MIN(n, n_waiting);
	for (i = 0; i < n; i++)
		pkts[i] = waiting[--n_waiting];
	return n;
}

// --- Configuration. ---

static const struct {
	const char *encap;
	const char *remote;
} kinds[] = {{"mplsoudp", "203.0.113.9"},   {"mplsoudp", "2001:db8:f::9"}, {"mplsogre", "203.0.113.9"},
	     {"mplsogre", "2001:db8:f::9"}, {"vxlan", "203.0.114.9"},      {"vxlan", "2001:db8:f::9"},
	     {"geneve", "203.0.113.9"},     {"geneve", "2001:db8:f::9"}};

static void add_tunnel(uint32_t id, unsigned kind, uint32_t label, bool special)
{
	struct nexthop_config c = {.id = id, .kind = NH_TUNNEL};

	c.tunnel = (struct tunnel_config){.encap = encap_find(kinds[kind].encap),
					  .remote = router_addr(kinds[kind].remote),
					  .label = label,
					  .vni = label};
	c.tunnel.uniform = c.tunnel.gre_has_key = special;
	c.tunnel.udp6_checksum = special && c.tunnel.remote.family == IPV6 && c.tunnel.encap->proto == IPPROTO_UDP
					 ? UDP6_CHECKSUM_OFF
					 : UDP6_CHECKSUM_DEFAULT;
	router_nexthop(&c);
}

static void add_routes(const char *vrf, unsigned n, uint32_t nexthop)
{
	char text[64];

	snprintf(text, sizeof(text), "172.%u.0.0/16", 16 + n);
	router_route(vrf, text, nexthop);
	snprintf(text, sizeof(text), "fd00:%u::/32", 16 + n);
	router_route(vrf, text, nexthop);
}

static void add_nexthops(void)
{
	struct nexthop_config group = {.id = NH_GROUPS, .kind = NH_GROUP, .group = {.n = 2}};

	group.group.member[0] = (struct group_member){NH_TUNNELS, 1};
	group.group.member[1] = (struct group_member){NH_TUNNELS + 5, 3};
	router_nexthop(&(struct nexthop_config){.id = NH_REJECTS, .kind = NH_REJECT});
	router_nexthop(&(struct nexthop_config){.id = NH_DISCARDS, .kind = NH_DISCARD});
	router_nexthop(&(struct nexthop_config){
		.id = NH_GUEST, .kind = NH_PORT, .port = {.id = RED0, .mac = router_mac("02:00:00:00:00:03")}});
	router_nexthop(&(struct nexthop_config){
		.id = NH_ABSENT, .kind = NH_PORT, .port = {.id = RED1, .addr = router_addr("10.0.0.77")}});
	router_nexthop(&group);
}

static void add_red(void)
{
	static const uint32_t others[] = {NH_REJECTS, NH_DISCARDS, NH_GROUPS, NH_GUEST, NH_ABSENT};
	unsigned i;

	for (i = 0; i < 2 * RTE_DIM(kinds); i++) {
		add_tunnel(NH_TUNNELS + i, i % RTE_DIM(kinds), OUT_RED + i, i >= RTE_DIM(kinds));
		add_routes("red", i, NH_TUNNELS + i);
	}
	add_nexthops();
	for (i = 0; i < RTE_DIM(others); i++)
		add_routes("red", 20 + i, others[i]);
}

static void add_blue(void)
{
	unsigned i;

	for (i = 0; i < RTE_DIM(kinds); i++) {
		add_tunnel(NH_BLUE + i, i, OUT_BLUE + i, false);
		add_routes("blue", i, NH_BLUE + i);
	}
}

static void add_flood(uint16_t id, uint32_t nexthop, uint32_t label)
{
	struct bridge *b = bridge_get(id);
	struct bridge_config c = b->cfg;
	unsigned i;

	for (i = 0; i < RTE_DIM(kinds); i++) {
		add_tunnel(nexthop + i, i, label + i, false);
		c.flood[c.n_flood++] = nexthop + i;
	}
	c.suppress = true;
	FUZZ_ASSERT(bridge_set(b, &c, NULL) == 0);
}

static void add_mac(uint16_t bridge, const char *mac, uint16_t port, uint32_t nexthop)
{
	struct mac_entry e = {.bridge = bridge, .mac = router_mac(mac), .port = port, .nexthop = nexthop};

	e.addrs[e.n_addrs++] = router_addr("192.168.0.2");
	e.addrs[e.n_addrs++] = router_addr("fd00::2");
	FUZZ_ASSERT(mac_set(&e, NULL) == 0);
}

static void add_macs(void)
{
	add_mac(LAN, "02:00:00:00:00:21", LAN1, 0);
	add_mac(LAN, "02:00:00:00:00:22", 0, NH_LAN + 4);
	add_mac(IRB, "02:00:00:00:00:21", IRB0, 0);
	add_mac(IRB, "02:00:00:00:00:22", 0, NH_IRB + 5);
	macs = mac_count();
}

static const uint32_t targets[] = {[IN_RED] = TARGET(TARGET_VRF, RED),
				   [IN_BLUE] = TARGET(TARGET_VRF, BLUE),
				   [IN_LAN] = TARGET(TARGET_BRIDGE, LAN),
				   [IN_IRB] = TARGET(TARGET_BRIDGE, IRB),
				   [IN_PORT] = TARGET(TARGET_NEXTHOP, NH_GUEST),
				   [IN_REJECT] = TARGET(TARGET_NEXTHOP, NH_REJECTS),
				   [IN_UNIFORM] = TARGET(TARGET_VRF, RED) | TARGET_UNIFORM,
				   [IN_TRANSIT] = TARGET(TARGET_NEXTHOP, NH_TUNNELS),
				   [IN_GROUP] = TARGET(TARGET_NEXTHOP, NH_GROUPS),
				   [IN_HOLD] = TARGET(TARGET_NEXTHOP, NH_ABSENT),
				   [IN_SOURCES] = TARGET(TARGET_VRF, RED)};

// Labels and VNIs lead everywhere; one of each accepts packets of one tunnel end only.
static void add_targets(void)
{
	struct ip_prefix ends[] = {{router_addr("203.0.113.9"), 32}, {router_addr("2001:db8:f::9"), 128}};
	struct tunnel_target t = {.sources = address_group_add("ends", ends, RTE_DIM(ends), NULL)};
	unsigned i;

	for (i = IN_RED; i < IN_SOURCES; i++)
		FUZZ_ASSERT(label_set(i, targets[i], NULL) == 0 && vni_set(i, targets[i], NULL) == 0);
	t.target = targets[IN_SOURCES];
	FUZZ_ASSERT(t.sources && label_add(IN_SOURCES, &t, NULL) == 0 && vni_add(IN_SOURCES, &t, NULL) == 0);
}

static void add_host(void)
{
	struct port_config c = {.name = "host1",
				.role = PORT_HOST,
				.kind = "tap",
				.queues = 1,
				.fabric = FABRIC1,
				.vrf = UINT16_MAX,
				.bridge = UINT16_MAX};
	struct port *p;

	host_init();
	p = port_add(&c, NULL);
	FUZZ_ASSERT(p && p->id == FUZZ_HOST);
}

// A worker that sends to the kernel, whose place the target takes.
static void add_host_worker(void)
{
	host_ring.ring =
		rte_ring_create("fuzz_host", HOST_RING, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
	FUZZ_ASSERT(host_ring.ring);
	router_worker()->out[HOST_WORKER] = &host_ring;
}

// What the guest of a port is told when it boots.
static void add_boot(struct boot_config *b)
{
	b->dhcp4 = true;
	b->n_dns = b->n_ntp = b->n_routes = 1;
	b->dns[0] = b->ntp[0] = router_addr("10.0.0.53");
	b->routes[0].to = (struct ip_prefix){router_addr("10.9.0.0"), 16};
	b->routes[0].via = router_addr("10.0.0.1");
	b->server = router_addr("10.0.0.69");
	snprintf(b->host, sizeof(b->host), "red0");
	snprintf(b->file, sizeof(b->file), "boot.efi");
}

static void change_ports(void)
{
	struct port_config c = router_config(RED1);

	c.mtu = 576; // packets to this port are fragmented
	neighbor_config_edit(&c)->proxy_arp = true;
	router_set(RED1, &c);
	c = router_config(RED0);
	routed_config_edit(&c)->mss_clamp = 1;
	add_boot(boot_config_edit(&c));
	router_set(RED0, &c);
	c = router_config(BLUE0);
	routed_config_edit(&c)->mss_clamp = 500;
	source_check_config_edit(&c)->check = SOURCE_CHECK_REVERSE_PATH;
	router_set(BLUE0, &c);
}

static void find_punts(void)
{
	char name[RTE_RING_NAMESIZE];
	unsigned i;

	for (i = 0; i < PUNT_CLASSES; i++) {
		snprintf(name, sizeof(name), "punt-%u", i);
		punts[i] = rte_ring_lookup(name);
		FUZZ_ASSERT(punts[i]);
	}
}

static unsigned count_punts(void)
{
	unsigned i, n = 0;

	for (i = 0; i < PUNT_CLASSES; i++)
		n += rte_ring_count(punts[i]);
	return n;
}

void fuzz_router_setup(void)
{
	struct error err;

	neighbor_clock = bridge_clock = fuzz_clock;
	boot_init();
	FUZZ_ASSERT(router_setup(NULL) == 0);
	change_ports();
	add_red();
	add_blue();
	add_flood(LAN, NH_LAN, OUT_LAN);
	add_flood(IRB, NH_IRB, OUT_IRB);
	add_macs();
	add_targets();
	add_host();
	add_host_worker();
	icmp_errors_per_second = 1000000;
	router_rx = receive;
	rx = calloc(1, sizeof(*rx) + sizeof(rx->q[0]));
	rx->n = 1;
	router_worker()->rx = rx;
	graph = graph_create("fuzz", SOCKET_ID_ANY, &err);
	FUZZ_ASSERT(graph);
	find_punts();
	rcu_poll();
	neighbors = neighbor_count();
}

static struct {
	uint16_t parent, outer, tag, vrf, bridge;
	uint16_t id; // of the sub-port
} subports[] = {
	{RED0, 0, 10, BLUE, UINT16_MAX, 0},
	{RED0, 100, 7, UINT16_MAX, LAN, 0},
	{LAN0, 0, 20, RED, IRB, 0},
	{LAN0, 0, 30, UINT16_MAX, LAN, 0},
};
static unsigned n_subports;

static void add_subport(unsigned i)
{
	struct port_config c = {.role = PORT_TENANT,
				.kind = "subport",
				.parent = subports[i].parent,
				.outer_tag = subports[i].outer,
				.tag = subports[i].tag,
				.vrf = subports[i].vrf,
				.bridge = subports[i].bridge};
	struct port *p;

	snprintf(c.name, sizeof(c.name), "sub%u", i);
	if (c.vrf == BLUE) {
		c.gateways[c.n_gateways++] = (struct ip_prefix){router_addr("10.0.0.1"), 24};
		c.gateways[c.n_gateways++] = (struct ip_prefix){router_addr("fd00::1"), 64};
		c.guests[c.n_guests++] = (struct ip_prefix){router_addr("10.0.0.5"), 32};
		c.guests[c.n_guests++] = (struct ip_prefix){router_addr("fd00::5"), 128};
		c.guest_mac = router_mac("02:00:00:00:00:03");
	}
	p = port_add(&c, NULL);
	FUZZ_ASSERT(p);
	subports[i].id = p->id;
}

void fuzz_router_add_subports(void)
{
	while (n_subports < RTE_DIM(subports))
		add_subport(n_subports++);
	router_poll();
	neighbors = neighbor_count();
}

static bool is_trunk(uint16_t port)
{
	unsigned i = 0;

	while (i < n_subports && subports[i].parent != port)
		i++;
	return i < n_subports;
}

// The port that a frame on the wire of this one belongs to, by its tags. UINT16_MAX: no sub-port has them.
static uint16_t port_of(uint16_t port, const uint8_t *data, size_t size)
{
	struct view_tags t = view_tags(data, size);
	unsigned i;

	if (!is_trunk(port) || (t.outer | t.id) == 0)
		return port;
	for (i = 0; i < n_subports; i++)
		if (subports[i].parent == port && subports[i].outer == t.outer && subports[i].tag == t.id)
			return subports[i].id;
	return UINT16_MAX;
}

// --- What must hold. ---

static bool in_range(uint32_t id, uint32_t first)
{
	return id >= first && id < first + OUT_RANGE;
}

// The owner of a frame: a VRF, a bridge, or both with integrated routing and bridging.
struct owner {
	uint16_t vrf, bridge;
};

static struct owner owner_of(uint16_t port, const struct view *v)
{
	struct owner o = {UINT16_MAX, UINT16_MAX};
	const struct port_config *c;

	if (port == UINT16_MAX)
		return o;
	c = &port_get(port)->cfg;
	if (c->role == PORT_TENANT)
		return (struct owner){c->vrf, c->bridge};
	if (c->role == PORT_HOST || !v->tunnel || v->id < IN_RED || v->id >= IN_END)
		return o;
	if (v->id == IN_BLUE)
		o.vrf = BLUE;
	else if (v->id == IN_LAN)
		o.bridge = LAN;
	else
		o.vrf = RED;
	if (v->id == IN_IRB)
		o.bridge = IRB;
	return o;
}

static void check_sent(uint16_t in, const struct view *came, const struct owner *o, const struct router_sent *s)
{
	uint16_t to = port_of(s->port, rte_pktmbuf_mtod(s->m, const uint8_t *), s->m->data_len);
	const struct port_config *out;
	struct view v;

	FUZZ_ASSERT(to != UINT16_MAX); // a sub-port sends with its own tags, and the trunk without any
	out = &port_get(to)->cfg;
	rte_mbuf_check(s->m, 1, NULL);
	if (out->role == PORT_TENANT) {
		FUZZ_ASSERT((o->vrf != UINT16_MAX && out->vrf == o->vrf) ||
			    (o->bridge != UINT16_MAX && out->bridge == o->bridge));
		return;
	}
	if (out->role == PORT_HOST) {
		FUZZ_ASSERT(port_get(in)->role == PORT_FABRIC);
		return;
	}
	v = view(rte_pktmbuf_mtod(s->m, const uint8_t *), s->m->data_len);
	if (o->vrf == UINT16_MAX && o->bridge == UINT16_MAX) { // an answer to the underlay
		FUZZ_ASSERT(port_get(in)->role == PORT_HOST || (port_get(in)->role == PORT_FABRIC && !came->tunnel));
		return;
	}
	if (v.erspan) { // ports of RED and LAN have a mirror, and a rule of a port of BLUE
		FUZZ_ASSERT(o->vrf == RED || o->vrf == BLUE || o->bridge == LAN);
		return;
	}
	FUZZ_ASSERT(v.tunnel);
	FUZZ_ASSERT((o->vrf == RED && in_range(v.id, OUT_RED)) || (o->vrf == BLUE && in_range(v.id, OUT_BLUE)) ||
		    (o->bridge == LAN && in_range(v.id, OUT_LAN)) || (o->bridge == IRB && in_range(v.id, OUT_IRB)));
}

static uint64_t count_drops(uint16_t port)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < n_subports; i++)
		if (subports[i].parent == port)
			sum += count_drops(subports[i].id);

	FUZZ_ASSERT(counters->drops[port][0] == 0); // each has a reason
	for (i = 1; i < DROP_MAX; i++)
		sum += counters->drops[port][i];
	return sum;
}

// The other worker has sent the packets that it was handed.
static void clean_up_host(void)
{
	struct rte_mbuf *m;

	while (handoff_take(&host_ring, &m, 1) > 0) {
		FUZZ_ASSERT(port_get(meta(m)->out_port)->role == PORT_HOST && port_get(m->port)->role == PORT_FABRIC);
		held_end(m);
		rte_pktmbuf_free(m);
	}
	host_ring.done = host_ring.taken;
}

// Drops the packets that wait for a neighbour and forgets what the router has learnt, so that each input finds the same
// state.
static void clean_up(void)
{
	struct mac_entry e = {0};
	struct neighbor *n;
	unsigned i;

	clean_up_host();
	punt_poll();
	bridge_tick();
	for (i = 0; node_test_in_use() > 0 && i < 100; i++) {
		punt_poll(); // a turn ends after 200 us, which are few packets where the machine is busy
		now += rte_get_tsc_hz() / 10;
		neighbor_poll();
	}
	for (i = 1; neighbor_count() > neighbors && i < neighbor_end; i++) {
		n = neighbor_at(i);
		if (n && n->refs == 0)
			neighbor_remove(n);
	}
	while (mac_count() > macs && mac_next(&e, &e))
		FUZZ_ASSERT(!e.learnt || mac_unset(e.bridge, &e.mac, NULL) == 0);
	router_poll();
}

static struct rte_mbuf *make(const uint8_t *control, uint8_t *frame, size_t size)
{
	unsigned tailroom = control[0] & TAILROOM ? 64
			    : size < 64           ? (unsigned)(64 - size)
						  : 0; // no other buffer is as short as 64
	struct rte_mbuf *head, *tail;
	size_t split = control[1];

	if (!(control[0] & SPLIT) || split == 0 || split >= size)
		return fuzz_frame(frame, size, tailroom);
	head = fuzz_frame(frame, split, split < 64 ? (unsigned)(64 - split) : 0);
	tail = fuzz_frame(frame + split, size - split, tailroom);
	rte_pktmbuf_chain(head, tail);
	return head;
}

// The hash sends every frame to this worker; those of the host are not spread.
static struct port_queue *spread_queue(struct port_queue *q)
{
	static struct spread_view view = {.all_to = SPREAD_SEVERAL, .home = SPREAD_LOCAL};

	memset(view.to, SPREAD_LOCAL, sizeof(view.to));
	view.epoch = spread_epoch;
	q->rx_worker = q->owner = router_worker()->id;
	q->view = q->port->role == PORT_HOST ? NULL : &view;
	return q;
}

static struct graph_trail trail;

// One walk with the packets that wait.
static void walk(uint16_t port, uint8_t how)
{
	static void *taken[NODE_TEST_MAX * 8];
	unsigned n = how & EMPTY ? rte_mempool_avail_count(node_test_pool) : 0;
	struct worker *w = router_worker();

	FUZZ_ASSERT(n <= RTE_DIM(taken));
	if (n > 0 && rte_mempool_get_bulk(node_test_pool, taken, n) < 0)
		abort();
	w->burst.bounded = how & BUSY;
	rx->q[0]->most = how & BUSY ? STORM / STORM_WALKS : 0;
	port_get(port)->host_worker = how & BUSY ? HOST_WORKER : SPREAD_LOCAL;
	graph_walk(graph, &trail);
	w->burst.bounded = false;
	if (n > 0)
		rte_mempool_put_bulk(node_test_pool, taken, n);
}

static void storm(uint16_t port, const uint8_t *control, uint8_t *frame, size_t size)
{
	unsigned i;

	for (i = 1; i < STORM_WALKS; i++) {
		while (n_waiting < RTE_DIM(waiting))
			waiting[n_waiting++] = make(control, frame, size);
		walk(port, BUSY);
		router_forget();
		punt_poll();
	}
	while (n_waiting < RTE_DIM(waiting))
		waiting[n_waiting++] = make(control, frame, size);
}

// One frame; returns how many bytes of the input it took.
static size_t frame(uint16_t port, const uint8_t *data, size_t size)
{
	uint8_t bytes[FUZZ_LONGEST];
	unsigned i, punted, handed, skip, control = FUZZ_CONTROL;
	uint64_t drops;
	bool often;
	struct owner o;
	struct view v;

	if (size >= FUZZ_CONTROL + 2 && (data[0] & MORE)) {
		control += 2;
		size = RTE_MIN(size, control + (data[2] << 8u | data[3]));
	}
	if (size < control || size - control > sizeof(bytes))
		return size;
	memcpy(bytes, data + control, size - control);
	skip = is_trunk(port) ? view_tags(bytes, size - control).len : 0;
	fix(bytes + skip, size - control - skip, data[0]);
	v = view(bytes, size - control);
	o = owner_of(port_of(port, bytes, size - control), &v);
	rx->q[0] = spread_queue(&port_get(port)->queues[0]);
	often = (data[0] & (BUSY | EMPTY)) == (BUSY | EMPTY) && data[1] == 255;
	flood_copies_per_second = often ? LIMIT_SETTINGS_FLOOD_COPIES_PER_SECOND_DEFAULT : FLOOD_FAST;
	if (often)
		storm(port, data, bytes, size - control);
	else
		waiting[n_waiting++] = make(data, bytes, size - control);
	drops = count_drops(port);
	punted = count_punts();
	handed = rte_ring_count(host_ring.ring);
	walk(port, often ? BUSY : data[0]);
	FUZZ_ASSERT(router_n_sent + count_punts() - punted + count_drops(port) - drops +
			    rte_ring_count(host_ring.ring) - handed >
		    0);
	for (i = 0; i < router_n_sent; i++)
		check_sent(port, &v, &o, &router_sent[i]);
	router_forget();
	punt_poll();
	bridge_tick();
	now += rte_get_tsc_hz() / 10;
	bridge_poll();
	return size;
}

void fuzz_router_input(const uint16_t *ports, unsigned n_ports, const uint8_t *data, size_t size)
{
	unsigned frames;
	size_t used;

	for (frames = 0; size > 0 && frames < FRAMES_MAX; frames++) {
		used = 1 + frame(ports[*data % n_ports], data + 1, size - 1);
		data += used;
		size -= used;
	}
	clean_up();
	FUZZ_ASSERT(node_test_in_use() == 0);
}
