// SPDX-License-Identifier: Apache-2.0
// Flows, with their translation and state, go on after a restart (keep/carry.h). What they may do is not carried: a
// flow is stale when it is loaded, so that the rules, routes and translation that there are then decide about it before
// it forwards a packet.
#pragma once

void flow_carry_init(void);
