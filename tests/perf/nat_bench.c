// SPDX-License-Identifier: Apache-2.0
// Cycles of the rules for a new flow, and of the translation of a packet. Run it pinned: taskset -c 1
// build/tests/perf/nat_bench
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "flow/translate.h"
#include "policy/nat.h"
#include "testing/router_fixture.h"

#define KEYS 4096
#define ROUNDS 200

static struct flow_key keys[KEYS];
static struct error err;

// The fastest tenth of the rounds counts, so that a busy machine disturbs little.
static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double best(double *list, unsigned n)
{
	qsort(list, n, sizeof(*list), by_value);
	return list[n / 10];
}

static struct ip_addr address(uint8_t family, uint8_t net, uint32_t i)
{
	struct ip_addr a = router_addr(family == IPV4 ? "10.0.0.0" : "2001:db8::");
	uint8_t *end = a.bytes + ip_bytes(family);

	end[-3] = net;
	end[-2] = (uint8_t)(i >> 8);
	end[-1] = (uint8_t)i;
	return a;
}

static void fill(uint8_t family, enum nat_kind kind, uint32_t n)
{
	static struct nat_backend b[4];
	uint32_t i;

	for (i = 0; i < n; i++) {
		struct nat_config c = {
			.id = i + 1, .vrf = RED, .external = BLUE, .kind = kind, .outside = address(family, 200, i)};

		if (kind == NAT_DESTINATION) {
			b[0] = b[1] = b[2] = b[3] = (struct nat_backend){address(family, 100, i), 0, 1};
			c.backends = b;
			c.n_backends = 4;
			c.protocol = IPPROTO_TCP;
			c.first_port = 80;
		} else {
			c.inside.addr = address(family, 100, i);
			c.inside.len = (uint8_t)ip_bits(family);
		}
		if (nat_add(&c, &err) < 0)
			rte_panic("%s\n", err.message);
	}
}

static void ask_for(uint8_t family, enum nat_kind kind, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < KEYS; i++) {
		uint32_t at = (i * 2654435761u >> 8) % n;
		struct ip_addr in = address(family, 100, at), far = address(family, 5, i),
			       out = address(family, 200, at);
		const struct ip_addr *src = kind == NAT_DESTINATION ? &far : &in,
				     *dst = kind == NAT_DESTINATION ? &out : &far;
		struct flow_key k = {
			.zone = kind == NAT_DESTINATION ? BLUE : RED, .proto = IPPROTO_TCP, .family = family};

		k.src_port = (uint16_t)i;
		k.dst_port = RTE_BE16(80);
		memcpy(family == IPV4 ? (uint8_t *)&k.src4 : k.src6, src->bytes, ip_bytes(family));
		memcpy(family == IPV4 ? (uint8_t *)&k.dst4 : k.dst6, dst->bytes, ip_bytes(family));
		keys[i] = k;
	}
}

static double lookups(bool hit)
{
	double list[ROUNDS];
	unsigned r, i, found = 0;

	for (r = 0; r < ROUNDS; r++) {
		uint64_t start = rte_rdtsc_precise();

		for (i = 0; i < KEYS; i++) {
			struct nat_verdict v = {0};
			struct flow_key k = keys[i];

			nat_destination(&k, &v);
			nat_source(&keys[i], &k, i, &v);
			found += v.rule != 0;
		}
		list[r] = (double)(rte_rdtsc_precise() - start) / KEYS;
	}
	if (found != (hit ? ROUNDS * KEYS : 0))
		rte_panic("%u found\n", found);
	return best(list, ROUNDS);
}

static void rules(const char *name, uint8_t family, enum nat_kind kind, uint32_t n)
{
	uint64_t start = rte_rdtsc();
	double hit, miss;
	uint32_t i;

	fill(family, kind, n);
	start = rte_rdtsc() - start;
	ask_for(family, kind, n);
	hit = lookups(true);
	for (i = 0; i < KEYS; i++) { // IPv4: bytes 0 and 4 are in its source and destination
		keys[i].src6[0] ^= 0xff;
		keys[i].dst6[0] ^= 0xff;
		keys[i].src6[4] ^= 0xff;
	}
	miss = lookups(false);
	printf("%-12s IPv%u %6u rules: hit %6.1f, miss %6.1f cycles; added in %.0f us each\n", name, family, n, hit,
	       miss, (double)start * 1e6 / (double)rte_get_tsc_hz() / n);
	while (nat_next(0))
		nat_del(nat_next(0), &err);
}

static void packets(const char *name, const char *src, const char *dst, uint8_t proto)
{
	struct packet p = {.src = src, .dst = dst, .proto = proto, .payload = 100};
	struct rte_mbuf *m = router_packet(RED, &p);
	struct flow f[2] = {0};
	double list[ROUNDS];
	unsigned r, i, dir;

	for (dir = 0; dir < 2; dir++) { // there, and back
		struct flow_key in = {.proto = proto ? proto : IPPROTO_UDP,
				      .family = strchr(src, ':') ? 6 : 4,
				      .src_port = dir ? 1 : 2};
		struct flow_key out = in;

		out.addr[0] = dir ? 0x0100000aull : 0x0200000aull;
		f[dir].dir[0].key = in;
		f[dir].dir[1].key = flow_key_reverse(&out);
	}
	for (r = 0; r < ROUNDS; r++) {
		uint64_t start = rte_rdtsc_precise();

		for (i = 0; i < KEYS; i++)
			flow_translate(m, &f[i & 1], 0);
		list[r] = (double)(rte_rdtsc_precise() - start) / KEYS;
	}
	printf("translate %-12s %6.1f cycles\n", name, best(list, ROUNDS));
	rte_pktmbuf_free(m);
}

int main(void)
{
	if (router_setup(NULL) < 0)
		return 1;
	rules("floating", IPV4, NAT_FLOATING, 1);
	rules("floating", IPV4, NAT_FLOATING, 10000);
	rules("source", IPV4, NAT_SOURCE, 10000);
	rules("destination", IPV4, NAT_DESTINATION, 10000);
	rules("floating", IPV6, NAT_FLOATING, 10000);
	rules("source", IPV6, NAT_SOURCE, 10000);
	rules("destination", IPV6, NAT_DESTINATION, 10000);
	packets("UDP IPv4", "10.0.0.2", "10.0.0.3", 0);
	packets("TCP IPv4", "10.0.0.2", "10.0.0.3", IPPROTO_TCP);
	packets("UDP IPv6", "fd00::2", "fd00::3", 0);
	return 0;
}
