// SPDX-License-Identifier: Apache-2.0
// What port_rx has checked of the packets of a device, for nodes that find out that they came in by another port.
#pragma once

#include <stdint.h>

#include <rte_mbuf.h>

#include "graph/drop.h"

// Why the port whose longest frame this is (port/port.h) does not receive a packet that is longer. NULL: it does,
// because the packet is a large segment of shorter ones.
const struct drop_reason *port_rx_refuses(const struct rte_mbuf *m, uint32_t longest);
