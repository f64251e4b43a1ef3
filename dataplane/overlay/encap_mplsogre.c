// SPDX-License-Identifier: Apache-2.0
// encap_mplsogre4, encap_mplsogre6: MPLS over GRE (RFC 4023), by the family of the underlay.
// Reads: nexthop, hash, l3, bridge.  Writes: out_port.  Next: port_tx, or neighbor_hold.
#include "overlay/encap.h"

ENCAP_NODE(encap_mplsogre4, ENCAP_MPLSOGRE, false);
ENCAP_NODE(encap_mplsogre6, ENCAP_MPLSOGRE, true);
