// SPDX-License-Identifier: Apache-2.0
// A router with every kind of object, for targets that feed it frames: testing/router_fixture.h plus routes of each
// kind, tunnels of each kind in both VRFs, and labels and VNIs for each kind of target.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "testing/router_fixture.h"

void fuzz_router_setup(void);

#define FUZZ_HOST PORTS_END // host port of FABRIC1

// RED0 and LAN0 become trunks. RED0: tag 10 is in VRF blue, with guest 10.0.0.5 and fd00::5, tags 100 and 7 are in
// bridge lan. LAN0: tag 20 is in bridge irb and VRF red, tag 30 in bridge lan.
void fuzz_router_add_subports(void);

// Lets ports receive up to four frames, which pass the graph completely, and checks that
// - each was sent, dropped with a reason or punted, and no buffer is kept,
// - frames that a port sends belong to its tenant.
// In front of a frame are a byte that chooses one of the ports, and bytes that say how: FUZZ_CONTROL of them, or two
// more.
#define FUZZ_CONTROL 2
#define FUZZ_LONGEST 9600
void fuzz_router_input(const uint16_t *ports, unsigned n_ports, const uint8_t *data, size_t size);
