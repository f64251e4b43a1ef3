// SPDX-License-Identifier: Apache-2.0
// Decodes filters of flows, and compares flows with them.
#include "control/flow_filter.h"

#include <errno.h>
#include <netinet/in.h>

#include "flow/packet.h"
#include "l2/bridge.h"
#include "policy/service.h"
#include "port/registry.h"

Corelane__V1__FlowState flow_state(const struct flow *f)
{
	static const Corelane__V1__FlowState tcp[TCP_STATES] = {
		[TCP_NONE] = CORELANE__V1__FLOW_STATE__FLOW_STATE_NEW,
		[TCP_SYN_SENT] = CORELANE__V1__FLOW_STATE__FLOW_STATE_NEW,
		[TCP_SYN_RECV] = CORELANE__V1__FLOW_STATE__FLOW_STATE_NEW,
		[TCP_ESTABLISHED] = CORELANE__V1__FLOW_STATE__FLOW_STATE_ESTABLISHED,
		[TCP_FIN_WAIT] = CORELANE__V1__FLOW_STATE__FLOW_STATE_CLOSING,
		[TCP_CLOSING] = CORELANE__V1__FLOW_STATE__FLOW_STATE_CLOSED,
		[TCP_CLOSED] = CORELANE__V1__FLOW_STATE__FLOW_STATE_CLOSED,
	};

	if (f->dir[0].key.proto == IPPROTO_TCP)
		return tcp[f->tcp];
	return flow_packets(f, 1) ? CORELANE__V1__FLOW_STATE__FLOW_STATE_ESTABLISHED
				  : CORELANE__V1__FLOW_STATE__FLOW_STATE_NEW;
}

Corelane__V1__FlowAction flow_action(const struct flow *f)
{
	return f->dir[0].flags & FLOW_DENY ? CORELANE__V1__FLOW_ACTION__FLOW_ACTION_DENY
					   : CORELANE__V1__FLOW_ACTION__FLOW_ACTION_ALLOW;
}

int flow_filter_decode(const Corelane__V1__FlowFilter *in, struct flow_filter *out, struct error *err)
{
	uint8_t proto;

	*out = (struct flow_filter){.vrf = UINT16_MAX,
				    .bridge = UINT16_MAX,
				    .proto = -1,
				    .action = in->action,
				    .state = in->state,
				    .nat = in->nat};
	if (*in->vrf) {
		struct vrf *v = vrf_find_err(in->vrf, "vrf", err);

		if (v == NULL)
			return -ENOENT;
		out->vrf = v->id;
	}
	if (*in->bridge) {
		struct bridge *b = bridge_find_err(in->bridge, "bridge", err);

		if (b == NULL)
			return -ENOENT;
		out->bridge = b->id;
	}
	if (*in->service) {
		struct service *s = service_find_err(in->service, "service", err);

		if (s == NULL)
			return -ENOENT;
		out->service = s->id;
	}
	if (*in->port) {
		struct port *p = port_find(in->port);

		if (p == NULL)
			return error_set(err, ENOENT, "port", in->port, "the name of a port that exists",
					 "there is no such port");
		out->port = p->id;
	}
	if (*in->protocol) {
		if (ip_parse_protocol(in->protocol, "protocol", &proto, err) < 0)
			return -EINVAL;
		out->proto = proto;
	}
	out->l4_port = rte_cpu_to_be_16((uint16_t)in->l4_port);
	return *in->prefix ? ip_parse_prefix(in->prefix, "prefix", &out->prefix, err) : 0;
}

static bool match_key(const struct flow_filter *f, const struct flow_key *k)
{
	struct ip_addr src = flow_source(k), dst = flow_destination(k);

	if (f->vrf != UINT16_MAX && k->zone != f->vrf)
		return false;
	if (f->bridge != UINT16_MAX && k->zone != (FLOW_ZONE_BRIDGE | f->bridge))
		return false;
	if (f->prefix.addr.family && (f->prefix.addr.family != k->family ||
				      (!ip_prefix_covers(&f->prefix, &src) && !ip_prefix_covers(&f->prefix, &dst))))
		return false;
	return f->l4_port == 0 || k->src_port == f->l4_port || k->dst_port == f->l4_port;
}

bool flow_filter_match(const struct flow_filter *f, const struct flow *flow)
{
	if (f->proto >= 0 && flow->dir[0].key.proto != f->proto)
		return false;
	if (f->port && flow->port[0] != f->port && flow->port[1] != f->port)
		return false;
	if ((f->action && flow_action(flow) != f->action) || (f->state && flow_state(flow) != f->state))
		return false;
	if (f->nat && flow->nat != f->nat)
		return false;
	if (f->service && service_of_rule(flow->nat) != f->service)
		return false;
	return match_key(f, &flow->dir[0].key) || match_key(f, &flow->dir[1].key);
}
