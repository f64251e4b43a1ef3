// SPDX-License-Identifier: Apache-2.0
#include "l3/path_mtu.h"

#include <errno.h>
#include <netinet/in.h>

#include <rte_cycles.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "base/event.h"
#include "graph/drop.h"
#include "l3/nexthop.h"
#include "l3/tunnel_end.h"
#include "worker/punt.h"

#define LEARNED_MAX 1024 // remote ends
#define ICMP_HEADER 8

DROP_REASON(path_mtu_no_tunnel, "An ICMP error of the underlay says that a packet is too big which no tunnel of this "
				"node can have sent: it is forged, or the tunnel was removed a moment ago.");

EVENT_KIND(path_mtu_learned, WARNING,
	   "A hop of the underlay cannot pass on packets as long as the MTU of the fabric port. Guests are told the "
	   "smaller "
	   "MTU, packets without DF are fragmented, and bridged frames that are longer are dropped. Raise the hop's "
	   "MTU, or "
	   "lower the guests'.");
EVENT_KIND(path_mtu_expired, INFO,
	   "A path MTU that a hop of the underlay had reported is no longer used: 10 minutes "
	   "have passed. It is learned again if it still holds.");

struct learned {
	struct ip_addr remote; // family 0: free
	struct path_mtu path;
};

static struct learned learned[LEARNED_MAX];
static unsigned n_learned; // entries below are in use

static uint64_t path_mtu_tsc(void)
{
	return rte_rdtsc();
}

uint64_t (*path_mtu_clock)(void) = path_mtu_tsc;

uint32_t path_mtu_plateau(uint32_t length)
{
	static const uint16_t plateaus[] = {32000, 17914, 8166, 4352, 2002, 1492, 1006, 508, 296, 68};
	unsigned i;

	for (i = 0; i < RTE_DIM(plateaus); i++)
		if (plateaus[i] < length)
			return plateaus[i];
	return 0;
}

// Reads all but the MTU's bounds. Returns false if the quote is not of a packet as tunnels of this node send them.
static bool path_mtu_read_quote(const struct rte_mbuf *m, unsigned l3, unsigned at, bool v6, struct path_mtu_report *r)
{
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, l3);
	const uint8_t *icmp = rte_pktmbuf_mtod_offset(m, const uint8_t *, at), *quote = icmp + ICMP_HEADER, *l4;
	const uint8_t *own = v6 ? ip + 24 : ip + 16; // where the error goes to
	unsigned hlen = v6 ? sizeof(struct rte_ipv6_hdr) : sizeof(struct rte_ipv4_hdr);

	*r = (struct path_mtu_report){0};
	if (m->data_len < at + ICMP_HEADER + hlen + sizeof(struct rte_udp_hdr))
		return false;
	if (quote[0] != 0x45 && (!v6 || (quote[0] >> 4) != 6)) // tunnels send no options
		return false;
	l4 = quote + hlen;
	if (v6) {
		r->hop = ip6_addr(ip + 8);
		r->source = ip6_addr(quote + 8);
		r->destination = ip6_addr(quote + 24);
		r->proto = quote[6];
		r->mtu = rte_be_to_cpu_32(*(const unaligned_uint32_t *)(icmp + 4));
	} else {
		r->hop = ip4_addr(*(const unaligned_uint32_t *)(ip + 12));
		r->source = ip4_addr(*(const unaligned_uint32_t *)(quote + 12));
		r->destination = ip4_addr(*(const unaligned_uint32_t *)(quote + 16));
		r->proto = quote[9];
		r->mtu = rte_be_to_cpu_16(*(const unaligned_uint16_t *)(icmp + 6));
		if (r->mtu == 0) // the hop does not say
			r->mtu = path_mtu_plateau(rte_be_to_cpu_16(*(const unaligned_uint16_t *)(quote + 2)));
	}
	if (r->proto == IPPROTO_UDP)
		r->port = rte_be_to_cpu_16(*(const unaligned_uint16_t *)(l4 + 2));
	return (v6 || quote[0] == 0x45) && memcmp(r->source.bytes, own, ip_bytes(r->source.family)) == 0;
}

bool path_mtu_read(const struct rte_mbuf *m, unsigned l3, unsigned at, bool v6, struct path_mtu_report *r)
{
	return path_mtu_read_quote(m, l3, at, v6, r) && r->mtu >= (v6 ? PATH_MTU_MIN6 : PATH_MTU_MIN4) &&
	       r->mtu < UINT16_MAX;
}

bool path_mtu_quotes_tunnel(const struct rte_mbuf *m, unsigned l3, unsigned at, bool v6)
{
	struct path_mtu_report r;

	if (!path_mtu_read_quote(m, l3, at, v6, &r))
		return false;
	return (r.proto == IPPROTO_UDP ? encap_by_udp[r.port] : encap_by_proto[r.proto]) &&
	       tunnel_end_find(&r.destination);
}

static bool path_mtu_sends(const struct tunnel_way *w, const struct path_mtu_report *r)
{
	return ip_addr_eq(&w->source, &r->source) && w->encap->proto == r->proto &&
	       (r->proto != IPPROTO_UDP || encap_udp_port(w->encap) == r->port);
}

// The largest outer packet that the tunnels which may have sent the quoted packet send; 0: there is none.
static unsigned longest_sent(const struct path_mtu_report *r)
{
	const struct tunnel_end *end = tunnel_end_find(&r->destination);
	const struct tunnel_way *w;
	unsigned most = 0;

	for (w = end ? end->ways : NULL; w; w = w->next)
		if (path_mtu_sends(w, r))
			most = RTE_MAX(most, (unsigned)w->mtu);
	return most;
}

static struct learned *path_mtu_find(const struct ip_addr *remote)
{
	unsigned i;

	for (i = 0; i < n_learned; i++)
		if (ip_addr_eq(&learned[i].remote, remote))
			return &learned[i];
	return NULL;
}

const struct path_mtu *path_mtu_of(const struct ip_addr *remote)
{
	const struct learned *l = path_mtu_find(remote);

	return l ? &l->path : NULL;
}

static void path_mtu_learn(const struct path_mtu_report *r)
{
	struct learned *l = path_mtu_find(&r->destination);
	char remote[IP_TEXT], hop[IP_TEXT];

	if (l == NULL && n_learned == LEARNED_MAX)
		return;
	if (l == NULL)
		l = &learned[n_learned++];
	l->remote = r->destination;
	l->path = (struct path_mtu){.hop = r->hop,
				    .mtu = (uint16_t)r->mtu,
				    .until = path_mtu_clock() + PATH_MTU_SECONDS * rte_get_tsc_hz()};
	nexthop_underlay_changed();
	event_report(path_mtu_learned, ip_format_addr(&l->remote, remote),
		     "%s passes on packets of up to %u bytes on the way to this tunnel end",
		     ip_format_addr(&l->path.hop, hop), r->mtu);
}

static void path_mtu_punted(struct rte_mbuf *m)
{
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, meta(m)->l3);
	bool v6 = (ip[0] >> 4) == 6;
	unsigned at = meta(m)->l3 + (v6 ? 40u : (ip[0] & 15) * 4u), longest;
	struct path_mtu_report r;

	longest = path_mtu_read(m, meta(m)->l3, at, v6, &r) ? longest_sent(&r) : 0;
	if (longest == 0) {
		drop(m, path_mtu_no_tunnel);
		drop_packets(&m, 1);
		return;
	}
	if (r.mtu < longest) // else it is about a packet that was sent before the MTU was learned
		path_mtu_learn(&r);
	rte_pktmbuf_free(m);
}

void path_mtu_poll(void)
{
	uint64_t now = n_learned > 0 ? path_mtu_clock() : 0;
	char remote[IP_TEXT];
	unsigned i = 0;

	while (i < n_learned) {
		if (learned[i].path.until > now) {
			i++;
			continue;
		}
		event_report(path_mtu_expired, ip_format_addr(&learned[i].remote, remote),
			     "packets to this tunnel end are again as long as the fabric port allows");
		learned[i] = learned[--n_learned];
		nexthop_underlay_changed();
	}
}

void path_mtu_init(void)
{
	punt_register(PUNT_PATH_MTU, path_mtu_punted);
}
