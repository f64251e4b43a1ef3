// SPDX-License-Identifier: Apache-2.0
// RIB: a Patricia trie. A node is a route, or a branch between two subtrees, or both; a branch that is no route has two
// children. IPv4 nodes take 32 bytes, IPv6 nodes 48, and n routes at most 2n - 1 nodes.
#include "l3/rib.h"

#include <errno.h>
#include <stdlib.h>

#include <sys/mman.h>

#include <rte_byteorder.h>
#include <rte_common.h>

#define SLAB_BYTES (2u << 20)

struct node {
	struct node *child[2]; // by the first bit below the prefix; child[0] links free nodes
	struct rib_route route;
	uint8_t len;
	bool is_route;
	uint8_t key[]; // 4 or 16 bytes, network byte order, zero after len; see node_size()
};

struct rib {
	struct node *root;
	uint32_t count;
	uint8_t family;
};

// An address as a number whose top bit is the first one. IPv4 uses the upper half of hi.
struct key {
	uint64_t hi, lo;
};

// Nodes of one family come from slabs that all RIBs share and that are kept for reuse.
static struct pool {
	struct node *free;
	uint64_t used; // nodes
} pools[2];

static uint64_t ribs;

static struct pool *pool_of(const struct rib *rib)
{
	return &pools[rib->family == IPV6];
}

static size_t node_size(uint8_t family)
{
	return RTE_ALIGN_CEIL(offsetof(struct node, key) + ip_bytes(family), 16);
}

static int pool_fill(struct pool *pool, size_t size)
{
	uint8_t *slab = aligned_alloc(SLAB_BYTES, SLAB_BYTES);
	size_t at;

	if (slab == NULL)
		return -ENOMEM;
	madvise(slab, SLAB_BYTES, MADV_HUGEPAGE);
	for (at = SLAB_BYTES / size * size; at > 0; at -= size) {
		struct node *node = (struct node *)(slab + at - size);

		node->child[0] = pool->free;
		pool->free = node;
	}
	return 0;
}

static struct key rib_key_load(uint8_t family, const uint8_t *bytes)
{
	rte_be64_t words[2];
	rte_be32_t v4;

	if (family == IPV4) {
		memcpy(&v4, bytes, sizeof(v4));
		return (struct key){.hi = (uint64_t)rte_be_to_cpu_32(v4) << 32};
	}
	memcpy(words, bytes, sizeof(words));
	return (struct key){.hi = rte_be_to_cpu_64(words[0]), .lo = rte_be_to_cpu_64(words[1])};
}

static unsigned key_bit(struct key k, unsigned bit)
{
	return (bit < 64 ? k.hi >> (63 - bit) : k.lo >> (127 - bit)) & 1;
}

// How many leading bits are equal, at most max.
static unsigned key_common(struct key a, struct key b, unsigned max)
{
	unsigned n = 128;

	if (a.hi != b.hi)
		n = (unsigned)__builtin_clzll(a.hi ^ b.hi);
	else if (a.lo != b.lo)
		n = 64 + (unsigned)__builtin_clzll(a.lo ^ b.lo);
	return RTE_MIN(n, max);
}

static struct node *node_new(const struct rib *rib, const struct ip_addr *addr, unsigned len)
{
	struct pool *pool = pool_of(rib);
	struct ip_prefix p = ip_prefix_of(addr, (uint8_t)len);
	struct node *node;

	if (pool->free == NULL && pool_fill(pool, node_size(rib->family)) < 0)
		return NULL;
	node = pool->free;
	pool->free = node->child[0];
	pool->used++;
	*node = (struct node){.len = (uint8_t)len};
	memcpy(node->key, p.addr.bytes, ip_bytes(rib->family));
	return node;
}

static void node_free(const struct rib *rib, struct node *node)
{
	struct pool *pool = pool_of(rib);

	node->child[0] = pool->free;
	pool->free = node;
	pool->used--;
}

static void node_free_all(const struct rib *rib, struct node *node)
{
	if (node == NULL)
		return;
	node_free_all(rib, node->child[0]);
	node_free_all(rib, node->child[1]);
	node_free(rib, node);
}

static struct key node_key(const struct rib *rib, const struct node *node)
{
	return rib_key_load(rib->family, node->key);
}

static bool node_contains(const struct rib *rib, const struct node *node, struct key k, unsigned len)
{
	return node->len <= len && key_common(node_key(rib, node), k, node->len) == node->len;
}

static struct rib_route *node_export(const struct rib *rib, struct node *node, struct ip_prefix *out)
{
	if (node == NULL)
		return NULL;
	if (out != NULL) {
		*out = (struct ip_prefix){.addr.family = rib->family, .len = node->len};
		memcpy(out->addr.bytes, node->key, ip_bytes(rib->family));
	}
	return &node->route;
}

struct rib *rib_create(enum family family)
{
	struct rib *rib = calloc(1, sizeof(*rib));

	if (rib == NULL)
		return NULL;
	rib->family = (uint8_t)family;
	ribs++;
	return rib;
}

void rib_destroy(struct rib *rib)
{
	if (rib == NULL)
		return;
	node_free_all(rib, rib->root);
	free(rib);
	ribs--;
}

uint32_t rib_count(const struct rib *rib)
{
	return rib->count;
}

uint64_t rib_memory(void)
{
	return pools[0].used * node_size(IPV4) + pools[1].used * node_size(IPV6) + ribs * sizeof(struct rib);
}

// Returns the link that refers to the node of exactly this prefix, or NULL. *above receives the link to the node above
// it, NULL at the root.
static struct node **rib_find(const struct rib *rib, const struct ip_prefix *p, struct node ***above)
{
	struct key k = rib_key_load(rib->family, p->addr.bytes);
	struct node **link = (struct node **)(uintptr_t)&rib->root;

	*above = NULL;
	while (*link != NULL && node_contains(rib, *link, k, p->len)) {
		if ((*link)->len == p->len)
			return link;
		*above = link;
		link = &(*link)->child[key_bit(k, (*link)->len)];
	}
	return NULL;
}

struct rib_route *rib_get(const struct rib *rib, const struct ip_prefix *p)
{
	struct node **above, **link = rib_find(rib, p, &above);

	return link != NULL && (*link)->is_route ? &(*link)->route : NULL;
}

// Puts a new node for the prefix in the place of *link, which holds a node that does not contain it, or nothing.
static struct node *rib_insert(struct rib *rib, struct node **link, const struct ip_prefix *p, struct key k)
{
	struct node *next = *link, *node = node_new(rib, &p->addr, p->len), *branch;
	unsigned common;

	if (node == NULL || next == NULL) {
		*link = node ? node : next;
		return node;
	}
	common = key_common(node_key(rib, next), k, RTE_MIN(next->len, p->len));
	if (common == p->len) { // the new one contains the old one
		node->child[key_bit(node_key(rib, next), common)] = next;
		*link = node;
		return node;
	}
	branch = node_new(rib, &p->addr, common);
	if (branch == NULL) {
		node_free(rib, node);
		return NULL;
	}
	branch->child[key_bit(k, common)] = node;
	branch->child[!key_bit(k, common)] = next;
	*link = branch;
	return node;
}

struct rib_route *rib_add(struct rib *rib, const struct ip_prefix *p, bool *created)
{
	struct key k = rib_key_load(rib->family, p->addr.bytes);
	struct node **link = &rib->root, *node;

	while (*link != NULL && (*link)->len < p->len && node_contains(rib, *link, k, p->len))
		link = &(*link)->child[key_bit(k, (*link)->len)];
	node = *link;
	if (node == NULL || node->len != p->len || !node_contains(rib, node, k, p->len))
		node = rib_insert(rib, link, p, k);
	if (node == NULL)
		return NULL;
	*created = !node->is_route;
	if (*created) {
		node->is_route = true;
		node->route = (struct rib_route){0};
		rib->count++;
	}
	return &node->route;
}

// Removes the node, unless it is a route or a branch.
static void rib_prune(struct rib *rib, struct node **link)
{
	struct node *node = *link;

	if (node->is_route || (node->child[0] != NULL && node->child[1] != NULL))
		return;
	*link = node->child[0] ? node->child[0] : node->child[1];
	node_free(rib, node);
}

int rib_del(struct rib *rib, const struct ip_prefix *p)
{
	struct node **above, **link = rib_find(rib, p, &above);

	if (link == NULL || !(*link)->is_route)
		return -ENOENT;
	(*link)->is_route = false;
	rib->count--;
	rib_prune(rib, link);
	if (above != NULL)
		rib_prune(rib, above);
	return 0;
}

// The longest route of length <= max that contains the key.
static struct node *rib_longest(const struct rib *rib, struct key k, int max)
{
	struct node *node = rib->root, *best = NULL;

	while (node != NULL && node->len <= max && node_contains(rib, node, k, node->len)) {
		if (node->is_route)
			best = node;
		if (node->len == max)
			break;
		node = node->child[key_bit(k, node->len)];
	}
	return best;
}

struct rib_route *rib_cover(const struct rib *rib, const struct ip_prefix *p, struct ip_prefix *cover)
{
	return node_export(rib, rib_longest(rib, rib_key_load(rib->family, p->addr.bytes), p->len - 1), cover);
}

struct rib_route *rib_match(const struct rib *rib, const struct ip_addr *addr, struct ip_prefix *match)
{
	return node_export(rib, rib_longest(rib, rib_key_load(rib->family, addr->bytes), (int)ip_bits(rib->family)),
			   match);
}

// The first route of a subtree: a branch comes before its children.
static struct node *rib_first(struct node *node)
{
	while (node != NULL && !node->is_route)
		node = node->child[0];
	return node;
}

// On the way down to p, `after` is the last subtree that was left on its right.
struct rib_route *rib_next(const struct rib *rib, const struct ip_prefix *p, struct ip_prefix *out)
{
	struct node *node = rib->root, *after = NULL;
	unsigned bit;
	struct key k;

	if (p == NULL)
		return node_export(rib, rib_first(node), out);
	k = rib_key_load(rib->family, p->addr.bytes);
	while (node != NULL && node->len < p->len && node_contains(rib, node, k, p->len)) {
		bit = key_bit(k, node->len);
		if (bit == 0 && node->child[1] != NULL)
			after = node->child[1];
		node = node->child[bit];
	}
	if (node != NULL) {
		unsigned common = key_common(node_key(rib, node), k, RTE_MIN(node->len, p->len));

		if (common == p->len && node->len == p->len) // p itself
			after = node->child[0] ? node->child[0] : node->child[1] ? node->child[1] : after;
		else if (common == p->len || key_bit(node_key(rib, node), common) == 1) // below p, or to its right
			after = node;
	}
	return node_export(rib, rib_first(after), out);
}
