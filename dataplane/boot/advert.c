// SPDX-License-Identifier: Apache-2.0
// Router advertisements (RFC 4861) for the one guest of a port: when it asks, and every few minutes. An advertisement
// is made of the port's configuration alone.
#include <string.h>

#include <rte_cycles.h>
#include <rte_random.h>

#include "boot/boot_private.h"
#include "boot/dns_name.h"
#include "neighbor/answer.h"
#include "neighbor/frame.h"
#include "neighbor/nd_packet.h"
#include "neighbor/neighbor.h"

// RFC 4861, 6.2.1 and 10; lifetimes in seconds.
#define INTERVAL_LEAST 200
#define INTERVAL_MOST 600
#define INTERVAL_FIRST 16
#define FIRST_ADVERTS 3
#define ROUTER_LIFETIME (3 * INTERVAL_MOST)
#define PREFIX_VALID 86400
#define PREFIX_PREFERRED 14400

#define TURN_ADVERTS 64 // that a turn sends at most
#define LONGEST 1500    // bytes of the IP packet

enum advert_option {
	ADVERT_PREFIX = 3,
	ADVERT_MTU = 5,
	ADVERT_ROUTE = 24, // RFC 4191
	ADVERT_DNS = 25,   // RFC 8106
	ADVERT_DOMAIN = 31,
};
enum { ADVERT_MANAGED = 0x80, ADVERT_OTHER = 0x40 };      // flags of an advertisement
enum { ADVERT_ON_LINK = 0x80, ADVERT_AUTONOMOUS = 0x40 }; // flags of a prefix

struct advert_header {
	uint8_t type, code;
	rte_be16_t checksum;
	uint8_t hop_limit, flags;
	rte_be16_t lifetime;
	rte_be32_t reachable, retransmit;
} __rte_packed __rte_aligned(2);

struct advert_writer {
	uint8_t *at, *end;
};

static struct {
	uint64_t due;   // TSC; 0: never
	unsigned first; // that are still sent soon after each other
} timers[PORT_MAX];     // master thread only

// --- An advertisement. ---

// Appends an option of len bytes, a multiple of eight with its type and length. NULL: it does not fit, and is left out.
static uint8_t *advert_option(struct advert_writer *w, enum advert_option type, size_t len)
{
	uint8_t *o = w->at;

	if ((size_t)(w->end - w->at) < len)
		return NULL;
	memset(o, 0, len);
	o[0] = (uint8_t)type;
	o[1] = (uint8_t)(len / 8);
	w->at += len;
	return o;
}

static void advert_number(uint8_t *at, uint32_t value)
{
	rte_be32_t be = rte_cpu_to_be_32(value);

	memcpy(at, &be, sizeof(be));
}

static void advert_prefixes(struct advert_writer *w, const struct port_config *cfg, bool end)
{
	bool on_link = cfg->bridge != UINT16_MAX || neighbor_config(cfg)->proxy_arp, autonomous;
	struct ip_prefix list[PORT_MAX_ADDRS];
	unsigned i, n = boot_prefixes6(cfg, list);
	uint8_t *o;

	for (i = 0; i < n; i++) {
		autonomous = boot_config(cfg)->slaac && list[i].len == BOOT_SLAAC_LEN;
		o = on_link || autonomous ? advert_option(w, ADVERT_PREFIX, 32) : NULL;
		if (o == NULL)
			continue;
		o[2] = list[i].len;
		o[3] = (uint8_t)((on_link ? ADVERT_ON_LINK : 0) | (autonomous ? ADVERT_AUTONOMOUS : 0));
		advert_number(o + 4, PREFIX_VALID);
		advert_number(o + 8, end ? 0 : PREFIX_PREFERRED);
		memcpy(o + 16, list[i].addr.bytes, 16);
	}
}

static void advert_routes(struct advert_writer *w, const struct boot_config *b, uint32_t lifetime)
{
	const struct ip_prefix *to;
	unsigned i, words;
	uint8_t *o;

	for (i = 0; i < b->n_routes; i++) {
		to = &b->routes[i].to;
		words = to->len > 64 ? 2 : to->len > 0 ? 1 : 0; // of the prefix
		o = to->addr.family == IPV6 ? advert_option(w, ADVERT_ROUTE, 8 + words * 8) : NULL;
		if (o == NULL)
			continue;
		o[2] = to->len;
		advert_number(o + 4, lifetime);
		memcpy(o + 8, to->addr.bytes, words * 8);
	}
}

static void advert_names(struct advert_writer *w, const struct boot_config *b, uint32_t lifetime)
{
	uint8_t labels[DNS_NAME_LONGEST], *o;
	unsigned i, n = 0;
	size_t len = dns_labels(b->domain, labels);

	for (i = 0; i < b->n_dns; i++)
		n += b->dns[i].family == IPV6;
	o = n > 0 ? advert_option(w, ADVERT_DNS, 8 + n * 16) : NULL;
	if (o) {
		advert_number(o + 4, lifetime);
		o += 8;
		for (i = 0; i < b->n_dns; i++) {
			if (b->dns[i].family != IPV6)
				continue;
			memcpy(o, b->dns[i].bytes, 16);
			o += 16;
		}
	}
	o = len > 0 ? advert_option(w, ADVERT_DOMAIN, RTE_ALIGN_CEIL(8 + len + 1, 8)) : NULL;
	if (o) {
		advert_number(o + 4, lifetime);
		memcpy(o + 8, labels, len);
	}
}

// Managed: DHCPv6 has the guest's address. Other: it has the rest of its configuration.
static uint8_t advert_flags(const struct port_config *cfg)
{
	const struct boot_config *b = boot_config(cfg);
	struct boot_lease lease;

	if (!b->dhcp6)
		return 0;
	boot_lease_of(cfg, IPV6, &lease);
	return lease.addr.addr.family && !b->slaac ? ADVERT_MANAGED | ADVERT_OTHER : ADVERT_OTHER;
}

// Writes the options behind the header h, the most important ones first. Returns the bytes of the whole message.
static unsigned advert_fill(struct advert_header *h, unsigned room, const struct port_config *cfg,
			    const struct rte_ether_addr *mac, const uint8_t own[16], bool end)
{
	struct advert_writer w = {(uint8_t *)(h + 1), (uint8_t *)h + room};
	uint8_t router[16], *o;
	bool routes = boot_router6(cfg, mac, router); // or else the guest is told the rest

	*h = (struct advert_header){.type = ND_ROUTER_ADVERT, .hop_limit = 64, .flags = advert_flags(cfg)};
	h->lifetime = rte_cpu_to_be_16(routes && !end ? ROUTER_LIFETIME : 0);
	o = memcmp(router, own, 16) == 0 ? advert_option(&w, (enum advert_option)ND_OPT_SOURCE_MAC, 8) : NULL;
	if (o)
		memcpy(o + 2, mac, sizeof(*mac));
	o = advert_option(&w, ADVERT_MTU, 8);
	if (o)
		advert_number(o + 4, cfg->mtu);
	advert_prefixes(&w, cfg, end);
	advert_routes(&w, boot_config(cfg), end ? 0 : ROUTER_LIFETIME);
	advert_names(&w, boot_config(cfg), end ? 0 : ROUTER_LIFETIME);
	return (unsigned)(w.at - (uint8_t *)h);
}

// to NULL: to all nodes of the link, which is the guest.
static void advert_send(const struct port *p, const struct port_config *cfg, const struct nd_packet *to, bool end)
{
	static const struct rte_ether_addr all_mac = {{0x33, 0x33, 0, 0, 0, 1}};
	static const uint8_t all[16] = {0xff, 0x02, [15] = 1};
	const struct rte_ether_addr *mac = &port_fwds[p->id]->mac;
	uint8_t own[16], message[LONGEST] __rte_aligned(8);
	struct advert_header *h = (struct advert_header *)message;
	struct rte_ipv6_hdr *ip;
	struct rte_mbuf *m;
	unsigned len;

	answer_link_local(mac, own);
	len = advert_fill(h, RTE_MIN(cfg->mtu, LONGEST) - (unsigned)sizeof(*ip), cfg, mac, own, end);
	m = frame_new(p, to ? &to->eth->src_addr : &all_mac, RTE_ETHER_TYPE_IPV6, (unsigned)sizeof(*ip) + len,
		      (void **)&ip);
	if (m == NULL)
		return; // the guest asks again, and the next one is never far
	boot_router6(cfg, mac, own);
	nd_fill_ip(ip, own, to ? to->ip->src_addr : all);
	ip->payload_len = rte_cpu_to_be_16((uint16_t)len);
	h->checksum = 0;
	memcpy(ip + 1, message, len);
	nd_fill_checksum(ip, (struct nd_header *)(ip + 1));
	frame_send(p, m);
	boot_port_counts(p->id)->adverts++;
}

void advert_receive(const struct port *p, struct rte_mbuf *m)
{
	struct nd_packet pkt;

	if (nd_parse(m, &pkt)) // boot_input has checked it
		advert_send(p, &p->cfg, nd_is_unspecified(pkt.ip->src_addr) ? NULL : &pkt, false);
}

// --- Unsolicited ones. ---

void advert_soon(const struct port *p)
{
	timers[p->id].due = boot_config(&p->cfg)->advert;
	timers[p->id].first = FIRST_ADVERTS;
}

void advert_link(struct port *p)
{
	if (p->up)
		advert_soon(p);
}

void advert_end(const struct port *p, const struct port_config *old)
{
	if (p->up)
		advert_send(p, old, NULL, true);
}

static uint64_t advert_pause(unsigned *first)
{
	if (*first == 0)
		return INTERVAL_LEAST + rte_rand_max(INTERVAL_MOST - INTERVAL_LEAST + 1);
	--*first;
	return INTERVAL_FIRST;
}

void boot_poll(void)
{
	static uint16_t at; // the turn that ends early is continued by the next one
	uint64_t now = rte_rdtsc();
	unsigned i, sent = 0;

	for (i = 0; i < PORT_MAX && sent < TURN_ADVERTS; i++, at = (uint16_t)((at + 1) % PORT_MAX)) {
		const struct port *p = timers[at].due && timers[at].due <= now ? port_get(at) : NULL;

		if (p == NULL || !p->up || !boot_config(&p->cfg)->advert)
			continue;
		timers[at].due = now + advert_pause(&timers[at].first) * rte_get_tsc_hz();
		advert_send(p, &p->cfg, NULL, false);
		sent++;
	}
}
