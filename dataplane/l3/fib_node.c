// SPDX-License-Identifier: Apache-2.0
#include "l3/fib_node.h"

#include <stddef.h>
#include <string.h>

#include <rte_common.h>

static const struct fib_node empty = {.runs = {1}, .base = {0, 1, 1, 1}, .cover = FIB_INHERIT, .words = {FIB_INHERIT}};

static_assert(offsetof(struct fib_node, words) == 40, "six words share the first cache line");
static_assert(FIB_MAX_UNITS * FIB_UNIT >= 40 + 4 * (FIB_SHORTER_WORDS + FIB_SLOTS), "the largest node");

struct fib_span fib_span(unsigned slot, unsigned rel, unsigned stride)
{
	unsigned bits = slot >> (stride - rel);

	return (struct fib_span){
		.from = bits << (stride - rel),
		.to = (bits + 1) << (stride - rel),
		.number = 1u << rel | bits,
	};
}

uint32_t fib_change_leaf(const struct fib_change *c, uint32_t leaf)
{
	switch (c->kind) {
	case FIB_PUT:
		return c->word;
	case FIB_ADD:
		return fib_leaf_len(leaf) <= c->len ? c->word : leaf;
	case FIB_REMOVE:
		return fib_leaf_is(leaf, c->len) ? c->word : leaf;
	}
	return leaf;
}

// Calls nothing for slots between boundaries: `at` walks the runs and the two ends of the span.
void fib_build_edit(struct fib_build *b, const struct fib_node *node, const struct fib_span *span, const struct fib_change *c)
{
	const uint32_t *word;
	unsigned i, slot;
	uint64_t at;

	node = node ? node : &empty;
	word = node->words + node->base[0] - 1;
	b->n = 0;
	b->cover = node->cover;
	memset(b->shorter, 0, sizeof(b->shorter));
	if (node->base[0] != 0)
		memcpy(b->shorter, node->words, sizeof(b->shorter));
	for (i = 0; i < 4; i++) {
		at = node->runs[i];
		at |= span->from >> 6 == i ? 1ull << (span->from & 63) : 0;
		at |= span->to >> 6 == i ? 1ull << (span->to & 63) : 0;
		b->runs[i] = 0;
		for (; at != 0; at &= at - 1) {
			uint32_t value;

			slot = (unsigned)__builtin_ctzll(at);
			word += node->runs[i] >> slot & 1;
			value = *word;
			if (i * 64 + slot >= span->from && i * 64 + slot < span->to && (c->kind == FIB_PUT || fib_is_leaf(value)))
				value = fib_change_leaf(c, value);
			if (b->n > 0 && b->words[b->n - 1] == value)
				continue;
			b->runs[i] |= 1ull << slot;
			b->words[b->n++] = value;
		}
	}
}

bool fib_build_empty(const struct fib_build *b)
{
	return b->n == 1 && b->words[0] == FIB_INHERIT;
}

static unsigned units_of(unsigned words)
{
	return (unsigned)(sizeof(struct fib_node) + words * sizeof(uint32_t) + FIB_UNIT - 1) / FIB_UNIT;
}

uint32_t fib_build_node(const struct fib_build *b, bool removal)
{
	bool shorter = (b->shorter[0] | b->shorter[1] | b->shorter[2] | b->shorter[3]) != 0;
	unsigned i, base = shorter ? FIB_SHORTER_WORDS : 0;
	uint32_t unit = fib_arena_alloc(units_of(base + b->n), removal);
	struct fib_node *node;

	if (unit == 0)
		return 0;
	node = fib_at(unit);
	memcpy(node->runs, b->runs, sizeof(node->runs));
	node->cover = b->cover;
	memcpy(node->words, b->shorter, base * sizeof(*node->words));
	memcpy(node->words + base, b->words, b->n * sizeof(*node->words));
	for (i = 0; i < 4; i++) {
		node->base[i] = (uint8_t)base;
		base += (unsigned)__builtin_popcountll(b->runs[i]);
	}
	return unit;
}

void fib_node_change_covers(const struct fib_node *node, const struct fib_span *span, const struct fib_change *c)
{
	unsigned i, last = fib_node_index(node, span->to - 1);

	for (i = fib_node_index(node, span->from); i <= last; i++) {
		struct fib_node *child;
		uint32_t cover;

		if (fib_is_leaf(node->words[i]))
			continue;
		child = fib_child(node->words[i]);
		cover = fib_change_leaf(c, child->cover);
		if (cover != child->cover)
			fib_store(&child->cover, cover);
	}
}

bool fib_node_has_shorter(const struct fib_node *node, unsigned number)
{
	return node->base[0] != 0 && (node->words[number / 32] >> number % 32 & 1);
}

void fib_node_retire_all(uint32_t word)
{
	const struct fib_node *node = fib_child(word);
	unsigned i, n = node->base[3] + (unsigned)__builtin_popcountll(node->runs[3]);

	for (i = node->base[0]; i < n; i++)
		if (!fib_is_leaf(node->words[i]))
			fib_node_retire_all(node->words[i]);
	fib_arena_retire(word);
}
