// SPDX-License-Identifier: Apache-2.0
// Makes flows by number.
#include "flow.h"

#include <stddef.h>
#include <sys/mman.h>

#include <rte_byteorder.h>
#include <rte_common.h>

#define HUGE (2u << 20)

static uint64_t flow_gcd(uint64_t a, uint64_t b)
{
	return b == 0 ? a : flow_gcd(b, a % b);
}

uint64_t flow_plan_size(const struct flow_plan *p)
{
	uint64_t n = (uint64_t)p->source_ports * p->destination_ports, most = (uint64_t)1 << 40;

	n = n * p->sources; // at most 2^32 * 2^32 - 1
	if (n >= most)
		return most;
	return p->n_list > 0 ? n / flow_gcd(n, p->n_list) * p->n_list : n * p->destinations;
}

static uint16_t flow_sum32(uint32_t a, uint32_t b)
{
	uint32_t s = (a & 0xffff) + (a >> 16) + (b & 0xffff) + (b >> 16);

	s = (s & 0xffff) + (s >> 16);
	return (uint16_t)((s & 0xffff) + (s >> 16));
}

struct flow flow_make(const struct flow_plan *p, uint64_t number)
{
	uint64_t left = number;
	uint32_t i[4];
	struct flow f;

	i[0] = (uint32_t)(left % p->source_ports);
	left /= p->source_ports;
	i[1] = (uint32_t)(left % p->destination_ports);
	left /= p->destination_ports;
	i[2] = (uint32_t)(left % p->sources);
	left /= p->sources;
	i[3] = p->n_list > 0 ? p->list[number % p->n_list]
			     : p->destination + (uint32_t)(left % p->destinations) * p->step;
	f.source_port = rte_cpu_to_be_16((uint16_t)(p->source_port + i[0]));
	f.destination_port = rte_cpu_to_be_16((uint16_t)(p->destination_port + i[1]));
	f.source = rte_cpu_to_be_32(p->source + i[2]);
	f.destination = rte_cpu_to_be_32(i[3]);
	f.address_sum = flow_sum32(f.source, f.destination);
	f.entropy = rte_cpu_to_be_16((uint16_t)(49152 + (number * 0x9e3779b97f4a7c15u >> 50)));
	return f;
}

static uint64_t next_random(uint64_t *state) // xorshift64*
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1du;
}

static void shuffle_flows(struct flow *flows, uint32_t n)
{
	uint64_t state = 88172645463325252u;
	uint32_t i, j;

	for (i = n - 1; i > 0; i--) {
		j = (uint32_t)((next_random(&state) >> 32) * (i + 1) >> 32);
		RTE_SWAP(flows[i], flows[j]);
	}
}

void flow_fill(const struct flow_plan *p, struct flow *flows, uint32_t n, bool shuffle)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		flows[i] = flow_make(p, i);
	if (shuffle)
		shuffle_flows(flows, n);
}

void *pages_alloc(size_t size)
{
	void *p = mmap(NULL, RTE_ALIGN(size, (size_t)HUGE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (size >= HUGE)
		madvise(p, size, MADV_HUGEPAGE);
	return p;
}

void pages_free(void *p, size_t size)
{
	if (p != NULL)
		munmap(p, RTE_ALIGN(size, (size_t)HUGE));
}
