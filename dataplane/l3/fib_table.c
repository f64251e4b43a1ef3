// SPDX-License-Identifier: Apache-2.0
#include "l3/fib_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/rcu.h"

static_assert(sizeof(struct fib) == RTE_CACHE_LINE_SIZE, "the table of one word must be aligned for its address to leave room for bits");

static uint64_t tables; // how many there are

static bool bit_get(const uint32_t *bits, unsigned n)
{
	return bits[n / 32] >> n % 32 & 1;
}

static void bit_put(uint32_t *bits, unsigned n, bool value)
{
	bits[n / 32] = (bits[n / 32] & ~(1u << n % 32)) | (uint32_t)value << n % 32;
}

static struct fib_table *direct(const struct fib *fib)
{
	return (struct fib_table *)fib_root_table(fib->root);
}

bool fib_table_has(const struct fib *fib, unsigned key16, unsigned len)
{
	unsigned bits = fib_root_bits(fib->root);
	uint32_t word;

	if (len < bits)
		return bit_get(direct(fib)->shorter, fib_span(key16, len, bits).number);
	word = *fib_root_word(fib->root, key16);
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
		bit_put(direct(fib)->shorter, span.number, c->kind == FIB_ADD);
}

// One slot of the direct table while it is built from the trie's first two nodes: `above` is the longest route so far.
// A child's cover takes in the shorter routes as well. Workers that still come the old way have passed these already, so
// nothing changes for them.
static uint32_t flatten(uint32_t word, uint32_t above)
{
	struct fib_node *child;

	if (fib_is_leaf(word))
		return RTE_MAX(word, above);
	child = fib_child(word);
	if (child->cover < above)
		fib_store(&child->cover, above);
	return word;
}

// The second node, its slots going to table[first ..].
static void flatten_node(struct fib_table *t, uint32_t word, unsigned first, uint32_t above)
{
	const struct fib_node *node = fib_child(word);
	unsigned i, rel;

	above = RTE_MAX(above, node->cover);
	for (i = 0; i < FIB_SLOTS; i++)
		t->words[first + i] = flatten(node->words[fib_node_index(node, i)], above);
	for (rel = 1; rel < FIB_STRIDE; rel++)
		for (i = 0; i < 1u << rel; i++)
			if (fib_node_has_shorter(node, 1u << rel | i))
				bit_put(t->shorter, ((FIB_SLOTS | first >> FIB_STRIDE) << rel) + i, true);
}

static void flatten_root(struct fib_table *t, const struct fib_node *root)
{
	unsigned i, j, first;

	for (i = 2; i < FIB_SLOTS; i++)
		if (fib_node_has_shorter(root, i))
			bit_put(t->shorter, i, true);
	if (root->cover != FIB_INHERIT)
		bit_put(t->shorter, 1, true);
	for (i = 0; i < FIB_SLOTS; i++) {
		uint32_t word = root->words[fib_node_index(root, i)];

		first = i * FIB_SLOTS;
		if (fib_leaf_is(fib_is_leaf(word) ? word : fib_child(word)->cover, FIB_STRIDE))
			bit_put(t->shorter, FIB_SLOTS | i, true);
		if (!fib_is_leaf(word)) {
			flatten_node(t, word, first, root->cover);
			continue;
		}
		for (j = 0; j < FIB_SLOTS; j++)
			t->words[first + j] = RTE_MAX(word, root->cover);
	}
}

static void retire_root(uint32_t word)
{
	const struct fib_node *root = fib_child(word);
	unsigned i, last = fib_node_index(root, FIB_SLOTS - 1);

	for (i = root->base[0]; i <= last; i++)
		if (!fib_is_leaf(root->words[i]))
			fib_arena_retire(root->words[i]);
	fib_arena_retire(word);
}

void fib_table_grow(struct fib *fib)
{
	struct fib_table *t;

	if (fib_is_leaf(fib->word) || fib_root_bits(fib->root) != 0)
		return;
	t = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*t));
	if (t == NULL)
		return;
	tables++;
	memset(t->shorter, 0, sizeof(t->shorter));
	flatten_root(t, fib_child(fib->word));
	__atomic_store_n(&fib->root, (uint64_t)(uintptr_t)t | FIB_DIRECT_BITS, __ATOMIC_RELEASE);
	retire_root(fib->word);
}

static void table_free(void *arg)
{
	free(arg);
	tables--;
}

void fib_table_retire(const struct fib *fib)
{
	if (fib_root_bits(fib->root) != 0)
		rcu_defer(table_free, direct(fib));
}

void fib_table_reset(struct fib *fib)
{
	const struct fib old = *fib;

	// A worker that has just read the old root finds the old table, in which there is no route left either.
	fib->word = FIB_INHERIT;
	__atomic_store_n(&fib->root, (uint64_t)(uintptr_t)&fib->word, __ATOMIC_RELEASE);
	fib_table_retire(&old);
}

uint64_t fib_table_memory(void)
{
	return tables * sizeof(struct fib_table);
}
