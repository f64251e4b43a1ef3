// SPDX-License-Identifier: Apache-2.0
// Checks headers and builds heads from them.
#include "head.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#define IP4 (uint16_t)sizeof(struct rte_ipv4_hdr)
#define IP6 (uint16_t)sizeof(struct rte_ipv6_hdr)
#define UDP (uint16_t)sizeof(struct rte_udp_hdr)
#define TCP (uint16_t)sizeof(struct rte_tcp_hdr)

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

static uint16_t head_add(uint32_t a, uint32_t b)
{
	a += b;
	return (uint16_t)((a & 0xffff) + (a >> 16));
}

static void head_write16(uint8_t *at, uint16_t v)
{
	memcpy(at, &v, sizeof(v));
}

static int head_refuse(struct error *err, const char *field, uint32_t value, const char *valid, const char *why)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	return error_set(err, EINVAL, field, text, valid, "%s", why);
}

static uint16_t get_be(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

// Finds the outer UDP header: it follows the first IP header, if that is not the innermost one.
static void find_outer(struct layout *l, const uint8_t *header, size_t n)
{
	size_t at = 12, udp;
	bool six;

	while (at + 6 < n && get_be(header + at) == RTE_ETHER_TYPE_VLAN)
		at += 4;
	six = get_be(header + at) == RTE_ETHER_TYPE_IPV6;
	udp = at + 2 + (six ? IP6 : IP4);
	if (udp + UDP > l->inner || (!six && header[at + 2] != 0x45) || header[at + 2 + (six ? 6 : 9)] != IPPROTO_UDP)
		return;
	l->outer_ipv6 = six;
	l->outer_udp = (uint16_t)udp;
	if (get_be(header + udp + 6) != 0)
		l->outer_sum = (uint16_t)(udp + 6);
}

static int parse_inner(struct layout *l, const uint8_t *header, size_t n, uint32_t inner, struct error *err)
{
	bool six, tcp;
	uint16_t ip;

	if (inner < RTE_ETHER_HDR_LEN || (size_t)inner + IP4 + UDP > n)
		return head_refuse(err, "stream.inner_offset", inner, "the offset of an IP header in the header",
				   "is outside the header");
	six = header[inner] >> 4 == 6;
	ip = six ? IP6 : IP4;
	tcp = header[inner + (six ? 6 : 9)] == IPPROTO_TCP;
	if ((!six && header[inner] != 0x45) || inner + ip + (tcp ? TCP : UDP) != n ||
	    (!tcp && header[inner + (six ? 6 : 9)] != IPPROTO_UDP))
		return head_refuse(err, "stream.inner_offset", inner,
				   "an IPv4 or IPv6 header without options, followed by UDP or TCP as the last header",
				   "is not the innermost IP header");
	*l = (struct layout){.size = (uint16_t)n, .inner = (uint16_t)inner, .ipv6 = six};
	l->source = (uint16_t)(inner + (six ? 20 : 12));
	l->destination = (uint16_t)(inner + ip - 4);
	l->ip_sum = six ? 0 : (uint16_t)(inner + 10);
	if (!tcp && get_be(header + inner + ip + 6) != 0)
		l->udp_sum = (uint16_t)(inner + ip + 6);
	return 0;
}

int layout_fixed(struct layout *l, size_t n, uint32_t entropy, struct error *err)
{
	if (entropy != 0)
		return head_refuse(err, "stream.entropy_offset", entropy, "0 with stream.fixed", "varies the header");
	*l = (struct layout){.size = (uint16_t)n, .fixed = true};
	l->source = (uint16_t)(n + 2); // a checksum 2 bytes before it, and addresses and ports from it on
	l->destination = (uint16_t)(l->source + 4);
	return 0;
}

int layout_parse(struct layout *l, const uint8_t *header, size_t n, uint32_t inner, uint32_t entropy, struct error *err)
{
	int ret = parse_inner(l, header, n, inner, err);

	if (ret < 0)
		return ret;
	find_outer(l, header, n);
	if (entropy != 0 && entropy != l->outer_udp)
		return head_refuse(err, "stream.entropy_offset", entropy, "0, or the offset of the outer UDP header",
				   "is not the offset of an outer UDP header");
	l->entropy = (uint16_t)entropy;
	if (l->outer_sum != 0 && (inner - l->outer_udp) % 2 != 0)
		return head_refuse(err, "stream.inner_offset", inner,
				   "an even distance to an outer UDP header with a checksum", "is at an odd distance");
	return 0;
}

int layout_source_macs(struct layout *l, struct error *err)
{
	if (l->fixed)
		return error_set(err, EINVAL, "stream.source_macs", "true", "false with stream.fixed",
				 "varies the header");
	l->mac = RTE_ETHER_ADDR_LEN + 2;
	return 0;
}

// Sum of a UDP datagram that extends to the end of the frame, with its pseudo header. Fields that are not known yet are
// zero.
static uint16_t udp_base(const uint8_t *frame, uint16_t udp, bool ipv6, uint16_t size)
{
	uint16_t n = ipv6 ? 32 : 8, length = (uint16_t)(size - udp), s = sum_of(frame + udp - n, n); // the addresses

	s = head_add(s, rte_cpu_to_be_16(IPPROTO_UDP));
	s = head_add(s, rte_cpu_to_be_16(length));
	return head_add(s, sum_of(frame + udp, length));
}

// Writes the parts of a frame that are the same for all flows. Fields of the flow and the probe are zero, so they add
// nothing to a sum.
static void lay_out(uint8_t *frame, const struct layout *l, const uint8_t *header, uint16_t size,
		    const struct length_field *lengths, unsigned n_lengths)
{
	unsigned i;

	memcpy(frame, pattern, size);
	memcpy(frame, header, l->size);
	memset(frame + l->size, 0, PROBE_SIZE);
	for (i = 0; i < n_lengths; i++)
		head_write16(frame + lengths[i].offset, rte_cpu_to_be_16((uint16_t)(size - lengths[i].minus)));
	memset(frame + l->source, 0, 4);
	memset(frame + l->destination, 0, 8);
	if (l->udp_sum)
		head_write16(frame + l->udp_sum, 0);
	if (l->outer_sum)
		head_write16(frame + l->outer_sum, 0);
	if (l->entropy)
		head_write16(frame + l->entropy, 0);
}

void head_build(struct head *h, const struct layout *l, const uint8_t *header, uint16_t size,
		const struct length_field *lengths, unsigned n_lengths, const uint16_t *ip4, unsigned n_ip4)
{
	uint8_t frame[FRAME_MAX];
	unsigned i;

	lay_out(frame, l, header, size, lengths, n_lengths);
	for (i = 0; i < n_ip4; i++) {
		head_write16(frame + ip4[i] + 10, 0);
		head_write16(frame + ip4[i] + 10, (uint16_t)~sum_of(frame + ip4[i], (size_t)(frame[ip4[i]] & 0xf) * 4));
	}
	if (l->ip_sum) {
		head_write16(frame + l->ip_sum, 0);
		h->ip_sum = sum_of(frame + l->inner, IP4);
	}
	if (l->udp_sum)
		h->udp_sum = udp_base(frame, l->destination + 4, l->ipv6, size);
	if (l->outer_sum)
		h->outer_sum = udp_base(frame, l->outer_udp, l->outer_ipv6, size);
	h->size = size;
	memcpy(h->bytes, pattern, sizeof(h->bytes));
	memcpy(h->bytes, frame, RTE_MIN(size, (uint16_t)sizeof(h->bytes)));
}
