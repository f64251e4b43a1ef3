// SPDX-License-Identifier: Apache-2.0
// Tables of weighted Maglev hashing (Eisenbud et al., NSDI 2016): each row names one of the endpoints, in proportion to
// their weights, and a change of one endpoint moves few rows of the others. Integers only: the rows follow from the
// endpoints alone, so that all nodes have the same ones, whatever compiler made them.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MAGLEV_ROWS_MAX 131071
#define MAGLEV_NONE UINT16_MAX

// A prime that is at least 100 times the number of endpoints: their shares are then within some percent of the weights.
uint32_t maglev_rows(unsigned max_endpoints);

// What the rows depend on. The caller sorts the endpoints and leaves out those of weight 0.
struct maglev_endpoint {
	uint64_t id[3]; // address and port
	uint32_t weight;
};

struct maglev; // a table that is being built

// NULL: no memory. n >= 1.
struct maglev *maglev_begin(const struct maglev_endpoint *e, unsigned n, uint32_t rows);
// Looks at up to `most` rows. Returns whether the table is complete.
bool maglev_step(struct maglev *m, uint32_t most);
const uint16_t *maglev_table(const struct maglev *m); // [rows]: the index of an endpoint
void maglev_free(struct maglev *m);

static inline uint32_t maglev_row(uint64_t hash, uint32_t rows)
{
	return (uint32_t)((hash >> 32) * rows >> 32);
}
