// SPDX-License-Identifier: Apache-2.0
// New flows: cycles that flow4_create takes for each while the table fills, and cycles that their worker takes later to
// find each one idle, and to end it.
//
//	flow_create_bench [FLOWS [ENDPOINTS]]    default 1,000,000; prints the median of each tenth of the flows.
//	                                         ENDPOINTS: the flows are to a service with so many
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_graph_worker.h>
#include <rte_ip.h>

#include "base/rcu.h"
#include "flow/flow.h"
#include "flow/tcp.h"
#include "policy/service.h"
#include "testing/router_fixture.h"

#define BATCH_SIZE 256u
#define PARTS 10u
#define SERVICE "192.0.2.80"

static struct rte_mbuf *pkts[BATCH_SIZE];

static void stateful(uint32_t capacity)
{
	struct port_config cfg = router_config(RED0);
	struct error err = {0};

	cfg.stateful = true;
	if (flow_set_capacity(capacity, &err) < 0) {
		fprintf(stderr, "flow_create_bench: %s\n", err.message);
		exit(2);
	}
	router_set(RED0, &cfg);
	flow_changes_take_effect();
	while (flow_grow_step(UINT32_MAX)) // the memory for all flows, and a table of that size
		router_poll();
}

static void serve(unsigned endpoints)
{
	struct service_config c = {.name = "bench",
				   .vrf = RED,
				   .external = RED,
				   .addr = router_addr(SERVICE),
				   .max_endpoints = (uint16_t)endpoints};
	struct error err = {0};
	struct service *s = service_add(&c, &err);
	struct endpoint_config e = {.weight = 1};
	char text[32];
	unsigned i;

	service_hold(true);
	for (i = 0; s && i < endpoints; i++) {
		snprintf(text, sizeof(text), "172.17.%u.%u", i / 250, 1 + i % 250);
		e.addr = router_addr(text);
		if (endpoint_add(s, &e, &err) == NULL)
			s = NULL;
	}
	service_hold(false);
	while (s && service_is_stale(s))
		service_poll();
	if (s == NULL) {
		fprintf(stderr, "flow_create_bench: %s\n", err.message);
		exit(2);
	}
}

// Flow number n: spread as an attacker's or a crawler's would be.
static void become(struct rte_mbuf *m, uint32_t n, bool to_service)
{
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod(m, struct rte_ipv4_hdr *);

	ip->src_addr = RTE_BE32(0x0a000002);
	ip->dst_addr = rte_cpu_to_be_32(0xac100000 | n >> 10); // 172.16.0.0/12
	if (to_service) {
		ip->src_addr = rte_cpu_to_be_32(0x0a800000 | n >> 10);
		ip->dst_addr = RTE_BE32(0xc0000250);
	}
	ip->time_to_live = 64;
	*(uint16_t *)(ip + 1) = rte_cpu_to_be_16((uint16_t)(1024 + (n & 1023)));
	meta(m)->hash = 0;
	meta(m)->flags = 0;
	meta(m)->l3 = 0;
	router_checksum4(m, 0);
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double part(const struct rte_node *node, uint32_t from, uint32_t to, bool to_service)
{
	unsigned i, n = 0, rounds = (to - from) / BATCH_SIZE;
	double *spent = calloc(rounds, sizeof(*spent)), median;
	uint64_t before;

	for (; n < rounds; n++) {
		for (i = 0; i < BATCH_SIZE; i++)
			become(pkts[i], from + n * BATCH_SIZE + i, to_service);
		before = node->total_cycles;
		if (node_test_run("flow4_create", pkts, BATCH_SIZE) != BATCH_SIZE ||
		    strcmp(node_test_outs[0].edge, "drop") == 0) {
			fprintf(stderr, "flow4_create refuses: %s\n", node_test_reason(pkts[0]));
			exit(1);
		}
		spent[n] = (double)(node->total_cycles - before) / BATCH_SIZE;
	}
	qsort(spent, rounds, sizeof(*spent), compare);
	median = spent[rounds / 2];
	free(spent);
	return median;
}

// Runs flow_age() for a second of its clock, which is one walk over all flows. Returns cycles per flow. A slice
// that took longer counts as 50 us, because something else ran.
static double age(uint32_t n)
{
	static uint64_t tsc;
	uint64_t sum = 0, took, start, us = rte_get_tsc_hz() / 1000000, end;

	tsc = RTE_MAX(tsc, (uint64_t)rte_rdtsc());
	for (end = tsc + rte_get_tsc_hz(); tsc < end; tsc += RTE_MAX(4 * took, 20 * us)) {
		start = rte_rdtsc();
		flow_age(0, tsc);
		took = RTE_MIN(rte_rdtsc() - start, 50 * us);
		sum += took;
	}
	return (double)sum / n;
}

int main(int argc, char **argv)
{
	uint32_t flows_wanted = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000000, i;
	unsigned endpoints = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	const struct rte_node *node;

	if (flows_wanted < PARTS * BATCH_SIZE || flows_wanted > FLOW_CAPACITY_MAX / 2) {
		fprintf(stderr, "flow_create_bench: FLOWS is %u to %u\n", PARTS * BATCH_SIZE, FLOW_CAPACITY_MAX / 2);
		return 2;
	}
	if (router_setup(NULL) < 0)
		return 1;
	stateful(flows_wanted * 5 / 4);
	router_route("red", "172.16.0.0/12", VIA0);
	if (endpoints > 0)
		serve(endpoints);
	for (i = 0; i < BATCH_SIZE; i++) {
		pkts[i] = router_packet(RED, &(struct packet){.src = "10.0.0.2", .dst = "172.16.0.1"});
		pkts[i]->port = RED0;
	}
	node_test_run("flow4_create", pkts, 1); // makes its graph
	node = rte_graph_node_get_by_name("node_test", "flow4_create");
	printf("flows       cycles per new flow   Msessions/s at %.1f GHz\n", (double)rte_get_tsc_hz() / 1e9);
	for (i = 0; i < PARTS; i++) {
		double cycles = part(node, flows_wanted / PARTS * i, flows_wanted / PARTS * (i + 1), endpoints > 0);

		printf("%-11u %19.0f   %23.2f\n", flow_count(), cycles, (double)rte_get_tsc_hz() / cycles / 1e6);
	}
	sleep(3);
	age(flows_wanted); // the first walk is all due at once
	printf("\ncycles per flow that rests, once a second: %.0f\n", age(flows_wanted));
	flow_timeouts.udp = 1;
	printf("cycles to end a flow: %.0f\n", age(flows_wanted));
	age(flows_wanted); // the last of them are in their grace period
	if (flow_count() > 0) {
		fprintf(stderr, "%u flows did not end\n", flow_count());
		return 1;
	}
	return 0;
}
