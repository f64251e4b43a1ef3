// SPDX-License-Identifier: Apache-2.0
// FIB, the master's side. Workers read while it changes. They see the old or the new route and nothing else, because:
//
// - Every route owns words of one level only (the table, or the nodes of one depth), and a lookup reads one word per
//   level. A change builds the new node aside and stores one word in the level above; the covers of children change in
//   place, one store each. So for each address a change is one store, and it does not touch the routes of other levels.
// - A replaced node and the nodes below it keep the state of that moment until every worker has passed a quiescent
//   state. A worker that is still in such a node sees the FIB of that moment. Further down it never sees an older
//   state, because the nodes that it reaches were still linked at that moment.
// - A worker reads the levels one after the other, so several changes may happen in between. If it ends on a leaf with
//   a route, that route was the best match when the leaf was read. If it ends on "inherit", the maximum of the words
//   that it passed is the answer: a longer route that existed when that word was read would have been seen further
//   down, unless a removal came in between. Therefore each removal first increments fib_removals, and a worker that
//   ends on "inherit" retries if the count has changed since it began. It never waits for the master: each retry means
//   that another removal was made.
// - Growing to the direct table copies the levels that it replaces and the first nodes below them, then changes the
//   root in one store.
#include "l3/fib.h"

#include <errno.h>
#include <stdlib.h>

#include "base/rcu.h"
#include "l3/fib_private.h"

#define MAX_NODES 16 // on one path

uint32_t fib_removals __rte_cache_aligned;
static uint64_t fibs; // their number

// The path to a prefix: the table's word, then nodes. It includes a node if the prefix matches the node's skip and
// reaches beyond it.
struct path {
	unsigned n;
	uint32_t *links[MAX_NODES]; // links[i] is the word that refers to node i
	unsigned depth[MAX_NODES];  // bits above it
	uint32_t *end;              // the word below the last node (or the table's), its position in bits
	unsigned position;
};

static unsigned fib_key16(const struct ip_prefix *p)
{
	return (unsigned)p->addr.bytes[0] << 8 | p->addr.bytes[1];
}

// The depth of the node that holds the prefix, in a trie without direct table.
static unsigned fib_level(const struct ip_prefix *p)
{
	return (p->len - 1u) / FIB_STRIDE * FIB_STRIDE;
}

static struct fib_node *path_node(const struct path *path, unsigned i)
{
	return fib_child(*path->links[i]);
}

// How many whole bytes of the key from this position on are equal to the skip.
static unsigned common_bytes(uint64_t skip, const struct ip_prefix *p, unsigned position)
{
	unsigned i, n = fib_skip_bits(skip) / 8;

	for (i = 0; i < n && (uint8_t)(skip >> (56 - 8 * i)) == p->addr.bytes[position / 8 + i]; i++)
		;
	return i;
}

// Ends at the node that holds routes of this length, or above it if there is none. The prefix must be longer than the
// bits that the table covers.
static struct path path_find(const struct fib *fib, const struct ip_prefix *p)
{
	struct path path = {.end = fib_root_word(fib->root, (uint64_t)fib_key16(p) << 48),
			    .position = fib_root_bits(fib->root)};

	while (!fib_is_leaf(*path.end) && path.position <= fib_level(p)) {
		struct fib_node *node = fib_child(*path.end);
		unsigned depth = path.position + fib_skip_bits(node->skip);

		if (depth > fib_level(p) || common_bytes(node->skip, p, path.position) * 8 < fib_skip_bits(node->skip))
			break;
		path.links[path.n] = path.end;
		path.depth[path.n++] = depth;
		path.end = &node->words[fib_node_index(node, p->addr.bytes[depth / 8])];
		path.position = depth + FIB_STRIDE;
	}
	return path;
}

// Whether the path's last node is the one that holds (or would hold) the prefix.
static bool path_complete(const struct path *path, const struct ip_prefix *p)
{
	return path->n > 0 && path->depth[path->n - 1] == fib_level(p);
}

// The route's span in a node at this depth.
static struct fib_span span_at(const struct ip_prefix *p, unsigned depth)
{
	unsigned rel = p->len - depth < FIB_STRIDE ? p->len - depth : FIB_STRIDE;

	return fib_span(p->addr.bytes[depth / 8], rel, FIB_STRIDE);
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
		struct fib_build b;
		unsigned slot;

		fib_build_copy(&b, fib_child(word));
		fib_arena_free(word);
		word = fib_build_lone_child(&b, &slot);
	}
}

// Builds a node for the route alone, for a word at this position to refer to, with further nodes above it where one
// cannot skip enough. Returns the word of the topmost, 0: no memory.
static uint32_t chain_build(const struct ip_prefix *p, unsigned position, uint32_t leaf, uint32_t cover)
{
	struct fib_change fill = {.kind = FIB_FILL, .word = leaf};
	unsigned skip, depth = fib_level(p);
	uint32_t below = 0;
	struct fib_build b;

	for (;; depth -= skip * 8 + FIB_STRIDE) {
		struct fib_span span = span_at(p, depth);

		skip = RTE_MIN((depth - position) / 8, (unsigned)FIB_MAX_SKIP);
		fib_build_edit(&b, NULL, &span, &fill);
		b.skip = fib_skip_of(&p->addr.bytes[depth / 8 - skip], skip);
		if (below == 0)
			fib_build_mark(&b, &span, true);
		if (depth == position + skip * 8)
			b.cover = cover;
		fill.word = fib_build_node(&b, false);
		if (fill.word == 0)
			chain_free(below);
		if (fill.word == 0 || depth == position + skip * 8)
			return fill.word;
		below = fill.word;
	}
}

// Adds the route as the only one below a slot of the last node (or the table).
static int set_below(const struct path *path, const struct ip_prefix *p, uint32_t leaf)
{
	struct fib_change fill = {.kind = FIB_FILL, .word = chain_build(p, path->position, leaf, *path->end)};
	struct fib_span span;
	struct fib_build b;
	int ret;

	if (fill.word == 0)
		return -ENOMEM;
	if (path->n == 0) {
		fib_store(path->end, fill.word);
		return 0;
	}
	span = span_at(p, path->depth[path->n - 1]);
	fib_build_edit(&b, path_node(path, path->n - 1), &span, &fill);
	ret = path_replace(path, &b, false);
	if (ret < 0)
		chain_free(fill.word);
	return ret;
}

// The node below the path skips over the route's level, or other bytes than the route's. A new node goes between, at
// the first byte that differs or at the route's level; the old one is copied to skip less.
static int set_between(const struct path *path, const struct ip_prefix *p, uint32_t leaf)
{
	const struct fib_node *node = fib_child(*path->end);
	unsigned same = common_bytes(node->skip, p, path->position);
	unsigned depth = RTE_MIN(path->position + 8 * same, fib_level(p)), n = (depth - path->position) / 8;
	struct fib_span span = span_at(p, depth),
			rest = fib_span((uint8_t)(node->skip >> (56 - 8 * n)), FIB_STRIDE, FIB_STRIDE);
	struct fib_change change = {.kind = FIB_ADD, .len = p->len, .word = leaf}, fill_rest = {.kind = FIB_FILL};
	uint32_t chain = 0, word = 0, old = *path->end;
	struct fib_build b;

	fib_build_copy(&b, node);
	b.skip = fib_skip_from(b.skip, n + 1);
	b.cover = FIB_INHERIT;
	if (depth == fib_level(p) && rest.from >= span.from && rest.from < span.to)
		b.cover = leaf;
	fill_rest.word = fib_build_node(&b, false);
	if (depth < fib_level(p)) {
		chain = chain_build(p, depth + FIB_STRIDE, leaf, FIB_INHERIT);
		change = (struct fib_change){.kind = FIB_FILL, .word = chain};
	}
	if (fill_rest.word != 0 && change.word != 0) {
		fib_build_edit(&b, NULL, &rest, &fill_rest);
		fib_build_again(&b, &span, &change);
		if (depth == fib_level(p))
			fib_build_mark(&b, &span, true);
		b.skip = fib_skip_of(&p->addr.bytes[path->position / 8], n);
		b.cover = node->cover;
		word = fib_build_node(&b, false);
	}
	if (word == 0) {
		if (fill_rest.word != 0)
			fib_arena_free(fill_rest.word);
		chain_free(chain);
		return -ENOMEM;
	}
	fib_store(path->end, word);
	fib_arena_retire(old);
	return 0;
}

// The last node holds routes of this length. created: whether this one is new.
static int set_in_node(const struct path *path, const struct ip_prefix *p, uint32_t leaf, bool *created)
{
	const struct fib_node *node = path_node(path, path->n - 1);
	struct fib_span span = span_at(p, fib_level(p));
	struct fib_change add = {.kind = FIB_ADD, .len = p->len, .word = leaf};
	struct fib_build b;
	int ret = 0;

	*created = !node_has(node, &span, p->len);
	if (span.number < FIB_SLOTS || fib_is_leaf(*path->end)) {
		fib_build_edit(&b, node, &span, &add);
		fib_build_mark(&b, &span, true);
		ret = path_replace(path, &b, false);
	}
	if (ret == 0)
		fib_node_change_covers(path_node(path, path->n - 1), &span, &add);
	return ret;
}

static bool fib_valid(const struct fib *fib, const struct ip_prefix *p)
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

	if (!fib_valid(fib, prefix) || nexthop == FIB_NONE || nexthop > FIB_MAX_NEXTHOP)
		return -EINVAL;
	if (prefix->len <= bits) {
		const struct fib_change add = {.kind = FIB_ADD, .len = prefix->len, .word = leaf};

		created = !fib_table_has(fib, fib_key16(prefix), prefix->len);
		fib_table_change(fib, fib_key16(prefix), &add);
	} else {
		path = path_find(fib, prefix);
		created = true;
		if (path_complete(&path, prefix))
			ret = set_in_node(&path, prefix, leaf, &created);
		else
			ret = fib_is_leaf(*path.end) ? set_below(&path, prefix, leaf)
						     : set_between(&path, prefix, leaf);
	}
	if (ret < 0 || !created)
		return ret;
	fib->routes++;
	if (fib->routes > FIB_ROOT16 && fib->routes % FIB_ROOT16 == 1) // retried later if there is no memory now
		fib_table_grow(fib);
	return 0;
}

// The last node of the path would become b, which only leads to one child: the child replaces it.
static int path_skip(const struct path *path, const struct fib_build *b, uint32_t child, unsigned slot)
{
	uint64_t skip = fib_skip_join(b->skip, slot, fib_child(child)->skip);
	struct fib_build joined;
	int ret;

	if (skip == 0)
		return -E2BIG;
	fib_build_copy(&joined, fib_child(child));
	joined.skip = skip;
	joined.cover = b->cover;
	ret = path_replace(path, &joined, true);
	if (ret == 0)
		fib_arena_retire(child);
	return ret;
}

// Replaces the last node of the path, which held the prefix, by b. If b is empty, the node is removed and its cover
// takes its place in the node above, which may become empty in turn.
static int fib_shrink(struct path *path, struct fib_build *b, const struct ip_prefix *p,
		      const struct fib_change *remove)
{
	struct fib_span up, span = span_at(p, fib_level(p));
	uint32_t gone[MAX_NODES], child, cover;
	unsigned i, slot, n_gone = 0;
	int ret = -E2BIG;

	while (path->n > 0 && fib_build_empty(b)) {
		struct fib_change fill = {.kind = FIB_FILL, .word = path_node(path, path->n - 1)->cover};

		gone[n_gone++] = *path->links[--path->n];
		if (path->n > 0) {
			up = span_at(p, path->depth[path->n - 1]);
			fib_build_edit(b, path_node(path, path->n - 1), &up, &fill);
		} else {
			fib_store(path->links[0], fill.word);
		}
	}
	if (path->n > 0) {
		child = fib_build_lone_child(b, &slot);
		cover = child ? fib_child(child)->cover : FIB_INHERIT;
		if (n_gone == 0 && slot >= span.from && slot < span.to)
			cover = fib_change_leaf(remove, cover);
		if (child != 0 && cover == FIB_INHERIT)
			ret = path_skip(path, b, child, slot);
		if (ret < 0) {
			ret = path_replace(path, b, true);
			if (ret < 0)
				return ret;
			if (n_gone == 0)
				fib_node_change_covers(path_node(path, path->n - 1), &span, remove);
		}
	}
	for (i = 0; i < n_gone; i++)
		fib_arena_retire(gone[i]);
	return 0;
}

static int unset_in_node(struct path *path, const struct ip_prefix *p, const struct fib_change *remove)
{
	const struct fib_node *node = path_node(path, path->n - 1);
	struct fib_span span = span_at(p, fib_level(p));
	struct fib_build b;
	unsigned slot;

	if (!node_has(node, &span, p->len))
		return -ENOENT;
	fib_build_edit(&b, node, &span, remove);
	fib_build_mark(&b, &span, false);
	if (span.number < FIB_SLOTS || fib_is_leaf(*path->end) || fib_build_lone_child(&b, &slot) != 0)
		return fib_shrink(path, &b, p, remove);
	fib_node_change_covers(node, &span, remove);
	return 0;
}

int fib_unset(struct fib *fib, const struct ip_prefix *prefix, const struct ip_prefix *cover, uint32_t cover_nexthop)
{
	struct fib_change remove = {.kind = FIB_REMOVE, .len = prefix->len, .word = FIB_INHERIT};
	unsigned bits = fib_root_bits(fib->root);
	uint32_t fallback = cover ? fib_leaf(cover->len, cover_nexthop) : FIB_INHERIT;
	struct path path;
	int ret;

	if (!fib_valid(fib, prefix))
		return -EINVAL;
	__atomic_store_n(&fib_removals, fib_removals + 1, __ATOMIC_RELEASE);
	if (prefix->len <= bits) {
		if (!fib_table_has(fib, fib_key16(prefix), prefix->len))
			return -ENOENT;
		remove.word = fallback;
		fib_table_change(fib, fib_key16(prefix), &remove);
	} else {
		path = path_find(fib, prefix);
		if (!path_complete(&path, prefix))
			return -ENOENT;
		if (cover != NULL && cover->len > fib_level(prefix)) // of the same level; shorter routes are inherited
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
	*fib = (struct fib){.word = FIB_INHERIT, .root = fib_root(&fib->word, 0), .family = (uint8_t)family};
	fibs++;
	return fib;
}

static void fib_free(void *arg)
{
	free(arg);
	fibs--;
}

static void fib_retire_root(struct fib *fib)
{
	fib_table_retire(fib);
	fib_arena_flush();
	rcu_defer(fib_free, fib);
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
	fib_retire_root(fib);
}

bool fib_destroy_share(struct fib *fib, unsigned *left)
{
	uint32_t *table = fib_root_table(fib->root);
	unsigned i;

	for (i = 0; i < 1u << fib_root_bits(fib->root); i++)
		if (!fib_node_retire_share(&table[i], left))
			return false;
	fib_retire_root(fib);
	return true;
}

uint32_t fib_routes(const struct fib *fib)
{
	return fib->routes;
}

uint64_t fib_memory(void)
{
	return fib_arena_used() + fib_table_memory() + fibs * sizeof(struct fib);
}
