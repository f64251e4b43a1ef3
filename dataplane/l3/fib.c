// SPDX-License-Identifier: Apache-2.0
// FIB, the master's side. Workers read while it changes; why they see the old or the new route and nothing else:
//
// - Every route owns words of one level only (the table, or the nodes of one depth), and each address looks at one word per
//   level. A change builds the new node aside and stores one word in the level above; the covers of children change in
//   place, one store each. So each address sees a change happen in one store, and routes of other levels not at all.
// - A node that has been replaced stays as it was at that moment until every worker has passed a quiescent state, and so do
//   the nodes below it. A worker that is still in it sees the FIB of that moment, and never steps back in time further down,
//   because what it had been led to was still linked then.
// - A worker reads the levels one after the other, so several changes may fall between. If it ends on a leaf with a route,
//   that route was the best match when the leaf was read. If it ends on "inherit", the maximum of what it passed holds: when
//   that word was read nothing longer existed, for otherwise it would have seen it later on, unless a removal came between.
//   Therefore each removal first counts fib_removals up; a worker that ends on "inherit" and finds the count changed since it
//   began looks the address up again. It never waits for the master: each retry means that another removal was made.
// - Growing to the direct table changes no result: covers take in shorter routes that the worker has passed anyway, then
//   the root changes in one store.
#include "l3/fib.h"

#include <errno.h>
#include <stdlib.h>

#include "base/rcu.h"
#include "l3/fib_table.h"
#include "l3/fib_removals.h"

#define MAX_DEPTH 17 // nodes on one path

uint32_t fib_removals __rte_cache_aligned;
static uint64_t fibs; // how many there are

// The way down to a prefix: the word in the table, then nodes from the table's bits on, one each FIB_STRIDE bits, as far as
// they lead towards the prefix. links[i] is the word that refers to node i.
struct path {
	const uint8_t *key;
	unsigned bits; // of the table
	unsigned n;
	uint32_t *links[MAX_DEPTH];
};

static unsigned key16(const struct ip_prefix *p)
{
	return (unsigned)p->addr.bytes[0] << 8 | p->addr.bytes[1];
}

static unsigned path_depth(const struct path *path, unsigned i)
{
	return path->bits + i * FIB_STRIDE;
}

static struct fib_node *path_node(const struct path *path, unsigned i)
{
	return fib_child(*path->links[i]);
}

static unsigned path_slot(const struct path *path, unsigned i)
{
	return path->key[path_depth(path, i) / 8];
}

// Ends at the node that holds routes of this length, or earlier where there is no such node.
static struct path path_find(const struct fib *fib, const struct ip_prefix *p)
{
	struct path path = {.key = p->addr.bytes, .bits = fib_root_bits(fib->root)};
	uint32_t *link = fib_root_word(fib->root, key16(p));

	while (!fib_is_leaf(*link)) {
		struct fib_node *node = fib_child(*link);
		unsigned depth = path_depth(&path, path.n);

		path.links[path.n++] = link;
		if (p->len <= depth + FIB_STRIDE)
			break;
		link = &node->words[fib_node_index(node, p->addr.bytes[depth / 8])];
	}
	return path;
}

// The route's span in a node at this depth.
static struct fib_span span_at(const struct ip_prefix *p, unsigned depth)
{
	unsigned rel = p->len - depth < FIB_STRIDE ? p->len - depth : FIB_STRIDE;

	return fib_span(p->addr.bytes[depth / 8], rel, FIB_STRIDE);
}

static void mark_shorter(struct fib_build *b, unsigned number, bool value)
{
	if (number < FIB_SLOTS)
		b->shorter[number / 64] = (b->shorter[number / 64] & ~(1ull << number % 64)) | (uint64_t)value << number % 64;
}

static bool node_has(const struct fib_node *node, const struct fib_span *span, unsigned len)
{
	uint32_t word;

	if (span->number < FIB_SLOTS)
		return fib_node_has_shorter(node, span->number);
	word = node->words[fib_node_index(node, span->from)];
	return fib_leaf_is(fib_is_leaf(word) ? word : fib_child(word)->cover, len);
}

// Puts the new node in the place of the path's last one.
static int path_replace(const struct path *path, const struct fib_build *b, bool removal)
{
	uint32_t *link = path->links[path->n - 1];
	uint32_t old = *link, word = fib_build_node(b, removal);

	if (word == 0)
		return -ENOMEM;
	fib_store(link, word);
	fib_arena_retire(old);
	return 0;
}

static void chain_free(uint32_t word)
{
	while (word != 0) {
		const struct fib_node *node = fib_child(word);
		uint32_t child = 0;
		unsigned i, last = fib_node_index(node, FIB_SLOTS - 1);

		for (i = node->base[0]; i <= last; i++)
			child = fib_is_leaf(node->words[i]) ? child : node->words[i];
		fib_arena_free(word);
		word = child;
	}
}

// New nodes from this depth down to the route, the first of them with the given cover. 0: no memory.
static uint32_t chain_build(const struct ip_prefix *p, unsigned depth, uint32_t leaf, uint32_t cover)
{
	struct fib_change put = {.kind = FIB_PUT, .word = leaf};
	unsigned d = (p->len - 1u) / FIB_STRIDE * FIB_STRIDE;
	uint32_t below = 0;
	struct fib_build b;

	for (;; d -= FIB_STRIDE) {
		struct fib_span span = span_at(p, d);

		fib_build_edit(&b, NULL, &span, &put);
		if (below == 0)
			mark_shorter(&b, span.number, true);
		if (d == depth)
			b.cover = cover;
		put.word = fib_build_node(&b, false);
		if (put.word == 0)
			chain_free(below);
		if (put.word == 0 || d == depth)
			return put.word;
		below = put.word;
	}
}

// The route's node does not exist yet.
static int set_new(struct fib *fib, const struct path *path, const struct ip_prefix *p, uint32_t leaf)
{
	unsigned depth = path_depth(path, path->n);
	uint32_t *link = fib_root_word(fib->root, key16(p));
	struct fib_change put = {.kind = FIB_PUT};
	const struct fib_node *node = NULL;
	struct fib_span span;
	struct fib_build b;
	int ret;

	if (path->n > 0) {
		node = path_node(path, path->n - 1);
		span = span_at(p, depth - FIB_STRIDE);
		link = NULL;
	}
	put.word = chain_build(p, depth, leaf, node ? node->words[fib_node_index(node, span.from)] : *link);
	if (put.word == 0)
		return -ENOMEM;
	if (node == NULL) {
		fib_store(link, put.word);
		return 0;
	}
	fib_build_edit(&b, node, &span, &put);
	ret = path_replace(path, &b, false);
	if (ret < 0)
		chain_free(put.word);
	return ret;
}

// A node holds routes of this length. created: whether this one is new.
static int set_in_node(const struct path *path, const struct ip_prefix *p, uint32_t leaf, bool *created)
{
	const struct fib_node *node = path_node(path, path->n - 1);
	struct fib_span span = span_at(p, path_depth(path, path->n - 1));
	struct fib_change add = {.kind = FIB_ADD, .len = p->len, .word = leaf};
	struct fib_build b;
	int ret = 0;

	*created = !node_has(node, &span, p->len);
	if (span.number < FIB_SLOTS || fib_is_leaf(node->words[fib_node_index(node, span.from)])) {
		fib_build_edit(&b, node, &span, &add);
		mark_shorter(&b, span.number, true);
		ret = path_replace(path, &b, false);
	}
	if (ret == 0)
		fib_node_change_covers(path_node(path, path->n - 1), &span, &add);
	return ret;
}

static bool valid(const struct fib *fib, const struct ip_prefix *p)
{
	return p->addr.family == fib->family && p->len <= ip_bits(fib->family);
}

int fib_set(struct fib *fib, const struct ip_prefix *prefix, uint32_t nexthop)
{
	uint32_t leaf = fib_leaf(prefix->len, nexthop);
	unsigned bits = fib_root_bits(fib->root);
	struct path path;
	bool created;
	int ret = 0;

	if (!valid(fib, prefix) || nexthop == FIB_NONE || nexthop > FIB_MAX_NEXTHOP)
		return -EINVAL;
	if (prefix->len <= bits) {
		const struct fib_change add = {.kind = FIB_ADD, .len = prefix->len, .word = leaf};

		created = !fib_table_has(fib, key16(prefix), prefix->len);
		fib_table_change(fib, key16(prefix), &add);
	} else {
		path = path_find(fib, prefix);
		created = true;
		if (path.n == 0 || prefix->len > path_depth(&path, path.n))
			ret = set_new(fib, &path, prefix, leaf);
		else
			ret = set_in_node(&path, prefix, leaf, &created);
	}
	if (ret == 0 && created && ++fib->routes > FIB_ROOT16)
		fib_table_grow(fib);
	return ret;
}

// The last node of the path becomes b; if b is empty the node goes, its cover takes its place in the node above, and so on.
static int shrink(struct path *path, struct fib_build *b)
{
	uint32_t gone[MAX_DEPTH];
	unsigned i, n_gone = 0;
	int ret;

	while (path->n > 0 && fib_build_empty(b)) {
		unsigned up = path->n - 1;
		struct fib_change put = {.kind = FIB_PUT, .word = path_node(path, up)->cover};

		gone[n_gone++] = *path->links[up];
		path->n = up;
		if (up > 0) {
			struct fib_span span = fib_span(path_slot(path, up - 1), FIB_STRIDE, FIB_STRIDE);

			fib_build_edit(b, path_node(path, up - 1), &span, &put);
		} else {
			fib_store(path->links[0], put.word);
		}
	}
	if (path->n > 0) {
		ret = path_replace(path, b, true);
		if (ret < 0)
			return ret;
	}
	for (i = 0; i < n_gone; i++)
		fib_arena_retire(gone[i]);
	return 0;
}

static int unset_in_node(struct path *path, const struct ip_prefix *p, const struct fib_change *remove)
{
	struct fib_node *node = path_node(path, path->n - 1);
	struct fib_span span = span_at(p, path_depth(path, path->n - 1));
	struct fib_build b;
	int ret = 0;

	if (!node_has(node, &span, p->len))
		return -ENOENT;
	if (span.number < FIB_SLOTS || fib_is_leaf(node->words[fib_node_index(node, span.from)])) {
		fib_build_edit(&b, node, &span, remove);
		mark_shorter(&b, span.number, false);
		ret = shrink(path, &b);
	}
	if (ret < 0)
		return ret;
	fib_node_change_covers(node, &span, remove); // the old node's children are the new one's
	return 0;
}

int fib_unset(struct fib *fib, const struct ip_prefix *prefix, const struct ip_prefix *cover, uint32_t cover_nexthop)
{
	struct fib_change remove = {.kind = FIB_REMOVE, .len = prefix->len, .word = FIB_INHERIT};
	unsigned depth, bits = fib_root_bits(fib->root);
	uint32_t fallback = cover ? fib_leaf(cover->len, cover_nexthop) : FIB_INHERIT;
	struct path path;
	int ret;

	if (!valid(fib, prefix))
		return -EINVAL;
	__atomic_store_n(&fib_removals, fib_removals + 1, __ATOMIC_RELEASE);
	if (prefix->len <= bits) {
		if (!fib_table_has(fib, key16(prefix), prefix->len))
			return -ENOENT;
		remove.word = fallback;
		fib_table_change(fib, key16(prefix), &remove);
	} else {
		path = path_find(fib, prefix);
		if (path.n == 0 || prefix->len > path_depth(&path, path.n))
			return -ENOENT;
		depth = path_depth(&path, path.n - 1);
		if (cover != NULL && cover->len > depth) // the same level's; what is shorter is inherited
			remove.word = fallback;
		ret = unset_in_node(&path, prefix, &remove);
		if (ret < 0)
			return ret;
	}
	if (--fib->routes == 0)
		fib_table_reset(fib);
	return 0;
}

struct fib *fib_create(enum family family)
{
	struct fib *fib = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*fib));

	if (fib == NULL)
		return NULL;
	*fib = (struct fib){.word = FIB_INHERIT, .root = (uint64_t)(uintptr_t)&fib->word, .family = (uint8_t)family};
	fibs++;
	return fib;
}

static void fib_free(void *arg)
{
	free(arg);
	fibs--;
}

void fib_destroy(struct fib *fib)
{
	const uint32_t *table;
	unsigned i;

	if (fib == NULL)
		return;
	table = fib_root_table(fib->root);
	for (i = 0; i < 1u << fib_root_bits(fib->root); i++)
		if (!fib_is_leaf(table[i]))
			fib_node_retire_all(table[i]);
	fib_table_retire(fib);
	fib_arena_flush();
	rcu_defer(fib_free, fib);
}

uint32_t fib_routes(const struct fib *fib)
{
	return fib->routes;
}

uint64_t fib_memory(void)
{
	return fib_arena_used() + fib_table_memory() + fibs * sizeof(struct fib);
}
