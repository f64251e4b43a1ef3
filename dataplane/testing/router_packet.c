// SPDX-License-Identifier: Apache-2.0
// The packets of router_fixture.h.
#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <rte_debug.h>

#include "testing/router_fixture.h"

static int nibble(char c)
{
	if (!isxdigit((unsigned char)c))
		rte_panic("'%c' is not a hex digit\n", c);
	return isdigit((unsigned char)c) ? c - '0' : tolower(c) - 'a' + 10;
}

// The next byte of the text: -1 = end, 256 = any.
static int next_byte(const char **s)
{
	int v;

	while (**s == ' ')
		(*s)++;
	if (**s == '\0')
		return -1;
	v = **s == '.' ? 256 : nibble(**s) << 4 | nibble((*s)[1]);
	*s += 2;
	return v;
}

struct rte_mbuf *router_hex(const char *hex)
{
	struct rte_mbuf *m = node_test_packet("", 0);
	int v;

	while ((v = next_byte(&hex)) >= 0)
		*(uint8_t *)rte_pktmbuf_append(m, 1) = (uint8_t)v;
	meta(m)->bridge = UINT16_MAX;
	return m;
}

bool router_equal(struct rte_mbuf *m, const char *hex)
{
	const uint8_t *data = rte_pktmbuf_mtod(m, const uint8_t *);
	unsigned at = 0;
	int v;

	for (; (v = next_byte(&hex)) >= 0; at++) {
		if (at < m->data_len && (v == 256 || data[at] == v))
			continue;
		fprintf(stderr, "byte %u of %u: wanted %02x, got %02x; then wanted: %s\n", at, m->data_len, v,
			at < m->data_len ? data[at] : 0, hex);
		rte_pktmbuf_dump(stderr, m, m->data_len);
		return false;
	}
	if (at == m->pkt_len && m->pkt_len == m->data_len)
		return true;
	fprintf(stderr, "wanted %u bytes, got %u\n", at, m->pkt_len);
	rte_pktmbuf_dump(stderr, m, m->data_len);
	return false;
}

uint16_t router_sum(const void *data, unsigned len, uint32_t start)
{
	const uint8_t *p = data;
	uint32_t sum = start;
	unsigned i;

	for (i = 0; i < len; i++)
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	while (sum > 0xffff)
		sum = (sum >> 16) + (sum & 0xffff);
	return (uint16_t)sum;
}

void router_checksum4(struct rte_mbuf *m, unsigned at)
{
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, at);
	uint16_t sum;

	ip[10] = ip[11] = 0;
	sum = (uint16_t)~router_sum(ip, (ip[0] & 15) * 4u, 0);
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
}

bool router_l4_ok(struct rte_mbuf *m, unsigned at)
{
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, at);
	bool v6 = (ip[0] >> 4) == 6;
	unsigned hlen = v6 ? 40 : (ip[0] & 15) * 4u, len = m->data_len - at - hlen;
	uint8_t proto = v6 ? ip[6] : ip[9];
	uint32_t pseudo = router_sum(ip + (v6 ? 8 : 12), v6 ? 32 : 8, proto + len);

	return router_sum(ip + hlen, len, proto == IPPROTO_ICMP ? 0 : pseudo) == 0xffff;
}

static void fill_ip4(uint8_t *ip, const struct packet *p, unsigned len)
{
	struct ip_addr src = router_addr(p->src), dst = router_addr(p->dst);

	ip[0] = 0x45;
	ip[1] = p->tos;
	ip[2] = (uint8_t)(len >> 8);
	ip[3] = (uint8_t)len;
	ip[4] = (uint8_t)(p->id >> 8);
	ip[5] = (uint8_t)p->id;
	ip[6] = (uint8_t)(p->frag >> 8);
	ip[7] = (uint8_t)p->frag;
	ip[8] = p->ttl ? p->ttl : 64;
	ip[9] = p->proto ? p->proto : IPPROTO_UDP;
	memcpy(ip + 12, src.bytes, 4);
	memcpy(ip + 16, dst.bytes, 4);
}

static void fill_ip6(uint8_t *ip, const struct packet *p, unsigned len)
{
	struct ip_addr src = router_addr(p->src), dst = router_addr(p->dst);

	ip[0] = (uint8_t)(0x60 | p->tos >> 4);
	ip[1] = (uint8_t)(p->tos << 4);
	ip[4] = (uint8_t)((len - 40) >> 8);
	ip[5] = (uint8_t)(len - 40);
	ip[6] = p->proto ? p->proto : IPPROTO_UDP;
	ip[7] = p->ttl ? p->ttl : 64;
	memcpy(ip + 8, src.bytes, 16);
	memcpy(ip + 24, dst.bytes, 16);
}

// Appends a packet to the mbuf's data.
static void append_packet(struct rte_mbuf *m, const struct packet *p)
{
	const uint16_t sport = p->sport ? p->sport : 1000, dport = p->dport ? p->dport : 2000;
	const uint8_t ports[] = {(uint8_t)(sport >> 8), (uint8_t)sport, (uint8_t)(dport >> 8), (uint8_t)dport};
	bool v6 = strchr(p->src, ':') != NULL;
	unsigned i, hlen = v6 ? 40 : 20, payload = p->payload ? p->payload : 26, at = m->data_len;
	uint8_t *ip = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(hlen + payload));

	if (ip == NULL)
		rte_panic("%u bytes do not fit into a packet\n", hlen + payload);
	memset(ip, 0, hlen);
	for (i = 0; i < payload; i++)
		ip[hlen + i] = (uint8_t)i;
	if (p->proto == 0 || p->proto == IPPROTO_UDP) {
		memcpy(ip + hlen, ports, sizeof(ports));
		ip[hlen + 4] = (uint8_t)(payload >> 8);
		ip[hlen + 5] = (uint8_t)payload;
		ip[hlen + 6] = ip[hlen + 7] = 0;
	}
	if (v6) {
		fill_ip6(ip, p, hlen + payload);
	} else {
		fill_ip4(ip, p, hlen + payload);
		router_checksum4(m, at);
	}
}

struct rte_mbuf *router_packet(uint16_t vrf, const struct packet *p)
{
	struct rte_mbuf *m = router_hex("");

	append_packet(m, p);
	meta(m)->vrf = vrf;
	return m;
}

struct rte_mbuf *router_frame(uint16_t port, const char *dst, const char *src, const struct packet *p)
{
	struct rte_mbuf *m = router_hex("");
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)rte_pktmbuf_append(m, sizeof(*eth));

	eth->dst_addr = router_mac(dst);
	eth->src_addr = router_mac(src);
	eth->ether_type = strchr(p->src, ':') ? RTE_BE16(RTE_ETHER_TYPE_IPV6) : RTE_BE16(RTE_ETHER_TYPE_IPV4);
	append_packet(m, p);
	m->port = port;
	return m;
}
