// SPDX-License-Identifier: Apache-2.0
// Cuts a large segment (base/offload.h) into the packets that its sender would have sent without segmentation offload.
#pragma once

#include <rte_mbuf.h>

#include "base/offload.h"

// Writes the packets to out[], in order, and frees m. l3 is the offset of m's IP header; what lies in front of it is in
// front of each packet, too. Packets have m's metadata, complete checksums and copies of the payload; their buffers
// come from m's pool, and their headers lie in the first one. Returns their number, or -EINVAL if lengths contradict
// each other, -E2BIG if there would be more than OFFLOAD_SEGMENTS_MAX, -ENOBUFS if the pool is empty; then m is
// unchanged.
//
// As Linux does it: sequence numbers and IPv4 ids count up, CWR is in the first packet only, FIN and PSH are in the
// last one only, and everything else is equal.
int segment(struct rte_mbuf *m, unsigned l3, struct rte_mbuf *out[OFFLOAD_SEGMENTS_MAX]);
