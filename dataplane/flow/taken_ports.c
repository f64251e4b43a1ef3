// SPDX-License-Identifier: Apache-2.0
#include "flow/taken_ports.h"

#include <netinet/in.h>

#include <rte_byteorder.h>
#include <rte_spinlock.h>

#include "flow/key.h"

#define BLOCK 256u    // ports of one line
#define NO_BLOCK 256u // no port is in it
#define LINES 6u      // of one set
#define SETS 4096u
#define PEERS 4096u

// The ports of a block towards one peer. An all-zero line is unused.
struct ports_line {
	uint64_t hash; // keyed, of the peer and the block
	uint64_t taken[BLOCK / 64];
};

static struct ports_set {
	rte_spinlock_t lock;
	struct ports_line line[LINES];
} __rte_aligned(256) ports_sets[SETS];

// A search that found all ports of a pool in use is not repeated before a translated flow to the same peer has ended.
// What full says is true as long as ended is what it was; peers share entries.
static struct {
	uint32_t ended; // flows, their number
	uint64_t full;  // hash of the peer and the pool, and ended + 1; 0: none
} ports_peers[PEERS];

static bool ports_known; // some line was ever in use

static uint64_t ports_hash(const struct flow_key *answer, uint32_t block)
{
	struct flow_key k = *answer;
	uint64_t hash;

	if (k.proto == IPPROTO_ICMP || k.proto == IPPROTO_ICMPV6)
		k.src_port = 0; // the identifier again
	k.dst_port = (uint16_t)block;
	hash = flow_key_hash(&k);
	return hash + (hash == 0);
}

static struct ports_set *ports_lock(uint64_t hash)
{
	struct ports_set *s = &ports_sets[hash % SETS];

	rte_spinlock_lock(&s->lock);
	return s;
}

static struct ports_line *ports_find(struct ports_set *s, uint64_t hash)
{
	unsigned i;

	for (i = 0; i < LINES; i++)
		if (s->line[i].hash == hash)
			return &s->line[i];
	return NULL;
}

static unsigned ports_count(const struct ports_line *l)
{
	unsigned i, n = 0;

	for (i = 0; i < RTE_DIM(l->taken); i++)
		n += (unsigned)__builtin_popcountll(l->taken[i]);
	return n;
}

// Takes the line that knows least for another block.
static struct ports_line *ports_replace(struct ports_set *s, uint64_t hash)
{
	struct ports_line *l = &s->line[0];
	unsigned i;

	for (i = 1; i < LINES; i++)
		if (ports_count(&s->line[i]) < ports_count(l))
			l = &s->line[i];
	*l = (struct ports_line){.hash = hash};
	__atomic_store_n(&ports_known, true, __ATOMIC_RELEASE);
	return l;
}

// Takes the first port from `from` up to `last`, both counted within the block; -1: all are taken.
static int ports_take(struct ports_line *l, unsigned from, unsigned last)
{
	unsigned i, port;

	for (i = from / 64; i <= last / 64; i++) {
		uint64_t open = ~l->taken[i];

		if (i == from / 64)
			open &= ~0ull << from % 64;
		if (open == 0)
			continue;
		port = i * 64 + (unsigned)__builtin_ctzll(open);
		if (port > last)
			return -1;
		l->taken[i] |= 1ull << port % 64;
		return (int)port;
	}
	return -1;
}

static int ports_next_of_block(const struct flow_key *answer, uint32_t block, unsigned from, unsigned last)
{
	uint64_t hash = ports_hash(answer, block);
	struct ports_set *s = ports_lock(hash);
	struct ports_line *l = ports_find(s, hash);
	int port = ports_take(l ? l : ports_replace(s, hash), from, last);

	rte_spinlock_unlock(&s->lock);
	return port;
}

static int ports_next_of_range(const struct flow_key *answer, uint32_t from, uint32_t end)
{
	uint32_t block, last;
	int port;

	for (; from < end; from = last + 1) {
		block = from / BLOCK;
		last = RTE_MIN(end - 1, block * BLOCK + BLOCK - 1);
		port = ports_next_of_block(answer, block, from % BLOCK, last % BLOCK);
		if (port >= 0)
			return (int)(block * BLOCK) + port;
	}
	return -1;
}

static uint64_t ports_full(uint64_t peer, uint16_t first, uint32_t n, uint32_t ended)
{
	return (uint64_t)((uint32_t)(peer >> 32) ^ (uint32_t)first << 16 ^ n) << 32 | (uint32_t)(ended + 1);
}

int taken_ports_next(const struct flow_key *answer, uint16_t first, uint32_t n, uint16_t after)
{
	uint64_t peer = ports_hash(answer, NO_BLOCK), full;
	uint32_t at = (uint32_t)peer % PEERS, ended = __atomic_load_n(&ports_peers[at].ended, __ATOMIC_ACQUIRE);
	int port;

	full = ports_full(peer, first, n, ended);
	if (__atomic_load_n(&ports_peers[at].full, __ATOMIC_RELAXED) == full)
		return -1;
	port = ports_next_of_range(answer, after + 1u, first + n);
	if (port < 0)
		port = ports_next_of_range(answer, first, after + 1u);
	if (port < 0)
		__atomic_store_n(&ports_peers[at].full, full, __ATOMIC_RELAXED);
	return port;
}

void taken_ports_forget(const struct flow_key *answer)
{
	uint32_t port = rte_be_to_cpu_16(answer->dst_port), at;
	uint64_t bit = 1ull << port % 64;
	bool known;
	struct ports_line *l;
	struct ports_set *s;
	uint64_t hash;

	if (!__atomic_load_n(&ports_known, __ATOMIC_ACQUIRE))
		return;
	hash = ports_hash(answer, port / BLOCK);
	s = ports_lock(hash);
	l = ports_find(s, hash);
	known = l && (l->taken[port % BLOCK / 64] & bit);
	if (known)
		l->taken[port % BLOCK / 64] &= ~bit;
	rte_spinlock_unlock(&s->lock);
	if (!known)
		return;
	at = (uint32_t)ports_hash(answer, NO_BLOCK) % PEERS;
	__atomic_add_fetch(&ports_peers[at].ended, 1, __ATOMIC_RELEASE);
}
