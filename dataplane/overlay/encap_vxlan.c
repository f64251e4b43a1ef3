// SPDX-License-Identifier: Apache-2.0
// encap_vxlan4, encap_vxlan6: VXLAN (RFC 7348), by the family of the underlay. Routed packets get an inner Ethernet header between the
// routers' MACs, bridged frames keep theirs.
// Reads: nexthop, hash, l3, bridge.  Writes: out_port.  Next: port_tx, or neighbor_hold.
#include "overlay/encap.h"

ENCAP_NODE(encap_vxlan4, ENCAP_VXLAN, false);
ENCAP_NODE(encap_vxlan6, ENCAP_VXLAN, true);
