// SPDX-License-Identifier: Apache-2.0
#include "l3/fib_private.h"

#include <stddef.h>
#include <string.h>

#include <rte_common.h>

static const struct fib_node empty = {
	.runs = {1}, .skip = 63, .base = {0, 1, 1, 1}, .cover = FIB_INHERIT, .words = {FIB_INHERIT}};

static_assert(offsetof(struct fib_node, words) == 48, "four words share the first cache line");
static_assert(FIB_MAX_UNITS * FIB_UNIT >= 48 + 4 * (FIB_SHORTER_WORDS + FIB_SLOTS), "the largest node");

uint64_t fib_skip_of(const uint8_t *bytes, unsigned n)
{
	uint64_t skip = 63 - n * 8;
	unsigned i;

	for (i = 0; i < n; i++)
		skip |= (uint64_t)bytes[i] << (56 - 8 * i);
	return skip;
}

uint64_t fib_skip_from(uint64_t skip, unsigned n)
{
	return (skip >> 8 << 8) << 8 * n | (63 - (fib_skip_bits(skip) - 8 * n));
}

uint64_t fib_skip_join(uint64_t above, unsigned slot, uint64_t below)
{
	uint8_t bytes[2 * FIB_MAX_SKIP + 1];
	unsigned i, n = 0;

	for (i = 0; i < fib_skip_bits(above); i += 8)
		bytes[n++] = (uint8_t)(above >> (56 - i));
	bytes[n++] = (uint8_t)slot;
	for (i = 0; i < fib_skip_bits(below); i += 8)
		bytes[n++] = (uint8_t)(below >> (56 - i));
	return n <= FIB_MAX_SKIP ? fib_skip_of(bytes, n) : 0;
}

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
	case FIB_FILL:
		return c->word;
	case FIB_ADD:
		return fib_leaf_len(leaf) <= c->len ? c->word : leaf;
	case FIB_REMOVE:
		return fib_leaf_is(leaf, c->len) ? c->word : leaf;
	}
	return leaf;
}

static unsigned node_runs(const struct fib_node *node)
{
	return fib_node_index(node, FIB_SLOTS - 1) + 1;
}

// Sets runs and words. `at` marks the slots where a run may begin: the runs of the copied node and both ends of the
// span.
static void fib_node_edit(struct fib_build *b, const uint64_t runs[4], const uint32_t *words,
			  const struct fib_span *span, const struct fib_change *c)
{
	const uint32_t *word = words - 1;
	unsigned i, slot;
	uint64_t at;

	b->n = 0;
	for (i = 0; i < 4; i++) {
		uint64_t begin = runs[i];

		at = begin;
		at |= span->from >> 6 == i ? 1ull << (span->from & 63) : 0;
		at |= span->to >> 6 == i ? 1ull << (span->to & 63) : 0;
		b->runs[i] = 0;
		for (; at != 0; at &= at - 1) {
			uint32_t value;

			slot = (unsigned)__builtin_ctzll(at);
			word += begin >> slot & 1;
			value = *word;
			if (i * 64 + slot >= span->from && i * 64 + slot < span->to &&
			    (c->kind == FIB_FILL || fib_is_leaf(value)))
				value = fib_change_leaf(c, value);
			if (b->n > 0 && b->words[b->n - 1] == value)
				continue;
			b->runs[i] |= 1ull << slot;
			b->words[b->n++] = value;
		}
	}
}

void fib_build_edit(struct fib_build *b, const struct fib_node *node, const struct fib_span *span,
		    const struct fib_change *c)
{
	node = node ? node : &empty;
	b->cover = node->cover;
	b->skip = node->skip & ~(uint64_t)FIB_SHORTER;
	memset(b->shorter, 0, sizeof(b->shorter));
	if (node->skip & FIB_SHORTER)
		memcpy(b->shorter, node->words + node_runs(node), sizeof(b->shorter));
	fib_node_edit(b, node->runs, node->words, span, c);
}

void fib_build_again(struct fib_build *b, const struct fib_span *span, const struct fib_change *c)
{
	const struct fib_build old = *b;

	fib_node_edit(b, old.runs, old.words, span, c);
}

bool fib_build_empty(const struct fib_build *b)
{
	return b->n == 1 && b->words[0] == FIB_INHERIT;
}

void fib_build_copy(struct fib_build *b, const struct fib_node *node)
{
	fib_build_edit(b, node, &(struct fib_span){0}, &(struct fib_change){0});
}

static bool build_has_shorter(const struct fib_build *b)
{
	return (b->shorter[0] | b->shorter[1] | b->shorter[2] | b->shorter[3]) != 0;
}

uint32_t fib_build_lone_child(const struct fib_build *b, unsigned *slot)
{
	unsigned i, run = 0;
	uint32_t child = 0;
	uint64_t at;

	*slot = 0;
	if (b->n > 3 || build_has_shorter(b))
		return 0;
	for (i = 0; i < 4; i++)
		for (at = b->runs[i]; at != 0; at &= at - 1, run++) {
			if (b->words[run] == FIB_INHERIT)
				continue;
			if (fib_is_leaf(b->words[run]) || child != 0)
				return 0;
			child = b->words[run];
			*slot = i * 64 + (unsigned)__builtin_ctzll(at);
		}
	return child;
}

void fib_build_mark(struct fib_build *b, const struct fib_span *span, bool shorter)
{
	uint64_t bit = 1ull << span->number % 64;

	if (span->number < FIB_SLOTS)
		b->shorter[span->number / 64] = (b->shorter[span->number / 64] & ~bit) | (shorter ? bit : 0);
}

static unsigned units_of(unsigned words)
{
	return (unsigned)(sizeof(struct fib_node) + words * sizeof(uint32_t) + FIB_UNIT - 1) / FIB_UNIT;
}

uint32_t fib_build_node(const struct fib_build *b, bool removal)
{
	bool shorter = build_has_shorter(b);
	uint32_t unit = fib_arena_alloc(units_of(b->n + (shorter ? FIB_SHORTER_WORDS : 0)), removal);
	unsigned i, base = 0;
	struct fib_node *node;

	if (unit == 0)
		return 0;
	node = fib_at(unit);
	memcpy(node->runs, b->runs, sizeof(node->runs));
	node->skip = b->skip | (shorter ? FIB_SHORTER : 0);
	node->cover = b->cover;
	memcpy(node->words, b->words, b->n * sizeof(*node->words));
	if (shorter)
		memcpy(node->words + b->n, b->shorter, sizeof(b->shorter));
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
	return (node->skip & FIB_SHORTER) && (node->words[node_runs(node) + number / 32] >> number % 32 & 1);
}

void fib_node_retire_all(uint32_t word)
{
	const struct fib_node *node = fib_child(word);
	unsigned i, n = node_runs(node);

	for (i = 0; i < n; i++)
		if (!fib_is_leaf(node->words[i]))
			fib_node_retire_all(node->words[i]);
	fib_arena_retire(word);
}

bool fib_node_retire_share(uint32_t *word, unsigned *left)
{
	struct fib_node *node = fib_is_leaf(*word) ? NULL : fib_child(*word);
	unsigned i, n = node ? node_runs(node) : 0;

	for (i = 0; i < n; i++)
		if (!fib_node_retire_share(&node->words[i], left))
			return false;
	if (node == NULL || *left == 0)
		return node == NULL;
	--*left;
	fib_arena_retire(*word);
	*word = FIB_INHERIT;
	return true;
}
