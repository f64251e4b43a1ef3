// SPDX-License-Identifier: Apache-2.0
// Explains what would happen to a packet, in the order in which the router decides it.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "api/api.h"
#include "control/flow_extras.h"
#include "control/flow_filter.h"
#include "flow/bridged.h"
#include "flow/decide.h"
#include "flow/flow.h"
#include "l2/bridge.h"
#include "policy/service.h"
#include "port/registry.h"

#define STEPS 16

typedef Corelane__V1__FlowExplanation Explanation;

static void __attribute__((format(printf, 3, 4)))
explain_step(struct api_call *call, Explanation *out, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (out->n_steps < STEPS)
		out->steps[out->n_steps++] = api_strdup(call, text);
}

static const char *key_text(const struct flow_key *k, char text[160])
{
	struct ip_addr src = flow_source(k), dst = flow_destination(k);
	char a[IP_TEXT], b[IP_TEXT];

	snprintf(text, 160, "%s port %u to %s port %u", ip_format_addr(&src, a), rte_be_to_cpu_16(k->src_port),
		 ip_format_addr(&dst, b), rte_be_to_cpu_16(k->dst_port));
	return text;
}

// Whether the packet is bridged: by a port that also has a VRF, what is for the gateway's MAC is routed.
static bool explain_bridges(const struct port *p, const Corelane__V1__FlowExplainRequest *in)
{
	return p->cfg.bridge != UINT16_MAX && (p->cfg.vrf == UINT16_MAX || *in->destination_mac);
}

static int flow_explain_api_decode_zone(const Corelane__V1__FlowExplainRequest *in, struct flow_question *q,
					struct error *err)
{
	struct port *p = *in->port ? port_find(in->port) : NULL;
	unsigned given = (p != NULL) + (*in->vrf != '\0') + (*in->bridge != '\0');
	struct bridge *b;
	struct vrf *v;

	if (*in->port && p == NULL)
		return error_set(err, ENOENT, "port", in->port, "the name of a port that exists",
				 "there is no such port");
	if (p && (p->cfg.role != PORT_TENANT || (p->cfg.vrf == UINT16_MAX && p->cfg.bridge == UINT16_MAX)))
		return error_set(err, EINVAL, "port", in->port, "a tenant port of a VRF or a bridge",
				 "packets of this port are not forwarded for a tenant");
	if (given != 1)
		return error_set(err, EINVAL, "port", in->port,
				 "a port, or the VRF or bridge of a packet from a tunnel",
				 "give either the port or the VRF or the bridge");
	if (p) {
		q->port = p->id;
		q->key.zone = explain_bridges(p, in) ? FLOW_ZONE_BRIDGE | p->cfg.bridge : p->cfg.vrf;
		return 0;
	}
	b = *in->bridge ? bridge_find_err(in->bridge, "bridge", err) : NULL;
	v = *in->vrf ? vrf_find_err(in->vrf, "vrf", err) : NULL;
	if (b == NULL && v == NULL)
		return -ENOENT;
	q->key.zone = b ? FLOW_ZONE_BRIDGE | b->id : v->id;
	return 0;
}

// The guest or station of a bridge that has this address.
static bool explain_find_mac(const struct flow_question *q, const struct ip_addr *dst, struct rte_ether_addr *mac)
{
	uint16_t bridge = q->key.zone & ~FLOW_ZONE_BRIDGE;
	const struct port *p;
	unsigned i;

	for (p = port_next(NULL); p; p = port_next(p))
		for (i = 0; p->cfg.bridge == bridge && p->id != q->port && i < p->cfg.n_guests; i++)
			if (ip_prefix_covers(&p->cfg.guests[i], dst) && !rte_is_zero_ether_addr(&p->cfg.guest_mac)) {
				*mac = p->cfg.guest_mac;
				return true;
			}
	return mac_ip_find(bridge, dst, mac);
}

static int explain_decode_target(const Corelane__V1__FlowExplainRequest *in, const struct ip_addr *dst,
				 struct flow_question *q, struct error *err)
{
	struct rte_ether_addr mac;
	struct mac_entry e;

	if (!flow_zone_is_bridge(q->key.zone))
		return *in->destination_mac ? error_set(err, EINVAL, "destination_mac", in->destination_mac,
							"with a port of a bridge, or a bridge",
							"routed packets are for the gateway's MAC")
					    : 0;
	q->target = FLOW_TARGET_UNKNOWN;
	if (*in->destination_mac && mac_parse(in->destination_mac, "destination_mac", &mac, err) < 0)
		return -EINVAL;
	if ((*in->destination_mac || explain_find_mac(q, dst, &mac)) &&
	    mac_get(q->key.zone & ~FLOW_ZONE_BRIDGE, &mac, &e))
		q->target = e.nexthop ? FLOW_TARGET_TUNNEL | e.nexthop : e.port;
	return 0;
}

static int flow_explain_api_decode(const Corelane__V1__FlowExplainRequest *in, struct flow_question *q,
				   struct error *err)
{
	struct ip_addr src, dst;

	if (flow_explain_api_decode_zone(in, q, err) < 0 ||
	    ip_parse_protocol(in->protocol, "protocol", &q->key.proto, err) < 0 ||
	    ip_parse_addr(in->source, "source", &src, err) < 0 ||
	    ip_parse_addr(in->destination, "destination", &dst, err) < 0)
		return -err->code;
	if (src.family != dst.family)
		return error_set(err, EINVAL, "destination", in->destination, "an address of the source's family",
				 "is of another family than the source");
	q->key.family = src.family;
	q->key.src_port = rte_cpu_to_be_16((uint16_t)in->source_port);
	q->key.dst_port = rte_cpu_to_be_16((uint16_t)in->destination_port);
	if (src.family == IPV4) {
		q->key.src4 = ip4_be(&src);
		q->key.dst4 = ip4_be(&dst);
	} else {
		memcpy(q->key.src6, src.bytes, 16);
		memcpy(q->key.dst6, dst.bytes, 16);
	}
	return explain_decode_target(in, &dst, q, err);
}

static void explain_target(struct api_call *call, const struct flow_question *q, Explanation *out)
{
	struct port *p = flow_target_port(q->target) ? port_get(flow_target_port(q->target)) : NULL;

	if (p)
		explain_step(call, out, "bridge: the destination is at port %s", p->cfg.name);
	else if (q->target & FLOW_TARGET_TUNNEL)
		explain_step(call, out, "bridge: the destination is behind next hop %u, a tunnel",
			     q->target & ~FLOW_TARGET_TUNNEL);
	else
		explain_step(
			call, out,
			"bridge: the destination's MAC address is not known, so that each receiver's rules decide");
}

static void explain_service(struct api_call *call, const struct flow_question *q, const struct flow_answer *a,
			    Explanation *out)
{
	uint16_t id = a->nat.refused ? (uint16_t)(a->nat.rule & ~NAT_OF_SERVICE) : service_of_rule(a->nat.rule);
	const struct service *s = service_get(id);
	const char *name = s ? s->cfg.name : "(removed)";
	char text[160];

	if (a->nat.refused)
		explain_step(call, out, "service: %s has no endpoint with a weight above 0%s", name,
			     s && s->cfg.reject ? ": the sender is told" : "");
	else if (q->keep)
		explain_step(call, out, "service: %s: the flow keeps its endpoint: it leaves as %s", name,
			     key_text(&a->out, text));
	else
		explain_step(call, out, "service: %s: row %u of %u names the endpoint: it leaves as %s", name,
			     a->nat.row, s ? s->rows : 0, key_text(&a->out, text));
}

static void explain_nat(struct api_call *call, const struct flow_question *q, const struct flow_answer *a,
			Explanation *out)
{
	char text[160];
	struct vrf *v = vrf_get(a->out.zone);

	if (a->nat.rule == 0)
		return;
	if (a->nat.rule & (NAT_OF_SERVICE | NAT_OF_ENDPOINT)) {
		explain_service(call, q, a, out);
		return;
	}
	explain_step(call, out, "translation: rule %u: it leaves as %s%s%s", a->nat.rule, key_text(&a->out, text),
		     a->out.zone != q->key.zone && v ? " in VRF " : "", a->out.zone != q->key.zone && v ? v->name : "");
	if (a->nat.ports)
		explain_step(call, out, "translation: the first free one of %u source ports is taken", a->nat.ports);
}

static void explain_route(struct api_call *call, const struct flow_answer *a, Explanation *out)
{
	const struct nexthop *nh = rcu_read(nexthop_table[a->nexthop]);
	struct port *p = nh && nh->kind == NH_PORT ? port_get(nh->port) : NULL;

	if (nh == NULL)
		explain_step(call, out, "route: none leads to the destination: ip_no_route");
	else if (nh->kind == NH_LOCAL)
		explain_step(call, out, "route: the router's own address: it answers without a flow");
	else if (nh->edge < NH_EDGE_PORT)
		explain_step(call, out, "route: next hop %u, which forwards nothing", a->nexthop);
	else
		explain_step(call, out, "route: next hop %u%s%s", a->nexthop,
			     p                       ? ", port "
			     : nh->kind == NH_TUNNEL ? ", a tunnel"
						     : "",
			     p ? p->cfg.name : "");
}

static void explain_rules(struct api_call *call, const char *side, uint16_t port, const struct rule_verdict *v,
			  Explanation *out)
{
	struct port *p = port ? port_get(port) : NULL;

	if (p == NULL)
		return;
	if (v->rule)
		explain_step(call, out, "%s rules of port %s: rule %u %s it", side, p->cfg.name, v->rule,
			     v->denied ? "denies" : "allows");
	else
		explain_step(call, out, "%s rules of port %s: no rule matches: %s", side, p->cfg.name,
			     v->denied ? "denied by default" : "allowed");
}

static void explain_names(struct api_call *call, const char *what, char *const *names, size_t n, Explanation *out)
{
	char text[4 * 34] = "";
	size_t i, at = 0;

	for (i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? ", " : "", names[i]);
	if (n > 0)
		explain_step(call, out, "%s: %s", what, text);
}

static void explain_extras(struct api_call *call, uint16_t port, const struct flow_answer *a, Explanation *out)
{
	struct flow_side from = {port, a->egress.extras}, to = {a->out_port, a->ingress.extras};
	char **names;
	size_t n = a->deny ? 0 : flow_meter_names(call, &from, &to, &names);

	if (n > 0)
		explain_names(call, "meters", names, n, out);
	if (a->deny)
		to = (struct flow_side){0}; // the receiver does not get the packet
	n = flow_mirror_names(call, &from, &to, &names);
	explain_names(call, "mirrors", names, n, out);
}

static void explain_no_flow(struct api_call *call, const struct flow_question *q, Explanation *out)
{
	bool bridged = flow_zone_is_bridge(q->key.zone);

	if (bridged && (flow_key_is_nd(&q->key) || flow_key_asks_dhcp(&q->key) || flow_key_answers_dhcp(&q->key)))
		explain_step(call, out, "flows: neighbour discovery and DHCP have none: the packet passes");
	else
		explain_step(call, out,
			     "flows: neither the sender's port nor the receiver's keeps them: the packet takes its %s",
			     bridged ? "way" : "route");
}

static void explain_decision(struct api_call *call, const struct flow_question *q, Explanation *out)
{
	const struct port_fwd *f = q->port ? port_fwds[q->port] : NULL;
	struct flow_answer a;

	flow_decide(q, &a);
	out->stateful = a.stateful;
	explain_nat(call, q, &a, out);
	if (a.nat.refused) {
		out->reason = api_strdup(call, flow_no_endpoint->name);
		out->action = CORELANE__V1__FLOW_ACTION__FLOW_ACTION_DENY;
		return;
	}
	if (flow_zone_is_bridge(q->key.zone))
		explain_target(call, q, out);
	else
		explain_route(call, &a, out);
	if (!a.stateful) {
		explain_no_flow(call, q, out);
		return;
	}
	explain_rules(call, "egress", f && f->stateful ? q->port : 0, &a.egress, out);
	explain_rules(call, "ingress", a.out_port, &a.ingress, out);
	explain_extras(call, f && f->stateful ? q->port : 0, &a, out);
	if (a.deny)
		out->reason = api_strdup(call, a.deny->name);
	out->action =
		a.deny ? CORELANE__V1__FLOW_ACTION__FLOW_ACTION_DENY : CORELANE__V1__FLOW_ACTION__FLOW_ACTION_ALLOW;
}

static int flow_explain_api_run(struct api_call *call, const void *req, void *resp, struct error *err)
{
	struct flow_question q = {0};
	Explanation *out = resp;
	struct flow_key keep;
	flow_entry_t e;
	int ret = flow_explain_api_decode(req, &q, err);

	if (ret < 0)
		return ret;
	out->steps = api_alloc(call, STEPS * sizeof(*out->steps));
	e = flow_table ? flow_table_find(flow_table, &q.key) : 0;
	if (e) {
		out->flow = api_alloc(call, sizeof(*out->flow));
		corelane__v1__flow__init(out->flow);
		flow_encode(call, flow_of(e), out->flow);
		explain_step(call, out, "flow %u is there: this is a packet of its %s direction", out->flow->id,
			     e & 1 ? "second" : "first");
		q.key = flow_of(e)->dir[0].key;
		q.port = flow_of(e)->port[0];
		if (flow_zone_is_bridge(q.key.zone))
			q.target = flow_way_target(flow_of(e)->dir[0].nexthop);
		keep = flow_key_reverse(&flow_of(e)->dir[1].key);
		q.keep_rule = nat_is_endpoint(flow_of(e)->nat) ? flow_of(e)->nat : 0;
		q.keep = q.keep_rule ? &keep : NULL;
	} else {
		explain_step(call, out, "flow: none yet: this packet would begin one");
	}
	explain_decision(call, &q, out);
	return 0;
}

static const struct api_method methods[] = {
	{"corelane.v1.Flows", "Explain", &corelane__v1__flow_explain_request__descriptor,
	 &corelane__v1__flow_explanation__descriptor, .unary = flow_explain_api_run},
};
API_METHODS(methods)
