// SPDX-License-Identifier: Apache-2.0
#include "head.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#define IP4 (uint16_t)sizeof(struct rte_ipv4_hdr)
#define IP6 (uint16_t)sizeof(struct rte_ipv6_hdr)
#define UDP (uint16_t)sizeof(struct rte_udp_hdr)

uint8_t pattern[FRAME_MAX + HEAD_MAX];

void pattern_init(void)
{
	uint32_t i;

	for (i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 167 + (i >> 8) * 59 + 13);
}

static uint16_t sum_of(const uint8_t *p, size_t n)
{
	return rte_raw_cksum(p, n);
}

static uint16_t add(uint32_t a, uint32_t b)
{
	a += b;
	return (uint16_t)((a & 0xffff) + (a >> 16));
}

static void put16(uint8_t *at, uint16_t v)
{
	memcpy(at, &v, sizeof(v));
}

static int refuse(struct error *err, const char *field, uint32_t value, const char *valid, const char *why)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	return error_set(err, EINVAL, field, text, valid, "%s", why);
}

int layout_parse(struct layout *l, const uint8_t *header, size_t n, uint32_t inner, uint32_t entropy, struct error *err)
{
	uint16_t ip, udp_sum;
	bool six;

	if (n < RTE_ETHER_HDR_LEN + IP4 + UDP || n > HEADER_MAX)
		return refuse(err, "streams.header", (uint32_t)n, "42 to 240 bytes", "has a wrong length");
	if (inner < RTE_ETHER_HDR_LEN || inner + IP4 + UDP > n)
		return refuse(err, "streams.inner_offset", inner, "the offset of an IP header in the header", "is outside of it");
	six = header[inner] >> 4 == 6;
	ip = six ? IP6 : IP4;
	if ((!six && header[inner] != 0x45) || inner + ip + UDP != n || header[inner + (six ? 6 : 9)] != IPPROTO_UDP)
		return refuse(err, "streams.inner_offset", inner,
			      "an IPv4 or IPv6 header without options, then UDP, the header's last",
			      "is not the innermost IP header");
	if (entropy != 0 && (entropy < RTE_ETHER_HDR_LEN + IP4 || entropy + UDP > inner))
		return refuse(err, "streams.entropy_offset", entropy, "0, or the offset of an outer UDP header",
			      "is no outer UDP header");
	*l = (struct layout){.size = (uint16_t)n, .inner = (uint16_t)inner, .entropy = (uint16_t)entropy, .ipv6 = six};
	l->source = (uint16_t)(inner + (six ? 20 : 12));
	l->destination = (uint16_t)(inner + ip - 4);
	l->ip_sum = six ? 0 : (uint16_t)(inner + 10);
	memcpy(&udp_sum, header + inner + ip + 6, sizeof(udp_sum));
	l->udp_sum = udp_sum != 0 ? (uint16_t)(inner + ip + 6) : 0;
	return 0;
}

// Sum of the innermost UDP datagram and its pseudo header. The probe adds nothing (probe.h).
static uint16_t udp_base(const struct layout *l, const uint8_t *frame, uint16_t size)
{
	uint16_t udp = l->destination + 4, length = (uint16_t)(size - udp);
	const uint8_t *addresses = frame + l->inner + (l->ipv6 ? 8 : 12);
	uint16_t s = sum_of(addresses, udp - (size_t)(addresses - frame));

	s = add(s, rte_cpu_to_be_16(IPPROTO_UDP));
	s = add(s, rte_cpu_to_be_16(length));
	s = add(s, sum_of(frame + udp, UDP));
	return add(s, sum_of(frame + l->size + PROBE_SIZE, (size_t)(size - l->size - PROBE_SIZE)));
}

void head_build(struct head *h, const struct layout *l, const uint8_t *header, uint16_t size, const struct length_field *lengths,
		unsigned n_lengths, const uint16_t *ip4, unsigned n_ip4)
{
	uint8_t frame[FRAME_MAX];
	unsigned i;

	memcpy(frame, pattern, size);
	memcpy(frame, header, l->size);
	for (i = 0; i < n_lengths; i++)
		put16(frame + lengths[i].offset, rte_cpu_to_be_16((uint16_t)(size - lengths[i].minus)));
	memset(frame + l->source, 0, 4); // what flows vary counts as zero
	memset(frame + l->destination, 0, 8);
	for (i = 0; i < n_ip4; i++) {
		put16(frame + ip4[i] + 10, 0);
		put16(frame + ip4[i] + 10, (uint16_t)~sum_of(frame + ip4[i], (size_t)(frame[ip4[i]] & 0xf) * 4));
	}
	if (l->ip_sum) {
		put16(frame + l->ip_sum, 0);
		h->ip_sum = sum_of(frame + l->inner, IP4);
	}
	if (l->udp_sum) {
		put16(frame + l->udp_sum, 0);
		h->udp_sum = udp_base(l, frame, size);
	}
	h->size = size;
	memcpy(h->bytes, pattern, sizeof(h->bytes));
	memcpy(h->bytes, frame, RTE_MIN(size, (uint16_t)sizeof(h->bytes)));
}
