// SPDX-License-Identifier: Apache-2.0
// A router with every kind of object, for targets that feed it frames: testing/router_fixture.h plus routes of each
// kind, tunnels of each kind in both VRFs, and labels and VNIs for each kind of target.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "testing/router_fixture.h"

void fuzz_router_setup(void);

// Lets a port receive one frame, which passes the graph completely, and checks that
// - it was sent, dropped with a reason or punted, and no buffer is kept,
// - frames that a port sends belong to its tenant.
// The first bytes say how: FUZZ_CONTROL of them, then the frame.
#define FUZZ_CONTROL 2
void fuzz_router_frame(uint16_t port, const uint8_t *data, size_t size);
