// SPDX-License-Identifier: Apache-2.0
// The names of the meters and mirrors of ports and rules that apply to a flow's packets.
#pragma once

#include "api/api.h"
#include "flow/flow.h"

struct flow_side {                 // the sender's, or the receiver's
	uint16_t port;             // 0 = none
	struct rule_extras extras; // of its rule
};

// For packets that go from one side to the other. Return the number of names; *names is in the order in which they
// apply.
size_t flow_meter_names(struct api_call *call, const struct flow_side *from, const struct flow_side *to, char ***names);
size_t flow_mirror_names(struct api_call *call, const struct flow_side *from, const struct flow_side *to,
			 char ***names);
