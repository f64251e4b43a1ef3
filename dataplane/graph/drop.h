// SPDX-License-Identifier: Apache-2.0
// Drop reasons: each is declared where the decision is made, with the sentence that explains it to an operator.
//
//	DROP_REASON(ip4_ttl, "The TTL had reached 0 or 1; ...");
//	...
//	return drop(m, ip4_ttl);
#pragma once

#include <stdint.h>

#include "graph/meta.h"

#define DROP_MAX 256
#define EDGE_DROP 0 // every node's first edge

struct drop_reason {
	const char *name;
	const char *text;
	uint16_t id; // 1..DROP_MAX-1, given at registration
};

void drop_reason_register(struct drop_reason *reason);
const struct drop_reason *drop_reason_get(uint16_t id); // NULL past the last one
const struct drop_reason *drop_reason_find(const char *name);

#define DROP_REASON(sym, sentence)                                               \
	static struct drop_reason drop_##sym = {.name = #sym, .text = sentence}; \
	__attribute__((constructor)) static void drop_##sym##_register(void)     \
	{                                                                        \
		drop_reason_register(&drop_##sym);                               \
	}                                                                        \
	static_assert(1, "")

// Returns the edge, so that a per-packet function can end with it.
static inline uint16_t drop_as(struct rte_mbuf *m, const struct drop_reason *reason)
{
	meta(m)->reason = reason->id;
	return EDGE_DROP;
}
#define drop(m, sym) drop_as(m, &drop_##sym)

// Drops packets outside of the graph (full queues, device errors): counts them, offers them to captures and frees them.
void drop_packets(struct rte_mbuf **pkts, unsigned n);
