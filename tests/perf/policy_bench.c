// SPDX-License-Identifier: Apache-2.0
// Cycles that meters and mirrors add to a packet: the meter's decision, and making and freeing the copy.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <rte_cycles.h>

#include "policy/meter.h"
#include "policy/mirror.h"
#include "testing/router_fixture.h"

#define ROUNDS 7
#define LOOPS 200000u

static double best(double a, double b)
{
	return a < b ? a : b;
}

static double meter_cycles(uint64_t rate)
{
	struct meter *m = meter_add(&(struct meter_config){.name = "bench", .bit_rate = rate}, NULL);
	double result = 1e9;
	unsigned round, i;
	uint64_t start;

	for (round = 0; round < ROUNDS; round++) {
		start = rte_rdtsc();
		for (i = 0; i < LOOPS; i++)
			meter_pass(m->id, 1, 1000, start + i * 32);
		result = best(result, (double)(rte_rdtsc() - start) / LOOPS);
	}
	meter_del("bench", NULL);
	return result;
}

static double mirror_cycles(unsigned bytes, uint32_t snap)
{
	struct mirror *m = mirror_add(
		&(struct mirror_config){.name = "bench", .target = MIRROR_PORT, .port = RED1, .snap = snap}, NULL);
	struct rte_mbuf *p =
		router_packet(RED, &(struct packet){.src = "10.0.0.2", .dst = "10.0.0.3", .payload = bytes - 34});
	static const uint8_t eth[14];
	double result = 1e9;
	unsigned round, i;
	uint64_t start;

	for (round = 0; round < ROUNDS; round++) {
		start = rte_rdtsc();
		for (i = 0; i < LOOPS; i++)
			rte_pktmbuf_free(mirror_copy(m->id, MIRROR_EGRESS, p, eth));
		result = best(result, (double)(rte_rdtsc() - start) / LOOPS);
	}
	rte_pktmbuf_free(p);
	mirror_del("bench", NULL);
	return result;
}

int main(void)
{
	if (router_setup(NULL) < 0)
		return 1;
	printf("meter, packet passes   %6.1f cycles\n", meter_cycles(1000000000000));
	printf("meter, packet dropped  %6.1f cycles\n", meter_cycles(8000));
	printf("mirror, frame of 64    %6.1f cycles\n", mirror_cycles(64, 0));
	printf("mirror, frame of 1514  %6.1f cycles\n", mirror_cycles(1514, 0));
	printf("mirror, 128 of 1514    %6.1f cycles\n", mirror_cycles(1514, 128));
	return router_teardown(NULL);
}
