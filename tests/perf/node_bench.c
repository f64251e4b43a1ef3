// SPDX-License-Identifier: Apache-2.0
// The cost of each node by itself, and of functions that many share: cycles per packet at batches of 1, 4, 32 and 256,
// with headers in the cache.
//
//	node_bench [NODE...]         cycles: median of the fastest tenth of many rounds, so that a busy machine
//	                             disturbs little
//	tests/perf/instructions.sh   the same work under callgrind, which counts instructions: those do not depend on
//	                             the machine's load
//
// Under callgrind every case runs once warm, then once counted, and its counts are dumped as "NODE BATCH".
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_graph_worker.h>
#include <valgrind/callgrind.h>

#include "base/rcu.h"
#include "eth/source_check.h"
#include "flow/flow.h"
#include "flow/table_fixture.h"
#include "graph/graph.h"
#include "l3/fib.h"
#include "l3/ip_header.h"
#include "overlay/overlay.h"
#include "testing/router_fixture.h"
#include "worker/recorder.h"
#include "worker/worker.h"

#define MAX_BATCH 256
#define ROUNDS 2000
#define FRAME_MAX 256
#define FLOWS 16384

#define HOST4 "203.0.113.9"
#define HOST6 "2001:db8:f::9"
#define NEAR_MAC "02:00:00:00:0f:01"
#define TUNNEL4(encap) (FREE_ID + (encap))
#define TUNNEL6(encap) (FREE_ID + 10 + (encap))
#define ID 100 // label and VNI of VRF red
#define LAN_ID 200
#define SINK_HOSTS "172.16.0.0/16"

static const unsigned batches[] = {1, 4, 32, 256};

struct bench {
	const char *node;
	struct rte_mbuf *(*make)(const struct bench *b, unsigned i);
	void (*call)(void); // a function of this name is measured instead of a node
	enum { NO_ENCAP, MPLSOUDP, MPLSOGRE, VXLAN, GENEVE, ENCAPS } encap;
	bool v6; // of the underlay
	uint32_t nexthop;
	bool fresh; // every round has packets of flows that are not there yet
};

static struct packet flow(unsigned i, bool v6)
{
	static char dst[2][32];

	snprintf(dst[0], sizeof(dst[0]), "172.16.%u.%u", i / 250, 1 + i % 250);
	snprintf(dst[1], sizeof(dst[1]), "fd00:99::%x", i + 1);
	return (struct packet){.src = v6 ? "fd00::2" : "10.0.0.2", .dst = dst[v6], .payload = 30};
}

static struct rte_mbuf *from_guest(const struct bench *b, unsigned i)
{
	struct packet p = flow(i, false);

	return router_frame(RED0, GATEWAY, "02:00:00:00:00:03", &p);
}

static struct rte_mbuf *routed4(const struct bench *b, unsigned i)
{
	struct packet p = flow(i, false);

	return router_packet(RED, &p);
}

static struct rte_mbuf *routed6(const struct bench *b, unsigned i)
{
	struct packet p = flow(i, true);

	return router_packet(RED, &p);
}

// Packets of existing flows.
static struct rte_mbuf *in_flow(const struct bench *b, unsigned i)
{
	struct port_config cfg = router_config(RED0);
	struct rte_mbuf *m = b->v6 ? routed6(b, i) : routed4(b, i), *first = b->v6 ? routed6(b, i) : routed4(b, i);

	if (!cfg.stateful) {
		cfg.stateful = true;
		router_set(RED0, &cfg);
		flow_changes_take_effect();
	}
	m->port = first->port = RED0;
	node_test_one(b->v6 ? "flow6_create" : "flow4_create", first);
	return m;
}

static struct rte_mbuf *without_flow(const struct bench *b, unsigned i)
{
	struct rte_mbuf *m = in_flow(b, i);

	meta(m)->arg = 0;
	return m;
}

static struct rte_mbuf *to_nexthop(const struct bench *b, unsigned i)
{
	struct rte_mbuf *m = routed4(b, i);

	meta(m)->nexthop = nexthop_table[b->nexthop];
	meta(m)->hash = i * 2654435761u | 1;
	return m;
}

static const struct {
	const char *name, *shim; // shim: as it comes from the wire
} encaps[ENCAPS] = {[MPLSOUDP] = {"mplsoudp", "c0de 19eb 0000 0000 00064140"},
		    [MPLSOGRE] = {"mplsogre", "0000 8847 00064140"},
		    [VXLAN] = {"vxlan", "c0de 12b5 0000 0000 08000000 00006400 02000000aa01 02000000bb02 0800"},
		    [GENEVE] = {"geneve", "c0de 17c1 0000 0000 00006558 00006400 02000000aa01 02000000bb02 0800"}};

static struct rte_mbuf *from_wire(const struct bench *b, unsigned i)
{
	uint8_t proto = encap_find(encaps[b->encap].name)->proto;
	struct rte_mbuf *inner = routed4(b, i), *shim = router_hex(encaps[b->encap].shim), *m;
	unsigned len = shim->data_len + inner->data_len;

	if (proto == IPPROTO_UDP)
		*rte_pktmbuf_mtod_offset(shim, rte_be16_t *, 4) = rte_cpu_to_be_16((uint16_t)len);
	m = router_frame(FABRIC0, "02:00:00:00:f0:01", NEAR_MAC,
			 &(struct packet){.src = HOST4, .dst = "192.0.2.1", .proto = proto, .payload = len});
	memcpy(rte_pktmbuf_mtod_offset(m, void *, m->data_len - len), rte_pktmbuf_mtod(shim, void *), shim->data_len);
	memcpy(rte_pktmbuf_mtod_offset(m, void *, m->data_len - inner->data_len), rte_pktmbuf_mtod(inner, void *),
	       inner->data_len);
	rte_pktmbuf_free(inner);
	rte_pktmbuf_free(shim);
	return m;
}

static struct rte_mbuf *after_fabric_input(const struct bench *b, unsigned i)
{
	struct rte_mbuf *m = from_wire(b, i);

	node_test_one("fabric_input", m);
	return m;
}

static struct rte_mbuf *in_bridge(const struct bench *b, unsigned i)
{
	struct packet p = flow(i, b->v6);
	struct rte_mbuf *m = router_frame(LAN0, "02:00:00:00:00:22", "02:00:00:00:00:11", &p);

	meta(m)->bridge = LAN;
	return m;
}

// As bridge_input hands them on, with flows that are there.
static struct rte_mbuf *in_bridge_flow(const struct bench *b, unsigned i)
{
	struct port_config cfg = router_config(LAN0);
	struct rte_mbuf *m = in_bridge(b, i), *first = in_bridge(b, i);

	if (!cfg.stateful) {
		cfg.stateful = true;
		router_set(LAN0, &cfg);
		flow_changes_take_effect();
	}
	node_test_one("bridge_input", m);
	node_test_one("bridge_input", first);
	meta(first)->arg = 0;
	node_test_one(b->v6 ? "flow6_create" : "flow4_create", first);
	return m;
}

static struct rte_mbuf *to_wire(const struct bench *b, unsigned i)
{
	struct rte_mbuf *m = from_wire(b, i);

	meta(m)->out_port = FABRIC0;
	return m;
}

static struct rte_mbuf *pkts[MAX_BATCH];
static unsigned batch; // of the current case
static uint32_t results[MAX_BATCH];
static struct port_fwd strict;

// Callgrind counts functions, so measured code must not be inlined.
#define MEASURED __attribute__((noinline, noclone)) static

MEASURED void fib4_lookup(void)
{
	const struct fib *fibs[MAX_BATCH];
	uint32_t keys[MAX_BATCH];
	unsigned i;

	for (i = 0; i < batch; i++) {
		fibs[i] = vrf_fibs[RED].fib4;
		keys[i] = rte_pktmbuf_mtod(pkts[i], struct rte_ipv4_hdr *)->dst_addr;
	}
	fib4_lookup_bulk(fibs, keys, results, batch);
}

MEASURED void fib6_lookup(void)
{
	const struct fib *fibs[MAX_BATCH];
	const uint8_t *keys[MAX_BATCH];
	unsigned i;

	for (i = 0; i < batch; i++) {
		fibs[i] = vrf_fibs[RED].fib6;
		keys[i] = rte_pktmbuf_mtod(pkts[i], struct rte_ipv6_hdr *)->dst_addr;
	}
	fib6_lookup_bulk(fibs, keys, results, batch);
}

#define MANY_ROUTES 4096
static struct fib *many; // scattered routes, so that it has its direct table

static uint32_t many_route(unsigned i)
{
	return 1u << 24 | (i * 2654435761u >> 8 << 8 & 0x7fffff00);
}

MEASURED void fib4_many(void)
{
	const struct fib *fibs[MAX_BATCH];
	uint32_t keys[MAX_BATCH];
	unsigned i;

	for (i = 0; i < batch; i++) {
		fibs[i] = many;
		keys[i] = rte_cpu_to_be_32(many_route(i) | i);
	}
	fib4_lookup_bulk(fibs, keys, results, batch);
}

// Spreads flows over source ports of tunnels, paths and members of groups.
MEASURED void spread_hash(void)
{
	unsigned i;

	for (i = 0; i < batch; i++)
		results[i] = ip_hash(pkts[i], 0);
}

static struct rte_ring *ring;

// A ring from one thread to another, with both ends in this thread.
MEASURED void ring_handoff(void)
{
	rte_ring_mp_enqueue_bulk(ring, (void **)pkts, batch, NULL);
	rte_ring_sc_dequeue_bulk(ring, (void **)pkts, batch, NULL);
}

// What source_check strict, the default, adds to tenant_input.
MEASURED void strict_check(void)
{
	unsigned i;

	for (i = 0; i < batch; i++)
		results[i] = source_check(pkts[i], &strict) != NULL;
}

static struct rte_graph *whole; // the graph of a worker

// A worker's loop from a guest's port to the wire, without a recorder (as DPDK walks), and with it.
MEASURED void walk(void)
{
	rte_graph_walk(whole);
}

MEASURED void loop_plain(void)
{
	static uint64_t start, busy_cycles;
	uint64_t now;

	walk();
	now = rte_rdtsc();
	busy_cycles += now - start;
	start = now;
}

MEASURED void loop_recorded(void)
{
	static uint64_t busy_cycles;
	static struct recorder r;
	uint64_t now;

	if (unlikely(r.armed == NULL)) {
		recorder_init(&r, whole);
		recorder_enter(&r);
		r.threshold = UINT64_MAX; // callgrind takes its time
	}
	graph_walk(whole, &r.trail);
	now = rte_rdtsc();
	busy_cycles += now - r.trail.begin;
	recorder_loop(&r, now, batch);
}

static const struct bench benches[] = {
	{"loop_plain", from_guest, .call = loop_plain},
	{"loop_recorded", from_guest, .call = loop_recorded},
	{"fib4_lookup", routed4, .call = fib4_lookup},
	{"fib6_lookup", routed6, .call = fib6_lookup},
	{"fib4_many", routed4, .call = fib4_many},
	{"spread_hash", routed4, .call = spread_hash},
	{"ring_handoff", routed4, .call = ring_handoff},
	{"strict_check", from_guest, .call = strict_check},
	{"port_rx", from_guest, .encap = 0},
	{"tenant_input", from_guest, .encap = 0},
	{"ip4_forward", routed4, .encap = 0},
	{"ip6_forward", routed6, .encap = 0},
	{"port_output", to_nexthop, .nexthop = VIA0},
	{"encap_mplsoudp4", to_nexthop, .nexthop = TUNNEL4(MPLSOUDP)},
	{"encap_mplsogre4", to_nexthop, .nexthop = TUNNEL4(MPLSOGRE)},
	{"encap_vxlan4", to_nexthop, .nexthop = TUNNEL4(VXLAN)},
	{"encap_geneve4", to_nexthop, .nexthop = TUNNEL4(GENEVE)},
	{"encap_mplsoudp6", to_nexthop, .nexthop = TUNNEL6(MPLSOUDP)},
	{"encap_vxlan6", to_nexthop, .nexthop = TUNNEL6(VXLAN)},
	{"encap_geneve6", to_nexthop, .nexthop = TUNNEL6(GENEVE)},
	{"fabric_input", from_wire, .encap = VXLAN},
	{"decap_mplsoudp", after_fabric_input, .encap = MPLSOUDP},
	{"decap_mplsogre", after_fabric_input, .encap = MPLSOGRE},
	{"decap_vxlan", after_fabric_input, .encap = VXLAN},
	{"decap_geneve", after_fabric_input, .encap = GENEVE},
	{"bridge_input", in_bridge, .encap = 0},
	{"port_tx", to_wire, .encap = VXLAN},
	{"flow4_lookup", in_flow, .v6 = false},
	{"flow6_lookup", in_flow, .v6 = true},
	{"flow4_bridge", in_bridge_flow, .v6 = false},
	{"flow6_bridge", in_bridge_flow, .v6 = true},
	{"flow4_create", without_flow, .v6 = false, .fresh = true},
	{"flow6_create", without_flow, .v6 = true, .fresh = true},
};

static uint8_t saved[MAX_BATCH][sizeof(struct rte_mbuf) + FRAME_MAX];

// Every round begins with the same packets.
static void save(void)
{
	unsigned i;

	for (i = 0; i < MAX_BATCH; i++) {
		memcpy(saved[i], pkts[i], sizeof(struct rte_mbuf));
		memcpy(saved[i] + sizeof(struct rte_mbuf), rte_pktmbuf_mtod(pkts[i], void *), FRAME_MAX);
	}
}

static void restore(const struct bench *b, unsigned n)
{
	static uint16_t sport = 2000;
	unsigned i;

	for (i = 0; i < n; i++) {
		memcpy(pkts[i], saved[i], sizeof(struct rte_mbuf));
		memcpy(rte_pktmbuf_mtod(pkts[i], void *), saved[i] + sizeof(struct rte_mbuf), FRAME_MAX);
		if (b->fresh)
			*rte_pktmbuf_mtod_offset(pkts[i], uint16_t *, b->v6 ? 40 : 20) = sport++;
	}
}

static uint16_t give(struct port_queue *q, struct rte_mbuf **out, uint16_t n)
{
	memcpy(out, pkts, batch * sizeof(out[0]));
	return (uint16_t)batch;
}

static uint16_t take(struct port_queue *q, struct rte_mbuf **in, uint16_t n)
{
	return n;
}

static void run(const struct bench *b)
{
	unsigned n = strcmp(b->node, "port_rx") == 0 ? 0 : batch, want = strcmp(b->node, "port_tx") == 0 ? 0 : batch;

	if (b->call) {
		b->call();
		return;
	}
	if (node_test_run(b->node, pkts, n) != want) {
		fprintf(stderr, "%s did not pass on what it was given\n", b->node);
		exit(1);
	}
}

// A node that drops its packets would look fast.
static void check(const struct bench *b)
{
	restore(b, 1);
	batch = 1;
	run(b);
	if (b->call == NULL && strcmp(b->node, "port_tx") != 0 && strcmp(node_test_outs[0].edge, "drop") == 0) {
		fprintf(stderr, "%s drops: %s\n", b->node, node_test_reason(pkts[0]));
		exit(1);
	}
}

static void count_instructions(const struct bench *b)
{
	char name[64];
	unsigned i;

	for (i = 0; i < RTE_DIM(batches); i++) {
		batch = batches[i];
		restore(b, batch);
		run(b);
		restore(b, batch);
		CALLGRIND_ZERO_STATS;
		run(b);
		snprintf(name, sizeof(name), "%s %u", b->node, batch);
		CALLGRIND_DUMP_STATS_AT(name);
	}
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double cycles(const struct bench *b)
{
	const struct rte_node *node = b->call ? NULL : rte_graph_node_get_by_name("node_test", b->node);
	static uint64_t spent[ROUNDS];
	uint64_t before;
	unsigned r;

	for (r = 0; r < ROUNDS; r++) {
		restore(b, batch);
		before = node ? node->total_cycles : rte_rdtsc();
		run(b);
		spent[r] = (node ? node->total_cycles : rte_rdtsc()) - before;
	}
	qsort(spent, ROUNDS, sizeof(spent[0]), compare);
	return (double)spent[ROUNDS / 20] / batch;
}

static void measure(const struct bench *b)
{
	unsigned i;

	printf("%-18s", b->node);
	for (i = 0; i < RTE_DIM(batches); i++) {
		batch = batches[i];
		printf(" %8.1f", cycles(b));
	}
	printf("\n");
}

static void bench(const struct bench *b)
{
	unsigned i;

	for (i = 0; i < MAX_BATCH; i++)
		pkts[i] = b->make(b, i);
	save();
	check(b);
	if (RUNNING_ON_VALGRIND)
		count_instructions(b);
	else
		measure(b);
	restore(b, MAX_BATCH);
	rte_pktmbuf_free_bulk(pkts, MAX_BATCH);
}

// Without UDP checksums, whose cost depends on the packet's length.
static void add_tunnel6(unsigned encap)
{
	struct nexthop_config c = {.id = TUNNEL6(encap), .kind = NH_TUNNEL};

	c.tunnel = (struct tunnel_config){
		.encap = encap_find(encaps[encap].name), .remote = router_addr(HOST6), .label = ID, .vni = ID};
	if (c.tunnel.encap->proto == IPPROTO_UDP)
		c.tunnel.udp6_checksum = UDP6_CHECKSUM_OFF;
	router_nexthop(&c);
}

static void add_many_routes(void)
{
	struct ip_addr addr = {.family = IPV4};
	unsigned i;

	many = fib_create(IPV4);
	for (i = 0; i < MANY_ROUTES; i++) {
		rte_be32_t be = rte_cpu_to_be_32(many_route(i));
		struct ip_prefix p;

		memcpy(addr.bytes, &be, sizeof(be));
		p = ip_prefix_of(&addr, 24);
		if (many == NULL || fib_set(many, &p, 1 + i) < 0)
			abort();
	}
}

static void configure(void)
{
	struct rx_list *list = calloc(1, sizeof(*list) + sizeof(list->q[0]));
	struct port_config red0 = router_config(RED0);
	struct error err = {0};
	unsigned i;

	if (flow_set_capacity(FLOWS, &err) < 0)
		abort();
	strict = *port_fwds[RED0];
	source_check_config_edit(&red0)->check = SOURCE_CHECK_NONE;
	router_set(RED0, &red0);

	for (i = MPLSOUDP; i < ENCAPS; i++) {
		router_tunnel(TUNNEL4(i), encaps[i].name, HOST4, ID);
		add_tunnel6(i);
	}
	router_route("red", SINK_HOSTS, TUNNEL4(VXLAN));
	router_route("red", "fd00:99::/32", TUNNEL4(VXLAN));
	label_set(ID, TARGET(TARGET_VRF, RED), NULL);
	vni_set(ID, TARGET(TARGET_VRF, RED), NULL);
	if (list == NULL)
		abort();
	add_many_routes();
	list->q[list->n++] = &port_get(RED0)->queues[0];
	list->q[0]->rx_worker = list->q[0]->owner = router_worker()->id;
	router_worker()->rx = list;
	ring = router_worker()->inject;
	whole = graph_create("bench", SOCKET_ID_ANY, NULL);
	if (whole == NULL)
		abort();
	router_rx = give;
	router_tx = take;
}

// The table would be full before so many rounds of new flows are over: flow_create_bench measures their cycles.
static bool wanted(const struct bench *b, char **names)
{
	if (b->fresh && !RUNNING_ON_VALGRIND)
		return false;
	if (*names == NULL)
		return true;
	for (; *names; names++)
		if (strcmp(b->node, *names) == 0)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	unsigned i;

	if (router_setup(NULL) < 0)
		return 1;
	fixture_secret(7); // flows are in the same places of the table in every run, and so take as many instructions
	configure();
	if (!RUNNING_ON_VALGRIND)
		printf("cycles per packet\nbatch              %8u %8u %8u %8u\n", batches[0], batches[1], batches[2],
		       batches[3]);
	for (i = 0; i < RTE_DIM(benches); i++)
		if (wanted(&benches[i], argv + 1))
			bench(&benches[i]);
	return 0;
}
