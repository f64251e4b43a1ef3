// SPDX-License-Identifier: Apache-2.0
// For tests and benchmarks of the flow table: keys by number, flows with such keys, and a check of all buckets.
#pragma once

#include "flow/flow.h"
#include "flow/table_private.h"

static inline uint64_t fixture_random(uint64_t *state) // splitmix64
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

void fixture_secret(uint64_t seed);
// Keys as in a data centre: some thousand hosts in a few subnets, ports that count up. Keys of different numbers below
// 2^28 differ.
struct flow_key fixture_key(uint32_t number, bool v6);
// Gives flow `f` the key and, as its other direction, the reverse.
void fixture_flow(uint32_t f, const struct flow_key *key);

struct fixture_sum {
	uint64_t entries, second; // entries, and those in their second bucket
	unsigned errors;          // inconsistencies, which are printed
};
struct fixture_sum fixture_check(const struct flow_table *t); // no thread may change it meanwhile
