// SPDX-License-Identifier: Apache-2.0
#include "l3/fib_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/rcu.h"

static_assert(sizeof(struct fib) == RTE_CACHE_LINE_SIZE,
	      "the table of one word must be aligned for its address to leave room for bits");

static uint64_t tables; // their number

static bool bit_get(const uint32_t *bits, unsigned n)
{
	return bits[n / 32] >> n % 32 & 1;
}

static void bit_write(uint32_t *bits, unsigned n, bool value)
{
	bits[n / 32] = (bits[n / 32] & ~(1u << n % 32)) | (uint32_t)value << n % 32;
}

static struct fib_table *fib_table_direct(const struct fib *fib)
{
	return (struct fib_table *)fib_root_table(fib->root);
}

bool fib_table_has(const struct fib *fib, unsigned key16, unsigned len)
{
	unsigned bits = fib_root_bits(fib->root);
	uint32_t word;

	if (len < bits)
		return bit_get(fib_table_direct(fib)->shorter, fib_span(key16, len, bits).number);
	word = *fib_root_word(fib->root, (uint64_t)key16 << 48);
	return fib_leaf_is(fib_is_leaf(word) ? word : fib_child(word)->cover, len);
}

void fib_table_change(struct fib *fib, unsigned key16, const struct fib_change *c)
{
	uint32_t *table = fib_root_table(fib->root);
	unsigned i, bits = fib_root_bits(fib->root);
	struct fib_span span = fib_span(key16 >> (FIB_DIRECT_BITS - bits), c->len, bits);

	for (i = span.from; i < span.to; i++) {
		uint32_t *leaf = fib_is_leaf(table[i]) ? &table[i] : &fib_child(table[i])->cover;
		uint32_t value = fib_change_leaf(c, *leaf);

		if (value != *leaf)
			fib_store(leaf, value);
	}
	if (c->len < bits)
		bit_write(fib_table_direct(fib)->shorter, span.number, c->kind == FIB_ADD);
}

// The result of growing the small trie: the direct table, and the nodes to retire or to link.
struct growth {
	struct fib_table *table;
	unsigned n_old, n_new;
	uint32_t *old; // nodes above the table's depth, and the first ones at or below it,
	uint32_t *new; // which are copied: each leads to other routes
};

static void fib_table_fill(struct fib_table *t, unsigned first, unsigned n, uint32_t leaf)
{
	while (n-- > 0)
		t->words[first++] = leaf;
}

// A node below the table, which is referred to from bit `position`. first: the slot so far.
static bool flatten_below(struct growth *g, uint32_t word, unsigned position, unsigned first, uint32_t above)
{
	const struct fib_node *node = fib_child(word);
	unsigned rest = FIB_DIRECT_BITS - position;
	struct fib_build b;

	if (rest > 0)
		first |= (unsigned)(node->skip >> (64 - rest));
	fib_build_copy(&b, node);
	b.skip = fib_skip_from(b.skip, rest / 8);
	b.cover = above;
	word = fib_build_node(&b, false);
	if (word != 0)
		g->new[g->n_new++] = word;
	g->table->words[first] = word;
	return word != 0;
}

// The routes of a node and what is below it. above: the longest route so far.
static bool fib_table_flatten(struct growth *g, uint32_t word, unsigned position, unsigned first, uint32_t above)
{
	const struct fib_node *node = fib_child(word);
	unsigned i, rel, depth = position + fib_skip_bits(node->skip);
	unsigned step = 1u << (FIB_DIRECT_BITS - FIB_STRIDE - RTE_MIN(depth, (unsigned)FIB_STRIDE));

	g->old[g->n_old++] = word;
	above = RTE_MAX(above, node->cover);
	fib_table_fill(g->table, first, 1u << (FIB_DIRECT_BITS - position), above);
	if (depth >= FIB_DIRECT_BITS)
		return flatten_below(g, word, position, first, above);
	if (depth > position)
		first |= (unsigned)(node->skip >> 56) << (FIB_DIRECT_BITS - depth);
	for (rel = 1; rel < FIB_STRIDE; rel++)
		for (i = 0; i < 1u << rel; i++)
			if (fib_node_has_shorter(node, 1u << rel | i))
				bit_write(g->table->shorter,
					  ((1u << depth | first >> (FIB_DIRECT_BITS - depth)) << rel) + i, true);
	for (i = 0; i < FIB_SLOTS; i++, first += step) {
		word = node->words[fib_node_index(node, i)];
		if (depth == 0 && fib_leaf_is(fib_is_leaf(word) ? word : fib_child(word)->cover, FIB_STRIDE))
			bit_write(g->table->shorter, FIB_SLOTS | i, true);
		if (fib_is_leaf(word))
			fib_table_fill(g->table, first, step, RTE_MAX(word, above));
		else if (!fib_table_flatten(g, word, depth + FIB_STRIDE, first, above))
			return false;
	}
	return true;
}

static bool l3_fib_table_grow(struct growth *g, const struct fib *fib)
{
	g->table = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*g->table));
	g->old = calloc(1 + FIB_SLOTS + fib->routes, sizeof(*g->old));
	g->new = calloc(fib->routes, sizeof(*g->new));
	if (g->table == NULL || g->old == NULL || g->new == NULL)
		return false;
	memset(g->table->shorter, 0, sizeof(g->table->shorter));
	bit_write(g->table->shorter, 1, fib_child(fib->word)->cover != FIB_INHERIT); // the default route
	return fib_table_flatten(g, fib->word, 0, 0, FIB_INHERIT);
}

void fib_table_grow(struct fib *fib)
{
	struct growth g = {0};

	if (fib_is_leaf(fib->word) || fib_root_bits(fib->root) != 0)
		return;
	if (l3_fib_table_grow(&g, fib)) {
		tables++;
		__atomic_store_n(&fib->root, fib_root(g.table->words, FIB_DIRECT_BITS), __ATOMIC_RELEASE);
		while (g.n_old > 0)
			fib_arena_retire(g.old[--g.n_old]);
	} else {
		free(g.table);
		while (g.n_new > 0)
			fib_arena_free(g.new[--g.n_new]);
	}
	free(g.old);
	free(g.new);
}

static void fib_table_free(void *arg)
{
	free(arg);
	tables--;
}

void fib_table_retire(const struct fib *fib)
{
	if (fib_root_bits(fib->root) != 0)
		rcu_defer(fib_table_free, fib_table_direct(fib));
}

void fib_table_reset(struct fib *fib)
{
	const struct fib old = *fib;

	// A worker that has just read the old root finds the old table, in which there is no route left either.
	fib->word = FIB_INHERIT;
	__atomic_store_n(&fib->root, fib_root(&fib->word, 0), __ATOMIC_RELEASE);
	fib_table_retire(&old);
}

uint64_t fib_table_memory(void)
{
	return tables * sizeof(struct fib_table);
}
