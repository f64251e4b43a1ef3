// SPDX-License-Identifier: Apache-2.0
// A translated packet must be, byte for byte, the packet that a host with the other addresses would have sent: both are
// built here, with new checksums.
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flow/packet.h"
#include "flow/translate.h"
#include "testing/router_fixture.h"

#define SCTP 132
#define UDPLITE 136
#define MAX 2048

struct shape {
	bool options;        // IPv4: four bytes of them
	uint8_t ext;         // IPv6: 1 hop-by-hop, 2 destination options, 4 atomic fragment
	uint8_t icmp_type;   // echo request or reply
	bool no_sum;         // UDP without checksum
	unsigned len;        // of the transport header and its payload
	unsigned l3;         // offset of the IP header
	const uint8_t *data; // fills the transport's bytes
};

struct bytes {
	uint8_t b[MAX];
	unsigned n, l3, l4;
};

static uint64_t seed;
static uint8_t noise[MAX];

static uint32_t pick(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

static void write_be16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static bool icmp(const struct flow_key *k)
{
	return k->proto == IPPROTO_ICMP || k->proto == IPPROTO_ICMPV6;
}

static int sum_at(uint8_t proto)
{
	switch (proto) {
	case IPPROTO_TCP:
		return 16;
	case IPPROTO_UDP:
	case UDPLITE:
		return 6;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return 2;
	}
	return -1;
}

static void set_transport_sum(const struct flow_key *k, const struct shape *s, uint8_t *l4)
{
	unsigned words = k->family == 4 ? 2 : 8, i;
	uint8_t pseudo[40] = {0};
	int at = sum_at(k->proto);
	uint16_t sum;

	if (at < 0)
		return;
	write_be16(l4 + at, 0);
	if (s->no_sum)
		return;
	for (i = 0; i < words; i++)
		memcpy(pseudo + i * 4, (const uint8_t *)k->addr + i * 4, 4);
	write_be16(pseudo + 34, k->proto);
	write_be16(pseudo + 38, s->len);
	sum = k->proto == IPPROTO_ICMP ? 0 : router_sum(pseudo, sizeof(pseudo), 0);
	sum = (uint16_t)~router_sum(l4, s->len, sum);
	write_be16(l4 + at, k->proto == IPPROTO_UDP && sum == 0 ? 0xffff : sum);
}

static unsigned build_ip4(const struct flow_key *k, const struct shape *s, uint8_t *ip)
{
	unsigned hlen = s->options ? 24 : 20;

	memcpy(ip, noise, hlen);
	ip[0] = (uint8_t)(0x40 | hlen / 4);
	write_be16(ip + 2, hlen + s->len);
	write_be16(ip + 6, 0);
	ip[9] = k->proto;
	memcpy(ip + 12, &k->src4, 4);
	memcpy(ip + 16, &k->dst4, 4);
	write_be16(ip + 10, 0);
	write_be16(ip + 10, (uint16_t)~router_sum(ip, hlen, 0));
	return hlen;
}

static unsigned build_ip6(const struct flow_key *k, const struct shape *s, uint8_t *ip)
{
	static const uint8_t ids[3] = {IPPROTO_HOPOPTS, IPPROTO_DSTOPTS, IPPROTO_FRAGMENT};
	uint8_t *next = ip + 6;
	unsigned i, n = 40;

	memcpy(ip, noise, 40);
	ip[0] = 0x60;
	memcpy(ip + 8, k->src6, 16);
	memcpy(ip + 24, k->dst6, 16);
	for (i = 0; i < 3; i++) {
		if (!(s->ext >> i & 1))
			continue;
		*next = ids[i];
		next = ip + n;
		memset(ip + n, 0, 16);
		ip[n + 1] = i == 1; // the second one is 16 bytes long
		n += i == 1 ? 16 : 8;
	}
	*next = k->proto;
	write_be16(ip + 4, n - 40 + s->len);
	return n;
}

static struct bytes build(const struct flow_key *k, const struct shape *s)
{
	struct bytes p = {.l3 = s->l3};
	uint8_t *l4;

	memcpy(p.b, noise, s->l3);
	p.l4 = s->l3 + (k->family == 4 ? build_ip4(k, s, p.b + s->l3) : build_ip6(k, s, p.b + s->l3));
	l4 = p.b + p.l4;
	memcpy(l4, s->data, s->len);
	if (icmp(k)) {
		l4[0] = s->icmp_type;
		l4[1] = 0;
		l4[7] = 1; // a checksum of zero has two forms
		memcpy(l4 + 4, &k->src_port, 2);
	} else if (k->proto == IPPROTO_TCP || k->proto == IPPROTO_UDP || k->proto == SCTP) {
		memcpy(l4, &k->src_port, 2);
		memcpy(l4 + 2, &k->dst_port, 2);
	}
	if (k->proto == IPPROTO_UDP)
		write_be16(l4 + 4, s->len);
	set_transport_sum(k, s, l4);
	p.n = p.l4 + s->len;
	return p;
}

static struct rte_mbuf *packet(const struct bytes *p)
{
	struct rte_mbuf *m = node_test_packet(p->b, p->n);

	meta(m)->l3 = (uint8_t)p->l3;
	return m;
}

static bool same(struct rte_mbuf *m, const struct bytes *want)
{
	const uint8_t *got = rte_pktmbuf_mtod(m, const uint8_t *);
	unsigned i;

	for (i = 0; i < want->n; i++) {
		if (got[i] == want->b[i])
			continue;
		print_message("byte %u of %u (IP at %u, then %u): %02x, wanted %02x\n", i, want->n, want->l3, want->l4,
			      got[i], want->b[i]);
		return false;
	}
	return m->data_len == want->n;
}

static void assert_becomes(const struct bytes *from, const struct flow *f, unsigned dir, const struct bytes *to)
{
	struct rte_mbuf *m = packet(from);

	assert_true(flow_translate(m, f, dir));
	assert_true(same(m, to));
	rte_pktmbuf_free(m);
}

// The parser of flows and the translation skip the same extension headers: up to 8.
static void number_of_extension_headers(void **state)
{
	struct flow_key from = {.family = 6, .proto = IPPROTO_UDP, .src_port = 1, .dst_port = 2}, to = from;
	unsigned n;

	from.addr[0] = to.addr[0] = 0xfd;
	to.src_port = 3;
	for (n = 0; n <= 10; n++) {
		struct flow f = {.dir[0].key = from, .dir[1].key = flow_key_reverse(&to)};
		struct shape s = {.len = 32, .data = noise};
		struct bytes p = build(&from, &s);
		struct flow_packet parsed;
		struct rte_mbuf *m;
		unsigned i;

		memmove(p.b + 40 + n * 8, p.b + 40, s.len);
		memset(p.b + 40, 0, n * 8);
		for (i = 0; i < n; i++)
			p.b[i ? 40 + (i - 1) * 8 : 6] = IPPROTO_DSTOPTS;
		p.b[n ? 40 + (n - 1) * 8 : 6] = IPPROTO_UDP;
		p.n += n * 8;
		m = packet(&p);
		flow_parse(m, 0, 0, &parsed);
		assert_int_equal(parsed.kind, n <= 8 ? FLOW_PACKET : FLOW_TRUNCATED);
		assert_int_equal(flow_translate(m, &f, 0), n <= 8);
		if (n <= 8)
			assert_int_equal(parsed.l4, 40 + n * 8);
		rte_pktmbuf_free(m);
	}
}

static void random_bytes(void *p, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		((uint8_t *)p)[i] = (uint8_t)pick(256);
	if (pick(8) == 0) // checksums that become the two zeroes
		memset(p, pick(2) ? 0xff : 0, n);
}

static struct flow_key random_key(uint8_t family, uint8_t proto)
{
	struct flow_key k = {.family = family, .proto = proto};

	random_bytes(family == 4 ? (void *)&k.src4 : k.src6, family == 4 ? 4 : 16);
	random_bytes(family == 4 ? (void *)&k.dst4 : k.dst6, family == 4 ? 4 : 16);
	random_bytes(&k.src_port, 2);
	random_bytes(&k.dst_port, 2);
	if (icmp(&k))
		k.dst_port = k.src_port;
	return k;
}

// A flow of which the source, the destination or both change; protocols without ports keep theirs.
static struct flow random_flow(uint8_t family, uint8_t proto)
{
	struct flow f = {0};
	struct flow_key in = random_key(family, proto), out = random_key(family, proto);
	unsigned keep = pick(3);

	if (proto == SCTP || proto == UDPLITE)
		out.src_port = in.src_port, out.dst_port = in.dst_port;
	if (keep == 1 || keep == 2) {
		unsigned n = family == 4 ? 4 : 16;
		uint8_t *o = family == 4 ? (uint8_t *)&out.src4 : out.src6,
			*i = family == 4 ? (uint8_t *)&in.src4 : in.src6;

		memcpy(o + (keep - 1) * n, i + (keep - 1) * n, n);
		if (keep == 1 && !icmp(&in))
			out.src_port = in.src_port;
		if (keep == 2 && !icmp(&in))
			out.dst_port = in.dst_port;
	}
	f.dir[0].key = in;
	f.dir[1].key = flow_key_reverse(&out);
	return f;
}

static uint8_t random_proto(uint8_t family)
{
	const uint8_t protos[] = {IPPROTO_TCP, IPPROTO_UDP, family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6,
				  SCTP,        UDPLITE,     IPPROTO_GRE};

	return protos[pick(3) ? pick(3) : pick(6)];
}

static struct shape random_shape(const struct flow_key *k)
{
	struct shape s = {
		.options = pick(4) == 0, .ext = pick(3) ? 0 : (uint8_t)pick(8), .l3 = pick(2) ? 14 : 0, .data = noise};

	s.len = (k->proto == IPPROTO_TCP ? 20 : 8) + pick(pick(2) ? 40 : 1200);
	s.no_sum = k->proto == IPPROTO_UDP && pick(4) == 0;
	s.icmp_type = k->family == 4 ? (pick(2) ? 8 : 0) : 128 + (uint8_t)pick(2);
	return s;
}

static struct flow_key leaves(const struct flow *f, unsigned dir)
{
	return flow_key_reverse(&f->dir[!dir].key);
}

static void packets(void **state)
{
	unsigned i, dir;

	for (i = 0; i < 200000; i++) {
		uint8_t family = pick(2) ? 4 : 6;
		struct flow f = random_flow(family, random_proto(family));
		struct shape s = random_shape(&f.dir[0].key);

		random_bytes(noise, 64);
		for (dir = 0; dir < 2; dir++) {
			struct flow_key out = leaves(&f, dir);
			struct bytes from = build(&f.dir[dir].key, &s), to = build(&out, &s);

			assert_becomes(&from, &f, dir, &to);
		}
	}
}

// --- Fragments: of a whole packet, cut where its transport header is complete. ---

static struct bytes cut(const struct bytes *whole, const struct flow_key *k, unsigned from, unsigned to)
{
	struct bytes p = *whole;
	uint8_t *ip = p.b + p.l3;
	bool more = p.l4 + to < whole->n;
	unsigned hlen = p.l4 - p.l3;

	if (k->family == 4) {
		write_be16(ip + 2, hlen + to - from);
		write_be16(ip + 6, (more ? 0x2000 : 0) | from / 8);
		write_be16(ip + 10, 0);
		write_be16(ip + 10, (uint16_t)~router_sum(ip, hlen, 0));
	} else { // behind the header, before its payload
		memmove(ip + 48, ip + 40, p.n - p.l3 - 40);
		ip[40] = ip[6];
		memset(ip + 41, 0, 7);
		write_be16(ip + 42, from | more);
		ip[6] = IPPROTO_FRAGMENT;
		p.l4 += 8;
		write_be16(ip + 4, p.l4 - p.l3 - 40 + to - from);
	}
	memmove(p.b + p.l4, p.b + p.l4 + from, to - from);
	p.n = p.l4 + to - from;
	return p;
}

static void fragments(void **state)
{
	unsigned i;

	for (i = 0; i < 50000; i++) {
		uint8_t family = pick(2) ? 4 : 6;
		struct flow f = random_flow(family, random_proto(family));
		struct shape s = random_shape(&f.dir[0].key);
		struct flow_key out = leaves(&f, 0);
		struct bytes from, to, a, b;
		unsigned middle;

		s.len = 40 + pick(1000);
		s.ext = 0;
		middle = 24 + 8 * pick((s.len - 32) / 8 + 1);
		random_bytes(noise, 64);
		from = build(&f.dir[0].key, &s);
		to = build(&out, &s);
		a = cut(&from, &out, 0, middle);
		b = cut(&to, &out, 0, middle);
		assert_becomes(&a, &f, 0, &b);
		a = cut(&from, &out, middle, s.len);
		b = cut(&to, &out, middle, s.len);
		assert_becomes(&a, &f, 0, &b);
	}
}

// The checksum of a first fragment that does not contain it cannot be corrected.
static void short_fragment(void **state)
{
	struct flow f = random_flow(4, IPPROTO_TCP);
	struct shape s = {.len = 40, .data = noise};
	struct bytes whole = build(&f.dir[0].key, &s), first = cut(&whole, &f.dir[0].key, 0, 16);
	struct rte_mbuf *m = packet(&first);

	assert_false(flow_translate(m, &f, 0));
	assert_true(same(m, &first));
	rte_pktmbuf_free(m);
}

// --- ICMP errors. ---

static struct bytes error_about(const struct bytes *quoted, unsigned n, const struct flow_key *addresses, uint8_t type,
				unsigned pad)
{
	struct shape s = {.len = 8 + n, .l3 = 14};
	struct flow_key k = *addresses;
	uint8_t data[MAX] = {type, 1, 0, 0, 1, 2, 3, 4};
	struct bytes p;

	k.proto = k.family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	memcpy(data + 8, quoted->b + quoted->l3, n);
	s.data = data;
	s.icmp_type = type;
	memcpy(&k.src_port, data + 4, 2);
	p = build(&k, &s);
	memset(p.b + p.n, 0xee, pad); // padding of the link
	p.n += pad;
	return p;
}

static void errors(void **state)
{
	unsigned i;

	for (i = 0; i < 100000; i++) {
		static const uint8_t types4[] = {3, 4, 5, 11, 12}, types6[] = {1, 2, 3, 4};
		uint8_t family = pick(2) ? 4 : 6, type = family == 4 ? types4[pick(5)] : types6[pick(4)];
		struct flow f = random_flow(family, random_proto(family));
		struct shape s = random_shape(&f.dir[0].key);
		unsigned dir = pick(2), n, pad = pick(2) ? pick(30) : 0;
		struct flow_key sent = leaves(&f, !dir), outer = f.dir[dir].key, want = leaves(&f, dir);
		struct bytes quoted, original, from, to;
		bool by_router = pick(2);

		if (s.ext & 4)
			s.ext &= 3;
		random_bytes(noise, 64);
		quoted = build(&sent, &s);
		original = build(&f.dir[!dir].key, &s);
		n = quoted.l4 - quoted.l3 + 8 + pick(s.len - 8 + 1);
		if (pick(4) == 0)
			n = quoted.l4 - quoted.l3 + 8;
		if (n > 1200)
			n = 1200;
		if (n == quoted.l4 - quoted.l3 + 17) // half of a TCP checksum stays as it is
			n--;
		if (by_router) {
			struct flow_key r = random_key(family, 0);

			if (family == 4)
				outer.src4 = want.src4 = r.src4;
			else
				memcpy(outer.src6, r.src6, 16), memcpy(want.src6, r.src6, 16);
		}
		from = error_about(&quoted, n, &outer, type, pad);
		to = error_about(&original, n, &want, type, pad);
		if (by_router &&
		    (family == 4 ? outer.src4 == f.dir[dir].key.src4 : !memcmp(outer.src6, f.dir[dir].key.src6, 16)))
			continue;
		assert_becomes(&from, &f, dir, &to);
	}
}

// Bytes behind the first segment do not change.
static void cut_off(void **state)
{
	unsigned family, n;

	for (family = 4; family <= 6; family += 2) {
		struct flow f = random_flow((uint8_t)family, IPPROTO_UDP);
		struct shape s = {.len = 40, .data = noise};
		struct bytes whole = build(&f.dir[0].key, &s);

		for (n = 1; n < whole.l4 + 8; n++) {
			struct bytes p = whole;
			struct rte_mbuf *m;

			p.n = n;
			m = packet(&p);
			m->pkt_len = whole.n; // the rest would be elsewhere
			assert_false(flow_translate(m, &f, 0));
			assert_true(same(m, &p));
			rte_pktmbuf_free(m);
		}
	}
}

static void strange(void **state)
{
	struct flow f = random_flow(6, IPPROTO_UDP);
	struct shape s = {.len = 40, .data = noise, .ext = 1};
	struct bytes p = build(&f.dir[0].key, &s);
	struct rte_mbuf *m;

	p.b[6] = IPPROTO_ROUTING;
	p.b[43] = 1; // a segment is left
	m = packet(&p);
	assert_false(flow_translate(m, &f, 0));
	assert_true(same(m, &p));
	rte_pktmbuf_free(m);
	f.dir[0].key.family = f.dir[1].key.family = 4; // not this packet's
	m = packet(&p);
	assert_false(flow_translate(m, &f, 0));
	rte_pktmbuf_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(number_of_extension_headers),
					   cmocka_unit_test(packets),
					   cmocka_unit_test(fragments),
					   cmocka_unit_test(short_fragment),
					   cmocka_unit_test(errors),
					   cmocka_unit_test(cut_off),
					   cmocka_unit_test(strange)};

	return cmocka_run_group_tests(tests, node_test_setup, node_test_teardown);
}
