// SPDX-License-Identifier: Apache-2.0
// Tunnel next hops: builds the outer headers and finds the underlay's paths once; encapsulation copies the headers.
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_hash_crc.h>
#include <rte_udp.h>

#include "base/check.h"
#include "l3/ip_header.h"
#include "l3/nexthop.h"
#include "l3/path_mtu.h"
#include "l3/tunnel.h"
#include "l3/tunnel_end.h"
#include "l3/underlay.h"
#include "l3/vrf.h"
#include "neighbor/adjacency.h"
#include "neighbor/neighbor.h"
#include "port/registry.h"

struct rte_ether_addr tunnel_router_mac;

// The lower 40 bits come from the machine's id, else its name, and the run directory.
static struct rte_ether_addr tunnel_derive_router_mac(const char *run_dir)
{
	char id[128] = "";
	uint32_t a, b;
	FILE *f = fopen("/etc/machine-id", "r");

	if (f) {
		if (fgets(id, 64, f) == NULL)
			id[0] = '\0';
		fclose(f);
	}
	if (id[0] == '\0')
		gethostname(id, sizeof(id) - 1);
	a = rte_hash_crc(id, (uint32_t)strlen(id), 1);
	a = rte_hash_crc(run_dir, (uint32_t)strlen(run_dir), a);
	b = rte_hash_crc(id, (uint32_t)strlen(id), ~a);
	return (struct rte_ether_addr){
		{0x02, (uint8_t)b, (uint8_t)(a >> 24), (uint8_t)(a >> 16), (uint8_t)(a >> 8), (uint8_t)a}};
}

void tunnel_set_router_mac(const struct rte_ether_addr *mac, const char *run_dir)
{
	tunnel_router_mac = rte_is_zero_ether_addr(mac) ? tunnel_derive_router_mac(run_dir) : *mac;
}

int tunnel_check_id(const char *field, uint32_t id, uint32_t min, uint32_t max, struct error *err)
{
	char valid[32];

	snprintf(valid, sizeof(valid), "%u to %u", min, max);
	if (id == 0)
		return error_set(err, EINVAL, field, NULL, valid, "is missing");
	return check_number(field, id, min, max, err);
}

int tunnel_check_vni(const struct tunnel_config *t, struct error *err)
{
	return tunnel_check_id("nexthop.tunnel.vni", t->vni, LIMIT_TUNNEL_NEXTHOP_VNI_MIN, LIMIT_TUNNEL_NEXTHOP_VNI_MAX,
			       err);
}

static int tunnel_check_checksum(const struct tunnel_config *t, struct error *err)
{
	const char *value = t->udp6_checksum == UDP6_CHECKSUM_ON ? "on" : "off";

	if (t->udp6_checksum == UDP6_CHECKSUM_DEFAULT)
		return 0;
	if (t->encap->proto != IPPROTO_UDP)
		return error_set(err, EINVAL, "nexthop.tunnel.udp6_checksum", value, "default",
				 "%s has no UDP checksum", t->encap->name);
	if (t->remote.family == IPV4)
		return error_set(err, EINVAL, "nexthop.tunnel.udp6_checksum", value, "default, or an IPv6 remote",
				 "is for IPv6, and the remote is an IPv4 address");
	return 0;
}

int tunnel_check(struct tunnel_config *t, struct error *err)
{
	char text[IP_TEXT];

	if (t->encap == NULL)
		return error_set(err, EINVAL, "nexthop.tunnel.encap", NULL, encap_names(),
				 "a tunnel needs an encapsulation");
	if (t->local.family && t->local.family != t->remote.family)
		return error_set(err, EINVAL, "nexthop.tunnel.local", ip_format_addr(&t->local, text),
				 "an address of the remote's family", "is of another family than the remote");
	if (t->remote.family == IPV4 ? underlay_is_local4(ip4_be(&t->remote)) : underlay_is_local6(t->remote.bytes))
		return error_set(err, EINVAL, "nexthop.tunnel.remote", ip_format_addr(&t->remote, text),
				 "another node's address", "is an address of this node");
	if (t->ttl == 0)
		t->ttl = LIMIT_TUNNEL_NEXTHOP_TTL_DEFAULT;
	if (tunnel_check_checksum(t, err) < 0)
		return -EINVAL;
	return t->encap->check ? t->encap->check(t, err) : 0;
}

// Adds the adjacency of an underlay next hop to the paths. Returns the new number of paths.
static unsigned add_path(struct nexthop_entry *e, const struct nexthop_entry *via, uint32_t *paths, unsigned n)
{
	static const struct rte_ether_addr none;
	const struct port *p = port_get(via->cfg.port.id);

	if (p == NULL || !p->up || n == TUNNEL_MAX_PATHS)
		return n;
	if (via->cfg.kind == NH_GLEAN) { // on the link: the remote itself is the neighbour
		// The remote has moved to another link.
		if (e->adj != UINT32_MAX && adjacency_table[e->adj]->port != p->id) {
			adjacency_put(e->adj);
			e->adj = UINT32_MAX;
		}
		if (e->adj == UINT32_MAX)
			adjacency_hold(p->id, &e->cfg.tunnel.remote, &none, &e->adj, NULL);
		if (e->adj == UINT32_MAX)
			return n;
		paths[n] = e->adj;
	} else {
		paths[n] = via->adj;
	}
	return n + 1;
}

static unsigned add_group(struct nexthop_entry *e, const struct nexthop_entry *group, uint32_t *paths)
{
	const struct nexthop *nh = nexthop_table[group->cfg.id];
	const struct nexthop_entry *m;
	unsigned i, n = 0;

	// 16 of the group's 256 buckets approximate its weights. The step is odd because members alternate in the
	// buckets.
	for (i = 0; nh && i < TUNNEL_MAX_PATHS; i++) {
		m = nexthop_get(nh->bucket[i * (GROUP_BUCKETS / TUNNEL_MAX_PATHS + 1) % GROUP_BUCKETS]);
		if (m && m->cfg.kind == NH_PORT)
			n = add_path(e, m, paths, n);
	}
	return n;
}

static unsigned find_paths(struct nexthop_entry *e, uint32_t *paths)
{
	struct vrf *v = vrf_get(VRF_FABRIC);
	struct ip_prefix match;
	struct rib_route *r =
		rib_match(v->rib[family_index(e->cfg.tunnel.remote.family)], &e->cfg.tunnel.remote, &match);
	const struct nexthop_entry *via = r ? nexthop_get(r->nexthop) : NULL;
	unsigned n = 0;

	if (via && (via->cfg.kind == NH_PORT || via->cfg.kind == NH_GLEAN))
		n = add_path(e, via, paths, 0);
	else if (via && via->cfg.kind == NH_GROUP)
		n = add_group(e, via, paths);
	if (e->adj != UINT32_MAX && (n == 0 || paths[0] != e->adj)) { // no longer on the link
		adjacency_put(e->adj);
		e->adj = UINT32_MAX;
	}
	return n;
}

// Repeats the paths up to a power of two, so that a flow's hash needs no division.
static uint8_t fill_paths(struct nexthop *nh, const uint32_t *paths, unsigned n)
{
	unsigned i, size = 1;

	while (size < n)
		size *= 2;
	if (size > 1 && size != n)
		size = TUNNEL_MAX_PATHS;
	for (i = 0; i < size; i++)
		nh->path[i] = paths[i % n];
	return (uint8_t)size;
}

static bool find_source(struct nexthop_entry *e, const struct port *p)
{
	const struct tunnel_config *t = &e->cfg.tunnel;
	unsigned i;

	e->source = t->local;
	for (i = 0; e->source.family == 0 && i < p->cfg.n_addrs; i++)
		if (p->cfg.addrs[i].addr.family == t->remote.family)
			e->source = p->cfg.addrs[i].addr;
	return e->source.family != 0;
}

void *tunnel_push(struct nexthop *nh, unsigned n)
{
	nh->hdr_len = (uint8_t)(nh->hdr_len + n);
	return nh->hdr + TUNNEL_HDR_MAX - nh->hdr_len;
}

void tunnel_push_router_eth(struct nexthop *nh, const struct tunnel_config *t)
{
	struct rte_ether_hdr *eth = tunnel_push(nh, sizeof(*eth));

	eth->dst_addr = rte_is_zero_ether_addr(&t->router_mac) ? gateway_mac : t->router_mac;
	eth->src_addr = tunnel_router_mac;
	eth->ether_type = 0; // set per packet
	nh->inner_eth = sizeof(*eth);
}

static void push_udp(struct nexthop *nh, uint16_t port)
{
	struct rte_udp_hdr *udp = tunnel_push(nh, sizeof(*udp));

	udp->src_port = 0; // set per packet from the flow's hash
	udp->dst_port = rte_cpu_to_be_16(port);
	udp->dgram_len = 0; // set per packet
	udp->dgram_cksum = 0;
}

static void push_ip4(struct nexthop_entry *e, struct nexthop *nh, uint8_t proto)
{
	struct rte_ipv4_hdr *ip = tunnel_push(nh, sizeof(*ip));

	ip->version_ihl = 0x45;
	ip->type_of_service = 0;
	ip->total_length = 0;
	ip->packet_id = 0; // RFC 6864: without meaning in an atomic datagram
	ip->fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
	ip->time_to_live = nh->ttl;
	ip->next_proto_id = proto;
	ip->hdr_checksum = 0;
	ip->src_addr = ip4_be(&e->source);
	ip->dst_addr = ip4_be(&e->cfg.tunnel.remote);
	nh->ip_sum = ip_fold(ip_sum(ip, sizeof(*ip)));
}

static void push_ip6(struct nexthop_entry *e, struct nexthop *nh, uint8_t proto)
{
	struct rte_ipv6_hdr *ip = tunnel_push(nh, sizeof(*ip));

	ip->vtc_flow = RTE_BE32(6u << 28);
	ip->payload_len = 0;
	ip->proto = proto;
	ip->hop_limits = nh->ttl;
	memcpy(ip->src_addr, e->source.bytes, 16);
	memcpy(ip->dst_addr, e->cfg.tunnel.remote.bytes, 16);
	nh->pseudo_sum = ip_fold(ip_sum(ip->src_addr, 32) + rte_cpu_to_be_16(proto));
}

bool tunnel_udp6_checksum(const struct tunnel_config *t)
{
	if (t->encap->proto != IPPROTO_UDP)
		return false;
	return t->udp6_checksum == UDP6_CHECKSUM_DEFAULT ? t->encap->udp6_checksum
							 : t->udp6_checksum == UDP6_CHECKSUM_ON;
}

static uint16_t tunnel_mtu(const struct nexthop *nh, const struct ip_addr *remote)
{
	const struct path_mtu *learned = path_mtu_of(remote);
	uint16_t mtu = learned ? learned->mtu : UINT16_MAX;
	unsigned i;

	for (i = 0; i < nh->n_paths; i++)
		mtu = RTE_MIN(mtu, port_get(adjacency_table[nh->path[i]]->port)->cfg.mtu);
	return mtu;
}

void tunnel_build(struct nexthop_entry *e, struct nexthop *nh)
{
	const struct tunnel_config *t = &e->cfg.tunnel;
	uint32_t paths[TUNNEL_MAX_PATHS];
	unsigned n = find_paths(e, paths);
	uint16_t mtu;

	nh->edge = NH_EDGE_DROP;
	nh->uniform = t->uniform;
	nh->fixed_dscp = t->fixed_dscp;
	nh->tos = (uint8_t)(t->dscp << 2);
	nh->ttl = t->ttl;
	nh->udp6_checksum = tunnel_udp6_checksum(t);
	nh->sequenced = t->encap->sequenced;
	e->resolved = n > 0 && find_source(e, port_get(adjacency_table[paths[0]]->port));
	e->way->source.family = 0;
	if (!e->resolved)
		return;
	nh->n_paths = fill_paths(nh, paths, n);
	t->encap->push(nh, t);
	if (t->encap->proto == IPPROTO_UDP)
		push_udp(nh, encap_udp_port(t->encap));
	if (t->remote.family == IPV4)
		push_ip4(e, nh, t->encap->proto);
	else
		push_ip6(e, nh, t->encap->proto);
	mtu = tunnel_mtu(nh, &t->remote);
	e->way->source = e->source;
	e->way->mtu = mtu;
	e->overhead = nh->hdr_len;
	nh->mtu = mtu > nh->hdr_len ? (uint16_t)(mtu - nh->hdr_len) : 0;
	nh->edge = (uint8_t)(NH_EDGE_ENCAP + encap_send_place(t->encap, t->remote.family == IPV6));
}
