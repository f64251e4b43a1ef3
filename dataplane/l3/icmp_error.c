// SPDX-License-Identifier: Apache-2.0
// icmp_error: counts a dropped packet and turns it into the ICMP error for its sender (RFC 792, 1812, 4443), or into a
// TCP reset.
// Reads: reason, arg (icmp_want), l3, vrf.  Next: back to the route lookup with the answer, or drop.
#include <netinet/in.h>

#include <rte_cycles.h>
#include <rte_icmp.h>

#include "base/bucket.h"
#include "base/clock.h"
#include "base/field_limits.h"
#include "base/ip6_ext.h"
#include "base/rcu.h"
#include "base/setting.h"
#include "graph/capture.h"
#include "graph/counters.h"
#include "graph/node.h"
#include "l3/icmp.h"
#include "l3/ip_header.h"
#include "l3/nexthop.h"
#include "l3/tcp_reset.h"
#include "l3/vrf.h"
#include "port/registry.h"
#include "worker/worker.h"

enum { IP4 = 1, IP6 };

DROP_REASON(icmp_no_room, "An ICMP error that the router made did not fit into its buffer.");

#define ENCAP_ROOM (TUNNEL_HDR_MAX + 32) // what encapsulation and link layer write in front of a packet
#define QUOTE4 (576 - 28)                // RFC 1812 4.3.2.3: as much as fits into 576 bytes
#define QUOTE6 (1280 - 48)               // RFC 4443: into the minimum MTU

#define ICMP6_INFORMATION 128 // the first type that is not an error

uint32_t icmp_errors_per_second = LIMIT_SETTINGS_ICMP_ERRORS_PER_SECOND_DEFAULT;
SETTING(icmp_errors_per_second, icmp_errors_per_second);

struct type_code {
	uint8_t type4, code4, type6, code6;
};
static const struct type_code codes[] = {
	[ICMP_WHAT_TTL] = {11, 0, 3, 0},        [ICMP_WHAT_NO_ROUTE] = {3, 0, 1, 0}, [ICMP_WHAT_HOST] = {3, 1, 1, 3},
	[ICMP_WHAT_PROHIBITED] = {3, 13, 1, 1}, [ICMP_WHAT_TOO_BIG] = {3, 4, 2, 0},  [ICMP_WHAT_PORT] = {3, 3, 1, 4},
	[ICMP_WHAT_PROTOCOL] = {3, 2, 4, 1},
};

// Each port, and each VRF for what tunnels bring, has a tenth of the worker's budget: what one guest provokes leaves
// path MTU discovery of the others alone. Its own budget is also spent on what cannot be answered, for the search for a
// source address takes long then; the worker's only on errors that are sent.
static inline bool icmp_error_own_budget(const struct rte_mbuf *m, const struct pkt_meta *md)
{
	static struct bucket of_port[WORKER_MAX][PORT_MAX], of_vrf[WORKER_MAX][VRF_MAX];
	bool tunnel = md->flags & META_FROM_TUNNEL;
	struct bucket *own =
		tunnel ? &of_vrf[this_worker->id][md->vrf % VRF_MAX] : &of_port[this_worker->id][m->port % PORT_MAX];
	uint32_t rate = icmp_errors_per_second, share = rate ? RTE_MAX(rate / 10, 1u) : 0;

	return bucket_take(own, clock_now(), 1, share, share, rte_get_tsc_hz());
}

static inline bool icmp_error_worker_budget(void)
{
	static struct bucket of_worker[WORKER_MAX];
	uint32_t rate = icmp_errors_per_second;

	return bucket_take(&of_worker[this_worker->id], clock_now(), 1, rate, rate, rte_get_tsc_hz());
}

// RFC 1812 4.3.2.7, RFC 4443 2.4(e): no error answers an error, a fragment other than the first, multicast, or the
// router's own packet.
static inline bool must_not_answer4(const struct rte_mbuf *m, const struct pkt_meta *md, const struct rte_ipv4_hdr *ip)
{
	const uint8_t *icmp = RTE_PTR_ADD(ip, rte_ipv4_hdr_len(ip));

	if ((md->flags & META_ANSWER) || (ip->fragment_offset & RTE_BE16(0x1fff)) || ip4_martian_source(ip->src_addr))
		return true;
	if (ip->next_proto_id != IPPROTO_ICMP)
		return false;
	if (m->data_len < md->l3 + rte_ipv4_hdr_len(ip) + 1u)
		return true;
	return *icmp != RTE_IP_ICMP_ECHO_REQUEST && *icmp != RTE_IP_ICMP_ECHO_REPLY && *icmp != 13 && *icmp != 14;
}

// A message behind headers that cannot be read counts as an error, and so does a later fragment of a message.
static inline bool is_icmp6_error(const struct rte_mbuf *m, struct ip6_walk *e)
{
	if (!ip6_walk_extensions(m, m->data_len, e))
		return true;
	return e->proto == IPPROTO_ICMPV6 && (e->later || m->data_len <= e->at ||
					      *rte_pktmbuf_mtod_offset(m, const uint8_t *, e->at) < ICMP6_INFORMATION);
}

static inline bool must_not_answer6(const struct rte_mbuf *m, const struct pkt_meta *md, const struct rte_ipv6_hdr *ip)
{
	struct ip6_walk e = {.at = md->l3 + (unsigned)sizeof(*ip), .proto = ip->proto};

	return (md->flags & META_ANSWER) || ip6_is_multicast(ip->src_addr) ||
	       ip6_unspecified_or_loopback(ip->src_addr) || is_icmp6_error(m, &e);
}

// Finds the source of the error: the gateway of the guest's port, any gateway of the VRF if the packet came through a
// tunnel, or the fabric port's own address.
static inline bool icmp_error_source4(const struct rte_mbuf *m, const struct pkt_meta *md, rte_be32_t *out)
{
	const struct port_fwd *f = rcu_read(port_fwds[m->port % PORT_MAX]);
	unsigned i;

	for (i = 1; i < PORT_MAX && !(f && f->n_ip4 && f->vrf == md->vrf); i++)
		f = rcu_read(port_fwds[i]);
	if (f == NULL || f->n_ip4 == 0 || f->vrf != md->vrf)
		return false;
	*out = f->ip4[0];
	return true;
}

static inline bool icmp_error_source6(const struct rte_mbuf *m, const struct pkt_meta *md, uint8_t *out)
{
	const struct port_fwd *f = rcu_read(port_fwds[m->port % PORT_MAX]);
	unsigned i;

	for (i = 1; i < PORT_MAX && !(f && f->n_ip6 && f->vrf == md->vrf); i++)
		f = rcu_read(port_fwds[i]);
	if (f == NULL || f->n_ip6 == 0 || f->vrf != md->vrf)
		return false;
	memcpy(out, f->ip6[0], 16);
	return true;
}

// Counts and captures the packet as the drop node would: from here on its buffer holds the answer.
static inline void icmp_error_count_drop(struct rte_mbuf *m, const struct pkt_meta *md)
{
	counters->drops[m->port % PORT_MAX][md->reason]++;
	if (unlikely(capture_active))
		capture_batch(CAPTURE_DROP, 0, &m, 1);
}

// The packet was received with room for one encapsulation, and the error's own headers need more. Returns false if
// there is none.
static inline bool icmp_error_make_room(struct rte_mbuf *m, unsigned room)
{
	unsigned have = rte_pktmbuf_headroom(m), shift = have < room ? room - have : 0;

	if (likely(shift == 0))
		return true;
	if (rte_pktmbuf_tailroom(m) < shift)
		return false;
	memmove(rte_pktmbuf_mtod_offset(m, void *, shift), rte_pktmbuf_mtod(m, void *), m->data_len);
	m->data_off = (uint16_t)(m->data_off + shift);
	return true;
}

// Removes the link layer, keeps the quoted bytes and adds the new headers in front. Returns NULL if there is no room
// for them.
static inline void *icmp_error_reshape(struct rte_mbuf *m, struct pkt_meta *md, unsigned quote, unsigned room)
{
	rte_pktmbuf_adj(m, md->l3);
	if (m->nb_segs > 1) { // the first buffer holds the quote, or a shorter one
		rte_pktmbuf_free(m->next);
		m->next = NULL;
		m->nb_segs = 1;
		m->pkt_len = m->data_len;
	}
	if (m->pkt_len > quote)
		rte_pktmbuf_trim(m, (uint16_t)(m->pkt_len - quote));
	md->l3 = 0;
	md->hash = 0;
	md->bridge = UINT16_MAX;
	md->nexthop = NULL;
	md->flags = (uint8_t)((md->flags & META_TRACED) | META_ANSWER);
	m->ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL; // not what the device said about the old packet
	return icmp_error_make_room(m, room + ENCAP_ROOM) ? rte_pktmbuf_prepend(m, (uint16_t)room) : NULL;
}

static inline edge_t icmp_error_error4(struct rte_mbuf *m, struct pkt_meta *md, const struct type_code *tc,
				       uint16_t mtu)
{
	const struct rte_ipv4_hdr *old = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, md->l3);
	rte_be32_t dst = old->src_addr, src;
	struct rte_ipv4_hdr *ip;
	struct rte_icmp_hdr *icmp;
	uint16_t raw = 0;

	if (must_not_answer4(m, md, old) || !icmp_error_own_budget(m, md) || !icmp_error_source4(m, md, &src) ||
	    !icmp_error_worker_budget())
		return EDGE_DROP;
	icmp_error_count_drop(m, md);
	ip = icmp_error_reshape(m, md, QUOTE4, sizeof(*ip) + sizeof(*icmp));
	if (ip == NULL)
		return drop(m, icmp_no_room);
	icmp = (struct rte_icmp_hdr *)(ip + 1);
	*ip = (struct rte_ipv4_hdr){
		.version_ihl = 0x45, .type_of_service = 0xc0, .time_to_live = 64, .next_proto_id = IPPROTO_ICMP};
	ip->total_length = rte_cpu_to_be_16((uint16_t)m->pkt_len);
	ip->src_addr = src;
	ip->dst_addr = dst;
	ip4_checksum_set(ip);
	*icmp = (struct rte_icmp_hdr){
		.icmp_type = tc->type4, .icmp_code = tc->code4, .icmp_seq_nb = rte_cpu_to_be_16(mtu)};
	rte_raw_cksum_mbuf(m, sizeof(*ip), m->pkt_len - (uint32_t)sizeof(*ip), &raw);
	icmp->icmp_cksum = (uint16_t)~raw;
	return IP4;
}

static inline edge_t icmp_error_error6(struct rte_mbuf *m, struct pkt_meta *md, const struct type_code *tc,
				       uint16_t mtu)
{
	const struct rte_ipv6_hdr *old = rte_pktmbuf_mtod_offset(m, const struct rte_ipv6_hdr *, md->l3);
	uint8_t dst[16], src[16];
	struct rte_ipv6_hdr *ip;
	uint8_t *icmp;
	uint16_t raw = 0;

	if (must_not_answer6(m, md, old) || !icmp_error_own_budget(m, md) || !icmp_error_source6(m, md, src) ||
	    !icmp_error_worker_budget())
		return EDGE_DROP;
	icmp_error_count_drop(m, md);
	memcpy(dst, old->src_addr, 16);
	ip = icmp_error_reshape(m, md, QUOTE6, sizeof(*ip) + 8);
	if (ip == NULL)
		return drop(m, icmp_no_room);
	*ip = (struct rte_ipv6_hdr){.vtc_flow = RTE_BE32(6u << 28), .proto = IPPROTO_ICMPV6, .hop_limits = 64};
	ip->payload_len = rte_cpu_to_be_16((uint16_t)(m->pkt_len - sizeof(*ip)));
	memcpy(ip->src_addr, src, 16);
	memcpy(ip->dst_addr, dst, 16);
	icmp = (uint8_t *)(ip + 1);
	memset(icmp, 0, 8);
	icmp[0] = tc->type6;
	icmp[1] = tc->code6;
	icmp[6] = (uint8_t)(mtu >> 8);
	icmp[7] = (uint8_t)mtu;
	rte_raw_cksum_mbuf(m, sizeof(*ip), m->pkt_len - (uint32_t)sizeof(*ip), &raw);
	*(unaligned_uint16_t *)(icmp + 2) =
		(uint16_t)~ip_fold(ip_sum(ip->src_addr, 32) + ip->payload_len + RTE_BE16(IPPROTO_ICMPV6) + raw);
	return IP6;
}

// A reset comes from the address that the packet was sent to, and spends the budgets of errors.
static edge_t icmp_error_reset4(struct rte_mbuf *m, struct pkt_meta *md)
{
	const struct rte_ipv4_hdr *old = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, md->l3);
	unsigned hlen = rte_ipv4_hdr_len(old);
	rte_be32_t dst = old->src_addr, src = old->dst_addr;
	struct rte_ipv4_hdr *ip;
	struct rte_tcp_hdr tcp;

	if (must_not_answer4(m, md, old) || !icmp_error_own_budget(m, md) ||
	    !tcp_reset(m, md->l3 + hlen, rte_be_to_cpu_16(old->total_length) - hlen, &tcp) ||
	    !icmp_error_worker_budget())
		return EDGE_DROP;
	icmp_error_count_drop(m, md);
	ip = icmp_error_reshape(m, md, 0, sizeof(*ip) + sizeof(tcp));
	if (ip == NULL)
		return drop(m, icmp_no_room);
	*ip = (struct rte_ipv4_hdr){.version_ihl = 0x45,
				    .total_length = RTE_BE16(sizeof(*ip) + sizeof(tcp)),
				    .fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG),
				    .time_to_live = 64,
				    .next_proto_id = IPPROTO_TCP,
				    .src_addr = src,
				    .dst_addr = dst};
	ip4_checksum_set(ip);
	tcp.cksum = rte_ipv4_udptcp_cksum(ip, &tcp);
	memcpy(ip + 1, &tcp, sizeof(tcp));
	return IP4;
}

static edge_t icmp_error_reset6(struct rte_mbuf *m, struct pkt_meta *md)
{
	const struct rte_ipv6_hdr *old = rte_pktmbuf_mtod_offset(m, const struct rte_ipv6_hdr *, md->l3);
	struct ip6_walk e = {.at = md->l3 + (unsigned)sizeof(*old), .proto = old->proto};
	struct rte_ipv6_hdr *ip, new = {.vtc_flow = RTE_BE32(6u << 28),
					.payload_len = RTE_BE16(sizeof(struct rte_tcp_hdr)),
					.proto = IPPROTO_TCP,
					.hop_limits = 64};
	struct rte_tcp_hdr tcp;
	uint32_t end = md->l3 + (uint32_t)sizeof(*old) + rte_be_to_cpu_16(old->payload_len);

	if (must_not_answer6(m, md, old) || !icmp_error_own_budget(m, md) || !ip6_walk_extensions(m, m->data_len, &e) ||
	    e.later || e.proto != IPPROTO_TCP || end < e.at || !tcp_reset(m, e.at, end - e.at, &tcp) ||
	    !icmp_error_worker_budget())
		return EDGE_DROP;
	icmp_error_count_drop(m, md);
	memcpy(new.src_addr, old->dst_addr, 16);
	memcpy(new.dst_addr, old->src_addr, 16);
	ip = icmp_error_reshape(m, md, 0, sizeof(*ip) + sizeof(tcp));
	if (ip == NULL)
		return drop(m, icmp_no_room);
	*ip = new;
	tcp.cksum = rte_ipv6_udptcp_cksum(ip, &tcp);
	memcpy(ip + 1, &tcp, sizeof(tcp));
	return IP6;
}

// A label that stands for a next hop does not name a VRF, but the guest's port has one. In other cases the sender
// cannot be answered, least of all through the underlay, where other hosts may have the same address.
static inline bool icmp_error_find_vrf(struct pkt_meta *md)
{
	const struct nexthop *nh = md->nexthop;
	const struct port_fwd *f;

	if (!(md->flags & META_NEXTHOP))
		return true;
	f = nh && nh->kind == NH_PORT ? rcu_read(port_fwds[nh->port]) : NULL;
	md->vrf = f ? f->vrf : VRF_FABRIC;
	return md->vrf != VRF_FABRIC && md->vrf < VRF_MAX;
}

static inline edge_t error_one(struct rte_mbuf *m)
{
	struct pkt_meta *md = meta(m);
	uint8_t version = *rte_pktmbuf_mtod_offset(m, const uint8_t *, md->l3) >> 4;
	const struct type_code *tc;

	if (unlikely(!icmp_error_find_vrf(md)))
		return EDGE_DROP;
	if (md->arg >> 16 == ICMP_WHAT_RESET)
		return version == 4 ? icmp_error_reset4(m, md) : icmp_error_reset6(m, md);
	tc = &codes[md->arg >> 16];
	return version == 4 ? icmp_error_error4(m, md, tc, (uint16_t)md->arg)
			    : icmp_error_error6(m, md, tc, (uint16_t)md->arg);
}

static uint16_t icmp_error(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, error_one);
}

NODE(icmp_error, icmp_error, [IP4] = "ip4_forward", [IP6] = "ip6_forward");
