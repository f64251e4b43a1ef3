// SPDX-License-Identifier: Apache-2.0
// Source ports of translation that are known to be in use towards a peer, so that the search for a free one does not
// try them again. What is not known is tried, and then known, until the flow that has the port ends. So a search that
// finds nothing to try has not missed a free port, and its cost is spread over the flows that fill the pool.
//
// It is a cache: what it has no room for is forgotten, and found out anew. Any thread, except where it says otherwise.
#pragma once

#include "base/flow_key.h"

// All keys are those of the answers to translated packets: their destination port is the source port of the
// translation.

// Returns the first port after `after`, and then from `first` on, of n ports from `first` on that is not known to be in
// use, and takes it for used from now on; -1: all are in use. Of the key's destination port nothing is read.
int taken_ports_next(const struct flow_key *answer, uint16_t first, uint32_t n, uint16_t after);
// The flow with this key has ended, or was not made after all.
void taken_ports_forget(const struct flow_key *answer);
