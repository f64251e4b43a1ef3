// SPDX-License-Identifier: Apache-2.0
// The querier of a bridge domain: asks the hosts of each local port which groups they are members of, in IGMPv3 and
// MLDv2, which older hosts understand as their own version. What is asked is never sent into a tunnel: the node at the
// other end asks its own hosts.
#include <netinet/in.h>
#include <string.h>

#include <rte_ip.h>

#include "base/ip_sum.h"
#include "l2/mac.h"
#include "l2/snoop_private.h"
#include "neighbor/answer.h"
#include "neighbor/frame.h"
#include "port/registry.h"

// RFC 3376, 8, in tenths of a second. A port that is new is asked for quick answers, and a second time.
#define INTERVAL 1250u
#define ANSWER_WITHIN 100u
#define FIRST_INTERVAL 310u
#define FIRST_ANSWER_WITHIN 10u
#define TURN_PORTS 256u // that a turn asks at most

#define QRV 2    // robustness: a message may be lost
#define QQIC 125 // seconds

struct snoop_igmp_query {
	uint8_t alert[4]; // option of the IP header (RFC 2113)
	uint8_t type, within;
	rte_be16_t checksum;
	uint8_t group[4], robustness, interval;
	rte_be16_t sources;
} __rte_packed;

struct snoop_mld_query {
	uint8_t next, len, alert[4], pad[2]; // hop-by-hop header (RFC 2711)
	uint8_t type, code;
	rte_be16_t checksum, within, reserved;
	uint8_t group[16], robustness, interval;
	rte_be16_t sources;
} __rte_packed;

static struct {
	uint32_t due; // mac_clock; 0: never
	bool first;
} timers[PORT_MAX];

// group family 0: all groups. within: tenths of a second.
static void snoop_query_send4(const struct port *p, const struct ip_addr *group, unsigned within)
{
	struct rte_ether_addr dst = {{0x01, 0x00, 0x5e, 0, 0, 1}};
	const uint8_t to[4] = {224, 0, 0, 1};
	struct snoop_igmp_query *q;
	struct rte_ipv4_hdr *ip;
	struct rte_mbuf *m;

	if (group->family) {
		memcpy(dst.addr_bytes + 3, group->bytes + 1, 3);
		dst.addr_bytes[3] &= 0x7f;
	}
	m = frame_new(p, &dst, RTE_ETHER_TYPE_IPV4, sizeof(*ip) + sizeof(*q), (void **)&ip);
	if (m == NULL)
		return; // the next query is never far
	ip->version_ihl = 0x46;
	ip->type_of_service = 0xc0;
	ip->total_length = RTE_BE16(sizeof(*ip) + sizeof(*q));
	ip->time_to_live = 1;
	ip->next_proto_id = IPPROTO_IGMP;
	memcpy(&ip->dst_addr, group->family ? group->bytes : to, sizeof(ip->dst_addr));
	q = (struct snoop_igmp_query *)(ip + 1);
	*q = (struct snoop_igmp_query){
		.alert = {0x94, 4}, .type = 0x11, .within = (uint8_t)within, .robustness = QRV, .interval = QQIC};
	if (group->family)
		memcpy(q->group, group->bytes, sizeof(q->group));
	q->checksum = (uint16_t)~rte_raw_cksum(&q->type, sizeof(*q) - sizeof(q->alert));
	ip4_checksum_set(ip);
	frame_send(p, m);
}

static void snoop_query_send6(const struct port *p, const struct ip_addr *group, unsigned within)
{
	static const uint8_t all[16] = {0xff, 0x02, [15] = 1};
	struct rte_ether_addr dst = {{0x33, 0x33}};
	const uint8_t *to = group->family ? group->bytes : all;
	struct snoop_mld_query *q;
	struct rte_ipv6_hdr *ip;
	struct rte_mbuf *m;
	uint32_t sum;

	memcpy(dst.addr_bytes + 2, to + 12, 4);
	m = frame_new(p, &dst, RTE_ETHER_TYPE_IPV6, sizeof(*ip) + sizeof(*q), (void **)&ip);
	if (m == NULL)
		return;
	ip->vtc_flow = RTE_BE32(6u << 28);
	ip->payload_len = RTE_BE16(sizeof(*q));
	ip->proto = IPPROTO_HOPOPTS;
	ip->hop_limits = 1;
	answer_link_local(&port_fwds[p->id]->mac, ip->src_addr);
	memcpy(ip->dst_addr, to, sizeof(ip->dst_addr));
	q = (struct snoop_mld_query *)(ip + 1);
	*q = (struct snoop_mld_query){.next = IPPROTO_ICMPV6,
				      .alert = {5, 2},
				      .pad = {1},
				      .type = 130,
				      .within = rte_cpu_to_be_16((uint16_t)(within * 100)),
				      .robustness = QRV,
				      .interval = QQIC};
	if (group->family)
		memcpy(q->group, group->bytes, sizeof(q->group));
	sum = __rte_raw_cksum(&ip->src_addr, 32, RTE_BE16(sizeof(*q) - 8) + (uint32_t)RTE_BE16(IPPROTO_ICMPV6));
	q->checksum = (uint16_t)~__rte_raw_cksum_reduce(__rte_raw_cksum(&q->type, sizeof(*q) - 8, sum));
	frame_send(p, m);
}

// always: also where another querier is heard, since that may be a guest's lie, or the port may be new to it.
static void snoop_query_general(const struct port *p, unsigned within, bool always)
{
	const struct ip_addr all = {0};

	if (always || !snoop_is_queried(p->cfg.bridge, IPV4))
		snoop_query_send4(p, &all, within);
	if (always || !snoop_is_queried(p->cfg.bridge, IPV6))
		snoop_query_send6(p, &all, within);
}

void snoop_query_group(uint16_t port, const struct ip_addr *group)
{
	const struct port *p = port_get(port);

	if (p == NULL || !p->up)
		return;
	if (group->family == IPV4)
		snoop_query_send4(p, group, FIRST_ANSWER_WITHIN);
	else
		snoop_query_send6(p, group, FIRST_ANSWER_WITHIN);
}

static uint32_t snoop_query_at(uint32_t from_now)
{
	return RTE_MAX(mac_clock + from_now, 1u);
}

void snoop_query_soon(uint16_t port)
{
	timers[port % PORT_MAX].due = snoop_query_at(0);
	timers[port % PORT_MAX].first = true;
}

void snoop_query_never(uint16_t port)
{
	timers[port % PORT_MAX].due = 0;
}

void snoop_query_poll(void)
{
	static uint16_t at; // the turn that ends early is continued by the next one
	unsigned i, asked = 0;

	for (i = 0; i < PORT_MAX && asked < TURN_PORTS; i++, at = (uint16_t)((at + 1) % PORT_MAX)) {
		const struct port *p;
		bool first = timers[at].first;

		if (timers[at].due == 0 || (int32_t)(mac_clock - timers[at].due) < 0)
			continue;
		p = port_get(at);
		timers[at].first = false;
		timers[at].due = snoop_query_at(first ? FIRST_INTERVAL : INTERVAL);
		if (p == NULL || !p->up)
			continue; // asked when its link comes up
		snoop_query_general(p, first ? FIRST_ANSWER_WITHIN : ANSWER_WITHIN, first);
		asked++;
	}
}
