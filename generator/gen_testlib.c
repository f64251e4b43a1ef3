// SPDX-License-Identifier: Apache-2.0
// Builders of headers and messages, and a parser of frames.
#include "gen_testlib.h"

#include <stdio.h>
#include <string.h>

#define VXLAN 4789
#define MPLS 6635

static void append(struct test_header *h, const void *bytes, uint16_t n)
{
	memcpy(h->bytes + h->n, bytes, n);
	h->n += n;
}

static void write_be(uint8_t *at, uint32_t v, unsigned n)
{
	while (n-- > 0)
		*at++ = (uint8_t)(v >> 8 * n);
}

static void length(struct test_header *h, uint16_t offset, uint16_t minus)
{
	h->lengths[h->n_lengths++] = (struct length_field){.offset = h->n + offset, .minus = minus};
}

void header_ether(struct test_header *h, uint16_t type)
{
	uint8_t b[14] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};

	write_be(b + 12, type, 2);
	append(h, b, sizeof(b));
}

void header_ip(struct test_header *h, bool ipv6, uint8_t proto)
{
	uint8_t four[20] = {0x45, [8] = 64, [9] = proto, [12] = 10, 0, 0, 1, 10, 1, 0, 0};
	uint8_t six[40] = {0x60, [6] = proto, 64, 0x20, 1, 0xd, 0xb8, [23] = 1, [24] = 0x20, 1, 0xd, 0xb8, [39] = 2};

	h->inner = h->n;
	if (ipv6) {
		length(h, 4, (uint16_t)(h->n + 40));
		append(h, six, sizeof(six));
		return;
	}
	length(h, 2, h->n);
	h->ip4[h->n_ip4++] = h->n;
	append(h, four, sizeof(four));
}

void header_udp(struct test_header *h, uint16_t destination, uint16_t sum)
{
	uint8_t b[8] = {0};

	write_be(b, 10000, 2);
	write_be(b + 2, destination, 2);
	write_be(b + 6, sum, 2);
	length(h, 4, h->n);
	if (destination == VXLAN || destination == MPLS)
		h->entropy = h->n;
	append(h, b, sizeof(b));
}

void header_tcp_syn(struct test_header *h)
{
	uint8_t b[20] = {[12] = 0x50, [13] = 2};

	append(h, b, sizeof(b));
}

void header_vxlan(struct test_header *h, uint32_t vni)
{
	uint8_t b[8] = {8};

	write_be(b + 4, vni << 8, 4);
	append(h, b, sizeof(b));
}

void header_gre(struct test_header *h)
{
	append(h, (const uint8_t[]){0, 0, 0x88, 0x47}, 4);
}

void header_mpls(struct test_header *h, uint32_t label)
{
	uint8_t b[4];

	write_be(b, label << 12 | 0x140, 4); // bottom of the stack, TTL 64
	append(h, b, sizeof(b));
}

static void packet(struct test_header *h, bool ipv6, uint16_t sum)
{
	header_ip(h, ipv6, 17);
	header_udp(h, 2000, sum);
}

struct test_header header_plain(bool ipv6, uint16_t sum)
{
	struct test_header h = {0};

	header_ether(&h, ipv6 ? 0x86dd : 0x800);
	packet(&h, ipv6, sum);
	return h;
}

struct test_header header_in_vxlan(bool ipv6, uint16_t sum)
{
	struct test_header h = {0};

	header_ether(&h, 0x800);
	header_ip(&h, false, 17);
	header_udp(&h, VXLAN, 0);
	header_vxlan(&h, 100);
	header_ether(&h, ipv6 ? 0x86dd : 0x800);
	packet(&h, ipv6, sum);
	return h;
}

// --- the parser ---

static uint32_t be(const uint8_t *p, unsigned n)
{
	uint32_t v = 0;

	while (n-- > 0)
		v = v << 8 | *p++;
	return v;
}

static uint32_t sum_up(uint32_t s, const uint8_t *p, uint32_t n)
{
	for (; n > 1; p += 2, n -= 2)
		s += be(p, 2);
	s += n ? *p << 8 : 0;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return s;
}

static const char *ip_wrong(const uint8_t *p, uint32_t n);

static const char *ether_wrong(const uint8_t *p, uint32_t n)
{
	uint32_t type = n < 14 ? 0 : be(p + 12, 2);

	if (type != 0x800 && type != 0x86dd)
		return "Ethernet type";
	if ((type == 0x800) != (p[14] >> 4 == 4))
		return "IP version";
	return ip_wrong(p + 14, n - 14);
}

static const char *mpls_wrong(const uint8_t *p, uint32_t n)
{
	return n > 4 && be(p, 4) & 0x100 ? ip_wrong(p + 4, n - 4) : "MPLS stack";
}

// addresses: both, of n_addresses bytes.
static const char *udp_wrong(const uint8_t *p, uint32_t n, const uint8_t *addresses, uint32_t n_addresses)
{
	if (n < 8 || be(p + 4, 2) != n)
		return "UDP length";
	if (be(p + 6, 2) != 0 && sum_up(sum_up(17 + n, addresses, n_addresses), p, n) != 0xffff)
		return "UDP checksum";
	if (be(p + 2, 2) == VXLAN)
		return ether_wrong(p + 16, n - 16);
	return be(p + 2, 2) == MPLS ? mpls_wrong(p + 8, n - 8) : NULL;
}

static const char *carried_wrong(uint8_t proto, const uint8_t *p, uint32_t n, const uint8_t *addresses,
				 uint32_t n_addresses)
{
	if (proto == 47)
		return be(p, 4) == 0x8847 ? mpls_wrong(p + 4, n - 4) : "GRE";
	if (proto == 6)
		return n >= 20 && p[12] == 0x50 && p[13] == 2 ? NULL : "TCP";
	return proto == 17 ? udp_wrong(p, n, addresses, n_addresses) : "IP protocol";
}

static const char *ip_wrong(const uint8_t *p, uint32_t n)
{
	if (p[0] >> 4 == 6) {
		if (n < 40 || be(p + 4, 2) != n - 40)
			return "IPv6 length";
		return carried_wrong(p[6], p + 40, n - 40, p + 8, 32);
	}
	if (n < 20 || be(p + 2, 2) != n)
		return "IPv4 length";
	if (sum_up(0, p, 20) != 0xffff)
		return "IPv4 checksum";
	return carried_wrong(p[9], p + 20, n - 20, p + 12, 8);
}

const char *frame_wrong(const uint8_t *frame, uint32_t n)
{
	return ether_wrong(frame, n);
}

// --- messages ---

struct message {
	struct test_header header;
	Corelane__V1__GeneratorStream stream;
	Corelane__V1__GeneratorFlows flows;
	Corelane__V1__GeneratorLength lengths[8], *length_list[8];
	uint32_t ip4[4], sizes[16];
};

Corelane__V1__GeneratorStream *message_stream(const struct test_header *h, uint32_t size)
{
	static struct message messages[16];
	static unsigned next;
	struct message *m = &messages[next++ % 16];
	unsigned i;

	m->header = *h;
	corelane__v1__generator_stream__init(&m->stream);
	corelane__v1__generator_flows__init(&m->flows);
	m->stream.name = m->stream.tx_port = (char *)"a";
	m->stream.rx_port = (char *)"b";
	m->stream.header = (ProtobufCBinaryData){.data = m->header.bytes, .len = h->n};
	m->stream.inner_offset = h->inner;
	m->stream.entropy_offset = h->entropy;
	m->stream.lengths = m->length_list;
	m->stream.ip4_offsets = m->ip4;
	m->stream.sizes = m->sizes;
	m->stream.flows = &m->flows;
	for (i = 0; i < h->n_lengths; i++) {
		corelane__v1__generator_length__init(&m->lengths[i]);
		m->lengths[i].offset = h->lengths[i].offset;
		m->lengths[i].minus = h->lengths[i].minus;
		m->length_list[i] = &m->lengths[i];
	}
	for (i = 0; i < h->n_ip4; i++)
		m->ip4[i] = h->ip4[i];
	m->stream.n_lengths = h->n_lengths;
	m->stream.n_ip4_offsets = h->n_ip4;
	m->sizes[0] = size;
	m->stream.n_sizes = 1;
	return &m->stream;
}

Corelane__V1__GeneratorPort *message_port(const char *name, const char *socket)
{
	static Corelane__V1__GeneratorMemif memifs[16];
	static Corelane__V1__GeneratorPort ports[16];
	static char texts[16][2][128];
	static unsigned next;
	unsigned i = next++ % 16;

	corelane__v1__generator_port__init(&ports[i]);
	corelane__v1__generator_memif__init(&memifs[i]);
	snprintf(texts[i][0], sizeof(texts[i][0]), "%s", name);
	snprintf(texts[i][1], sizeof(texts[i][1]), "%s", socket);
	ports[i].name = texts[i][0];
	ports[i].device_case = CORELANE__V1__GENERATOR_PORT__DEVICE_MEMIF;
	ports[i].memif = &memifs[i];
	memifs[i].socket = texts[i][1];
	return &ports[i];
}
