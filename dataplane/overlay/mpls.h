// SPDX-License-Identifier: Apache-2.0
// MPLS label stacks (RFC 3032).
#pragma once

#include "overlay/decap.h"

#define MPLS_EXPLICIT_NULL4 0
#define MPLS_EXPLICIT_NULL6 2

extern const struct drop_reason *const mpls_unknown_label, *const mpls_stack_depth, *const mpls_reserved,
											    *const mpls_ttl;

// Callbacks as in struct encap_ops. mpls_inner: the stack starts at *at.
int mpls_check(const struct tunnel_config *t, struct error *err);
void mpls_push(struct nexthop *nh, const struct tunnel_config *t);
enum encap_inner mpls_inner(const uint8_t *p, unsigned n, unsigned *at);

// Pops the stack at offset `at`: explicit nulls, then one label, which must be the bottom of the stack.
static inline edge_t mpls_decap(struct rte_mbuf *m, struct pkt_meta *md, unsigned at)
{
	unsigned depth, label;
	uint32_t word, target;

	for (depth = 1;; depth++, at += 4) {
		if (unlikely(m->data_len < at + 4))
			return drop_as(m, decap_truncated);
		word = rte_be_to_cpu_32(*rte_pktmbuf_mtod_offset(m, const unaligned_uint32_t *, at));
		label = word >> 12;
		if (likely(label >= 16))
			break;
		if (label != MPLS_EXPLICIT_NULL4 && label != MPLS_EXPLICIT_NULL6)
			return drop_as(m, mpls_reserved);
		if ((word & 0x100) || depth >= label_stack_depth)
			return drop_as(m, (word & 0x100) ? mpls_unknown_label : mpls_stack_depth);
	}
	if (unlikely(!(word & 0x100)))
		return drop_as(m, mpls_stack_depth);
	if (unlikely((word & 0xff) == 0))
		return drop_as(m, mpls_ttl);
	target = __atomic_load_n(&label_table[label], __ATOMIC_RELAXED);
	md->ttl = (uint8_t)word;
	md->arg = label;
	if (unlikely(TARGET_KIND(target) == TARGET_NONE))
		return decap_not_mine(m, DECAP_UNKNOWN, mpls_unknown_label);
	return decap_to(m, md, TUNNEL_ID_LABEL(label), target, at + 4);
}
