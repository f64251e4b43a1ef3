// SPDX-License-Identifier: Apache-2.0
// Decides about frames of bridge domains that have no flow.
#include <netinet/in.h>

#include "base/eth.h"
#include "base/rcu.h"
#include "flow/bridged.h"
#include "flow/decide.h"
#include "flow/packet.h"
#include "port/registry.h"

// Type and code of an ICMP message are in the place of its source port; an echo has its identifier twice.
bool flow_key_is_nd(const struct flow_key *k)
{
	uint16_t type = rte_be_to_cpu_16(k->src_port) >> 8;

	return k->proto == IPPROTO_ICMPV6 && k->family == 6 && k->dst_port == 0 && type >= 133 && type <= 137;
}

static bool frame_has_ports(const struct flow_key *k, uint16_t src4, uint16_t dst4, uint16_t src6, uint16_t dst6)
{
	return k->proto == IPPROTO_UDP && k->src_port == rte_cpu_to_be_16(k->family == 4 ? src4 : src6) &&
	       k->dst_port == rte_cpu_to_be_16(k->family == 4 ? dst4 : dst6);
}

bool flow_key_asks_dhcp(const struct flow_key *k)
{
	return frame_has_ports(k, 68, 67, 546, 547);
}

bool flow_key_answers_dhcp(const struct flow_key *k)
{
	return frame_has_ports(k, 67, 68, 547, 546);
}

bool flow_may_serve_dhcp(uint16_t port)
{
	const struct port_fwd *p = port ? rcu_read(port_fwds[port]) : NULL;

	return p == NULL || !p->stateful || p->allow_dhcp_server;
}

static const struct drop_reason *frame_verdict(const struct flow_frame *f, uint16_t port, enum rule_direction dir)
{
	struct rule_verdict v;

	if (f->kind == FLOW_FRAME_IP)
		rules_classify(port, dir, &f->key, &v);
	else
		rules_default(port, dir, &v);
	rules_hit(&v);
	return v.denied ? flow_denied[dir] : NULL;
}

static void frame_parse(const struct rte_mbuf *m, struct flow_frame *f)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	struct flow_packet p;
	bool ip4 = eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4);

	*f = (struct flow_frame){.kind = FLOW_FRAME_OTHER};
	if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_ARP))
		f->kind = FLOW_FRAME_PASSES;
	if ((!ip4 && eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV6)) || m->data_len < sizeof(*eth) + 1)
		return;
	flow_parse(m, sizeof(*eth), FLOW_ZONE_BRIDGE, &p);
	if (p.kind == FLOW_TRUNCATED || p.key.family != (ip4 ? 4 : 6))
		return;
	f->kind = flow_key_is_nd(&p.key) ? FLOW_FRAME_PASSES : FLOW_FRAME_IP;
	f->key = p.key;
}

void flow_frame_decide(const struct rte_mbuf *m, uint16_t sender, enum flow_flood flood, struct flow_frame *f)
{
	frame_parse(m, f);
	if (f->kind == FLOW_FRAME_IP && flow_key_answers_dhcp(&f->key) && flow_may_serve_dhcp(sender))
		f->kind = FLOW_FRAME_PASSES;
	if (f->kind == FLOW_FRAME_PASSES)
		return;
	f->asks_dhcp = f->kind == FLOW_FRAME_IP && flow_key_asks_dhcp(&f->key);
	if (sender && flood == FLOW_FLOOD_ALL)
		f->egress = frame_verdict(f, sender, RULES_EGRESS);
}

const struct drop_reason *flow_frame_denied(const struct flow_frame *f, uint16_t receiver)
{
	if (f->kind == FLOW_FRAME_PASSES || (f->asks_dhcp && flow_may_serve_dhcp(receiver)))
		return NULL;
	if (f->egress || receiver == 0)
		return f->egress;
	return frame_verdict(f, receiver, RULES_INGRESS);
}
