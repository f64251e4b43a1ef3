// SPDX-License-Identifier: Apache-2.0
#include "policy/maglev.h"

#include <stdlib.h>
#include <string.h>

#include "base/siphash.h"

// The endpoints take turns: one of the largest weight L takes a row in each round, and one of weight w its k-th row in
// round k * L / w, rounded up. In a round, the order is that of the endpoints. Only ratios of weights matter: 2 and 4
// give the rows of 1 and 2.
struct maglev_turn {
	uint32_t next; // row that it asks for next
	uint32_t skip; // distance between the rows that it asks for
	uint32_t weight;
	uint32_t filled; // rows that it has
};

struct maglev {
	uint32_t rows, filled;
	uint32_t n; // endpoints
	uint32_t largest;
	uint16_t *table;
	uint64_t *due; // [n], a heap of round << 16 | endpoint: rounds in which few take a row cost nothing
	struct maglev_turn turn[];
};

uint32_t maglev_rows(unsigned max_endpoints)
{
	static const uint32_t primes[] = {509, 1021, 2039, 4093, 8191, 16381, 32749, 65521, MAGLEV_ROWS_MAX};
	unsigned i = 0;

	while (i + 1 < sizeof(primes) / sizeof(primes[0]) && primes[i] < 100 * max_endpoints)
		i++;
	return primes[i];
}

static struct maglev_turn maglev_turn_of(const struct maglev_endpoint *e, uint32_t rows)
{
	static const struct siphash_key first = {{0, 0}}, second = {{1, 0}};

	return (struct maglev_turn){.next = maglev_row(siphash(&first, e->id, 3), rows),
				    .skip = maglev_row(siphash(&second, e->id, 3), rows - 1) + 1,
				    .weight = e->weight};
}

static uint64_t maglev_due(const struct maglev *m, uint16_t i)
{
	const struct maglev_turn *t = &m->turn[i];
	uint64_t credit = (t->filled + 1ull) * m->largest;

	// analyzer: core.DivideZero: endpoints without weight are left out
	return (credit + t->weight - 1) / t->weight << 16 | i;
}

static void maglev_sift(struct maglev *m, uint32_t at)
{
	uint64_t due = m->due[at];
	uint32_t child;

	while ((child = 2 * at + 1) < m->n) {
		child += child + 1 < m->n && m->due[child + 1] < m->due[child];
		if (due <= m->due[child])
			break;
		m->due[at] = m->due[child];
		at = child;
	}
	m->due[at] = due;
}

static void maglev_fill(struct maglev *m, const struct maglev_endpoint *e)
{
	uint32_t i;

	memset(m->table, 0xff, m->rows * sizeof(*m->table)); // MAGLEV_NONE
	for (i = 0; i < m->n; i++) {
		m->turn[i] = maglev_turn_of(&e[i], m->rows);
		if (e[i].weight > m->largest)
			m->largest = e[i].weight;
	}
	for (i = 0; i < m->n; i++)
		m->due[i] = maglev_due(m, (uint16_t)i);
	for (i = m->n / 2; i-- > 0;)
		maglev_sift(m, i);
}

struct maglev *maglev_begin(const struct maglev_endpoint *e, unsigned n, uint32_t rows)
{
	struct maglev *m = calloc(1, sizeof(*m) + n * sizeof(m->turn[0]));

	if (m == NULL)
		return NULL;
	m->rows = rows;
	m->n = n;
	m->table = malloc(rows * sizeof(*m->table));
	m->due = malloc(n * sizeof(*m->due));
	if (m->table == NULL || m->due == NULL) {
		maglev_free(m);
		return NULL;
	}
	maglev_fill(m, e);
	return m;
}

// Returns whether the row that the endpoint asks for was free, and is its own now.
static bool maglev_ask(struct maglev *m, uint16_t i)
{
	struct maglev_turn *t = &m->turn[i];
	uint32_t row = t->next;

	t->next = row + t->skip >= m->rows ? row + t->skip - m->rows : row + t->skip;
	if (m->table[row] != MAGLEV_NONE)
		return false;
	m->table[row] = i;
	m->filled++;
	t->filled++;
	return true;
}

bool maglev_step(struct maglev *m, uint32_t most)
{
	while (m->filled < m->rows && most-- > 0) {
		uint16_t i = (uint16_t)m->due[0];

		if (maglev_ask(m, i)) {
			m->due[0] = maglev_due(m, i);
			maglev_sift(m, 0);
		}
	}
	return m->filled == m->rows;
}

const uint16_t *maglev_table(const struct maglev *m)
{
	return m->table;
}

void maglev_free(struct maglev *m)
{
	if (m == NULL)
		return;
	free(m->table);
	free(m->due);
	free(m);
}
