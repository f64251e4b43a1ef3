// SPDX-License-Identifier: Apache-2.0
// encap_mplsoudp4, encap_mplsoudp6: MPLS over UDP (RFC 7510), by the family of the underlay.
// Reads: nexthop, hash, l3, bridge.  Writes: out_port.  Next: port_tx, or neighbor_hold.
#include "overlay/encap.h"

ENCAP_NODE(encap_mplsoudp4, ENCAP_MPLSOUDP, false);
ENCAP_NODE(encap_mplsoudp6, ENCAP_MPLSOUDP, true);
