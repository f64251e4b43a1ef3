// SPDX-License-Identifier: Apache-2.0
// Between the files of this module.
#pragma once

#include "flow/flow.h"

#define FLOW_BYTES (sizeof(struct flow) + sizeof(uint32_t) + 2 * 64 * 10 / 72 + 1) // of a flow and its two slots at a load of 0.9

// Master: these flows are seen by nobody any more; linked by .next, the number of the first one as a pointer.
void flow_free_list(void *head);

struct nexthop;
// False: the flow is no longer what it would be now, and has to end. via: of the packet's label or VNI, or NULL.
bool flow_decide_again(struct flow *f, unsigned dir, const struct nexthop *via);
