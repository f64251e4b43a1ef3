// SPDX-License-Identifier: Apache-2.0
// Parts that the MPLS encapsulations share.
#include "overlay/mpls.h"

#include "base/check.h"
#include "l3/tunnel.h"

DROP_REASON(
	mpls_unknown_label,
	"No label entry matches: the sender's routes are stale, or the packet was sent to the wrong "
	"node. See `corelane label list`. Beside a host port, those from addresses without a tunnel are the kernel's.");
DROP_REASON(mpls_stack_depth, "The stack has more labels than this node pops: one service label below explicit nulls, "
			      "up to the configured depth.");
DROP_REASON(mpls_reserved, "The packet has a reserved label (RFC 3032) that this node does not support.");
DROP_REASON(mpls_ttl_zero, "The label's TTL is 0.");

const struct drop_reason *const mpls_unknown_label = &drop_mpls_unknown_label;
const struct drop_reason *const mpls_stack_depth = &drop_mpls_stack_depth;
const struct drop_reason *const mpls_reserved = &drop_mpls_reserved;
const struct drop_reason *const mpls_ttl = &drop_mpls_ttl_zero;

#define INNER_LABELS_MAX 8 // deeper stacks are not searched

int mpls_check(const struct tunnel_config *t, struct error *err)
{
	return tunnel_check_id("nexthop.tunnel.label", t->label, LIMIT_TUNNEL_NEXTHOP_LABEL_MIN, LABEL_MAX - 1, err);
}

void mpls_push(struct nexthop *nh, const struct tunnel_config *t)
{
	rte_be32_t *label = tunnel_push(nh, sizeof(*label));

	*label = rte_cpu_to_be_32(t->label << 12 | 1 << 8 | t->ttl); // RFC 3032: label, TC 0, bottom of stack, TTL
}

enum encap_inner mpls_inner(const uint8_t *p, unsigned n, unsigned *at)
{
	unsigned end = *at + 4 * INNER_LABELS_MAX;
	bool last = false;

	for (; !last; *at += 4) {
		if (*at == end || n < *at + 4)
			return ENCAP_INNER_NONE;
		last = p[*at + 2] & 1;
	}
	return ENCAP_INNER_PACKET;
}
