// SPDX-License-Identifier: Apache-2.0
// What a guest asks for when it boots: DHCPv4, DHCPv6 and router solicitations, through node boot_input to the answers
// of the master. The first byte chooses what the port answers and whether checksums are corrected, which a fuzzer would
// hardly guess; the rest is the frame. For any input, no packet leaks, and there is at most one answer, which is valid
// and goes to the guest that asked.
#include <netinet/in.h>
#include <stdio.h>

#include <rte_ip.h>
#include <rte_udp.h>

#include "boot/boot_private.h"
#include "boot/dhcp4_message.h"
#include "boot/dhcp6_message.h"
#include "base/rcu.h"
#include "fuzz_frame.h"
#include "fuzz_view.h"
#include "testing/router_fixture.h"
#include "worker/punt.h"
#include "worker/worker.h"

// LATE: when the master gets the question, the port answers nothing any more. NO_BUFFER: none is free for the answer.
enum { SERVICES = 3, BRIDGED = 4, BARE = 8, FIX = 16, TAILROOM = 32, LATE = 64, NO_BUFFER = 128 };
enum { ALL, ONLY_V4, ONLY_V6, SLAAC };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

// A port of each combination of SERVICES, BRIDGED and BARE.
static uint16_t ports[16];

static void add_routes(struct boot_config *b, bool bridged)
{
	b->n_routes = 3;
	b->routes[0].to = (struct ip_prefix){router_addr("10.9.0.0"), 16};
	b->routes[0].via = router_addr("10.0.0.1");
	b->routes[1].to = (struct ip_prefix){router_addr("fd09::"), 32};
	b->routes[2].to = (struct ip_prefix){router_addr("fd09::9"), 128};
	b->routes[1].via = b->routes[2].via = router_addr(bridged ? "fe80::1" : "fd00::1");
	if (!bridged)
		return;
	b->n_routers = 2;
	b->routers[0] = router_addr("10.7.0.1"); // outside of the guest's subnet
	b->routers[1] = router_addr("fe80::1");
	b->routes[0].to = (struct ip_prefix){router_addr("0.0.0.0"), 0};
}

static void add_names(struct boot_config *b)
{
	b->n_dns = b->n_ntp = 2;
	b->dns[0] = b->ntp[0] = router_addr("10.0.0.53");
	b->dns[1] = b->ntp[1] = router_addr("fd00::53");
	b->server = router_addr("10.0.0.69");
	snprintf(b->domain, sizeof(b->domain), "red.example");
	snprintf(b->host, sizeof(b->host), "guest");
	snprintf(b->file, sizeof(b->file), "boot.efi");
}

static uint16_t add_port(uint8_t bits)
{
	struct port_config c = router_config(RED0);
	struct boot_config *b = boot_config_edit(&c);
	unsigned services = bits & SERVICES;
	const struct port *p;
	struct error err;

	snprintf(c.name, sizeof(c.name), "boot%u", bits);
	b->dhcp4 = services != ONLY_V6;
	b->dhcp6 = b->advert = services != ONLY_V4;
	c.mtu = 1280;
	c.vrf = (uint16_t)(BLUE + 1 + bits); // the guests have the same addresses
	FUZZ_ASSERT(vrf_add(c.name, c.vrf, &err));
	if (bits & BRIDGED) {
		c.vrf = UINT16_MAX;
		c.bridge = LAN;
		c.n_gateways = c.n_guests = 0;
		c.guest_mac = (struct rte_ether_addr){0};
		b->n_addresses = 2;
		b->addresses[0] = (struct ip_prefix){router_addr("10.0.0.2"), 24};
		b->addresses[1] = (struct ip_prefix){router_addr("fd00::2"), 64};
	}
	b->slaac = services == SLAAC;
	if (!(bits & BARE)) {
		add_routes(b, bits & BRIDGED);
		add_names(b);
	}
	p = port_add(&c, &err);
	if (p == NULL)
		rte_panic("%s: %s\n", c.name, err.message);
	return p->id;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	uint8_t i;

	boot_init();
	FUZZ_ASSERT(router_setup(NULL) == 0);
	for (i = 0; i < RTE_DIM(ports); i++)
		ports[i] = add_port(i);
	rcu_poll();
	return 0;
}

// --- Answers: the linker calls this in place of worker_inject(). ---

static struct rte_mbuf *answer;

int __wrap_worker_inject(struct rte_mbuf *m, enum inject edge);
int __wrap_worker_inject(struct rte_mbuf *m, enum inject edge)
{
	FUZZ_ASSERT(answer == NULL && edge == INJECT_TX);
	answer = m;
	return 0;
}

static void check_answer4(const struct rte_ipv4_hdr *ip, const struct rte_ether_addr *guest)
{
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(ip + 1);
	const struct dhcp4_header *h = (const struct dhcp4_header *)(udp + 1);

	FUZZ_ASSERT(router_sum(ip, sizeof(*ip), 0) == 0xffff && ip->next_proto_id == IPPROTO_UDP);
	FUZZ_ASSERT(udp->src_port == RTE_BE16(DHCP4_SERVER_PORT) && udp->dst_port == RTE_BE16(DHCP4_CLIENT_PORT));
	FUZZ_ASSERT(h->op == 2 && h->relay == 0 && h->cookie == DHCP4_COOKIE && eth_same(&h->mac, guest));
	FUZZ_ASSERT(h->your == 0 || h->your == RTE_BE32(RTE_IPV4(10u, 0u, 0u, 2u)));
}

static void check_answer6(const struct rte_ipv6_hdr *ip)
{
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(ip + 1);
	const uint8_t *message = (const uint8_t *)(udp + 1);

	FUZZ_ASSERT(ip->src_addr[0] == 0xfe && ip->src_addr[1] == 0x80);
	if (ip->proto == IPPROTO_ICMPV6) {
		FUZZ_ASSERT(*(const uint8_t *)udp == ND_ROUTER_ADVERT && ip->hop_limits == 255);
		return;
	}
	FUZZ_ASSERT(udp->src_port == RTE_BE16(DHCP6_SERVER_PORT) && udp->dst_port == RTE_BE16(DHCP6_CLIENT_PORT));
	FUZZ_ASSERT(*message == DHCP6_ADVERTISE || *message == DHCP6_REPLY);
}

static void check_answer(const struct port *p, const struct rte_ether_addr *guest)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(answer, const struct rte_ether_hdr *);
	bool v4 = eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4);

	FUZZ_ASSERT(meta(answer)->out_port == p->id && answer->nb_segs == 1);
	FUZZ_ASSERT(answer->data_len <= sizeof(*eth) + p->cfg.mtu && router_l4_ok(answer, sizeof(*eth)));
	FUZZ_ASSERT(eth_same(&eth->dst_addr, guest) || rte_is_multicast_ether_addr(&eth->dst_addr));
	FUZZ_ASSERT(v4 || eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV6));
	if (v4)
		check_answer4((const struct rte_ipv4_hdr *)(eth + 1), guest);
	else
		check_answer6((const struct rte_ipv6_hdr *)(eth + 1));
	rte_pktmbuf_free(answer);
	answer = NULL;
}

// --- Questions. ---

// fix() corrects the other checksums. The one of UDP may be 0 over IPv4.
static void fix_udp(uint8_t *frame, size_t size)
{
	uint8_t *ip = frame + RTE_ETHER_HDR_LEN;
	unsigned len;
	uint16_t sum;

	if (size >= RTE_ETHER_HDR_LEN + 28 && ip[0] >> 4 == 4 && (ip[0] & 15) == 5 && ip[9] == IPPROTO_UDP)
		ip[26] = ip[27] = 0;
	if (size < RTE_ETHER_HDR_LEN + 48 || ip[0] >> 4 != 6 || ip[6] != IPPROTO_UDP)
		return;
	len = (unsigned)(ip[4] << 8 | ip[5]);
	if (len < 8 || len > size - RTE_ETHER_HDR_LEN - 40)
		return;
	ip[46] = ip[47] = 0;
	sum = (uint16_t)~router_sum(ip + 40, len, router_sum(ip + 8, 32, len + IPPROTO_UDP));
	ip[46] = (uint8_t)(sum >> 8);
	ip[47] = (uint8_t)sum;
}

static void receive(struct rte_mbuf *m, uint8_t how)
{
	static void *taken[NODE_TEST_MAX * 8];
	unsigned n = how & NO_BUFFER ? rte_mempool_avail_count(node_test_pool) : 0;

	FUZZ_ASSERT(n <= RTE_DIM(taken));
	if (n > 0 && rte_mempool_get_bulk(node_test_pool, taken, n) < 0)
		abort();
	if (how & LATE)
		m->port = RED0;
	boot_receive(m);
	FUZZ_ASSERT(answer == NULL || !(how & (LATE | NO_BUFFER)));
	if (n > 0)
		rte_mempool_put_bulk(node_test_pool, taken, n);
}

static void ask(const struct port *p, struct rte_mbuf *m, uint8_t how)
{
	struct rte_ether_addr guest = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *)->src_addr;
	const char *edge = node_test_one("boot_input", m);

	FUZZ_ASSERT(edge);
	if (strcmp(edge, "punt") == 0) {
		FUZZ_ASSERT(meta(m)->out_port == PUNT_BOOT);
		receive(m, how);
		if (answer)
			check_answer(p, &guest);
	} else {
		FUZZ_ASSERT(strcmp(edge, "drop") == 0 && meta(m)->reason != 0);
		rte_pktmbuf_free(m);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t frame[1500 + RTE_ETHER_HDR_LEN];
	const struct port *p;
	struct rte_mbuf *m;

	if (size < 1 + RTE_ETHER_HDR_LEN || size > sizeof(frame))
		return 0;
	p = port_get(ports[*data % RTE_DIM(ports)]);
	memcpy(frame, data + 1, size - 1);
	if (*data & FIX) {
		fix(frame, size - 1, FIX_IP | FIX_ICMP);
		fix_udp(frame, size - 1);
	}
	m = fuzz_frame(frame, size - 1, *data & TAILROOM ? 64 : 0);
	m->port = p->id;
	meta(m)->l3 = RTE_ETHER_HDR_LEN;
	if (boot_claims(m, port_fwds[p->id]))
		ask(p, m, *data);
	else
		rte_pktmbuf_free(m);
	FUZZ_ASSERT(node_test_in_use() == 0);
	return 0;
}
