// SPDX-License-Identifier: Apache-2.0
// TCP resets: the answer of a closed port (RFC 9293, section 3.10.7.1).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_tcp.h>

// Fills the header that answers the segment of `len` bytes, header included, at offset l4; its checksum is 0. Returns
// false if nothing answers the segment: it is a reset itself, or its header is incomplete.
bool tcp_reset(const struct rte_mbuf *m, unsigned l4, uint32_t len, struct rte_tcp_hdr *out);
