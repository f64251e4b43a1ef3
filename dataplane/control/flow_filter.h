// SPDX-License-Identifier: Apache-2.0
// The filter of flows in API requests, and flows as messages.
#pragma once

#include "base/ip.h"
#include "flow.pb-c.h"
#include "flow/flow.h"
#include "flow/flow_text.h"

struct flow_filter {
	uint16_t vrf, bridge, port; // UINT16_MAX, UINT16_MAX, 0: any
	struct ip_prefix prefix;
	int proto;        // -1: any
	uint16_t l4_port; // network byte order, 0: any
	Corelane__V1__FlowAction action;
	Corelane__V1__FlowState state;
	uint32_t nat;
	uint16_t service; // 0: any
};

struct api_call;
void flow_encode(struct api_call *call, const struct flow *f, Corelane__V1__Flow *out);

int flow_filter_decode(const Corelane__V1__FlowFilter *in, struct flow_filter *out, struct error *err);
bool flow_filter_match(const struct flow_filter *f, const struct flow *flow);

Corelane__V1__FlowState flow_state(const struct flow *f);
Corelane__V1__FlowAction flow_action(const struct flow *f);
