// SPDX-License-Identifier: Apache-2.0
// ARP in the nodes and on the master. The first byte chooses port, VLAN, configuration and the node that receives it;
// the rest is the frame. For any input, no packet leaks, an answer is valid, and no guest becomes its own gateway.
#include "fuzz_frame.h"
#include "neighbor/arp_fixture.h"
#include "neighbor/arp_packet.h"
#include "neighbor/neighbor_private.h"
#include "worker/punt.h"

enum { ON_FABRIC = 1, TAGGED = 2, TO_MASTER = 4, PROXY = 8, BRIDGED = 16, HELD = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	FUZZ_ASSERT(fixture_setup(NULL) == 0);
	return 0;
}

static void configure(uint8_t bits)
{
	struct port *p = port_table[TENANT];

	neighbor_config_edit(&p->cfg)->proxy_arp = bits & PROXY;
	p->cfg.bridge = bits & BRIDGED ? 5 : UINT16_MAX;
	p->cfg.guest_mac = fixture_mac("02:00:00:00:01:02");
	p->cfg.guests[0].addr = fixture_addr("10.0.0.2");
	p->cfg.guests[0].len = 32;
	p->cfg.n_guests = 1;
	fixture_publish(p);
	fixture_route("10.0.0.0/8", FABRIC);
}

static void assert_answer(struct rte_mbuf *m)
{
	const struct rte_arp_hdr *arp = rte_pktmbuf_mtod_offset(m, const struct rte_arp_hdr *, meta(m)->l3);
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);

	FUZZ_ASSERT(arp_parse(m) && arp->arp_opcode == RTE_BE16(RTE_ARP_OP_REPLY) && meta(m)->out_port == TENANT);
	FUZZ_ASSERT(rte_is_same_ether_addr(&eth->dst_addr, &arp->arp_data.arp_tha));
	FUZZ_ASSERT(rte_is_same_ether_addr(&arp->arp_data.arp_sha, &port_table[TENANT]->mac));
}

static void through_node(struct rte_mbuf *m)
{
	const char *edge = node_test_one("arp_input", m);

	FUZZ_ASSERT(edge);
	if (strcmp(edge, "punt") == 0) {
		fixture_punt(meta(m)->out_port, m);
		return;
	}
	if (strcmp(edge, "port_tx") == 0)
		assert_answer(m);
	else if (strcmp(edge, "drop") == 0)
		FUZZ_ASSERT(meta(m)->reason != 0);
	rte_pktmbuf_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct ip_addr gateway = fixture_addr("10.0.0.1"), guest = fixture_addr("10.0.0.2"),
			     peer = fixture_addr("192.0.2.2");
	uint32_t adj[2] = {0};
	struct rte_mbuf *m;
	uint16_t port;

	if (size < 1 || size > 1500)
		return 0;
	configure(*data);
	port = *data & ON_FABRIC ? FABRIC : TENANT;
	if (*data & HELD) {
		adjacency_hold(TENANT, &guest, NULL, &adj[0], NULL);
		adjacency_hold(FABRIC, &peer, NULL, &adj[1], NULL);
	}
	m = fuzz_frame(data + 1, size - 1, 0);
	m->port = port;
	meta(m)->bridge = port_fwds[port]->bridge;
	meta(m)->l3 = *data & TAGGED ? 18 : 14;
	if (*data & TO_MASTER)
		fixture_punt(PUNT_ARP, m);
	else
		through_node(m);
	FUZZ_ASSERT(neighbor_find(TENANT, &gateway) == NULL);
	if (*data & HELD) {
		adjacency_put(adj[0]);
		adjacency_put(adj[1]);
	}
	fixture_wait(100);
	fixture_reset(NULL);
	FUZZ_ASSERT(node_test_in_use() == 0 && neighbor_count() == 0);
	return 0;
}
