// SPDX-License-Identifier: Apache-2.0
// Encodes a port as a message (api/port.proto).
#include "base/owner.h"
#include "control/port_boot.h"
#include "control/port_message.h"

#include "eth/source_check.h"
#include "flow/quota.h"
#include "graph/counters.h"
#include "graph/held.h"
#include "l2/bridge.h"
#include "l3/underlay.h"
#include "l3/vrf.h"
#include "neighbor/neighbor.h"
#include "policy/meter.h"
#include "policy/mirror.h"
#include "policy/rules.h"
#include "port/registry.h"
#include "worker/spread.h"

static char **port_encode_prefixes(struct api_call *call, const struct ip_prefix *list, unsigned n, size_t *n_out)
{
	char **out = api_alloc(call, (n + 1) * sizeof(*out)), text[IP_TEXT];
	unsigned i;

	for (i = 0; i < n; i++)
		out[i] = api_strdup(call, ip_format_prefix(&list[i], text));
	*n_out = n;
	return out;
}

static char *port_encode_mac(struct api_call *call, const struct rte_ether_addr *mac)
{
	char text[18];

	return rte_is_zero_ether_addr(mac) ? api_strdup(call, "") : api_strdup(call, mac_format(mac, text));
}

static char *port_encode_meter(struct api_call *call, uint16_t id)
{
	const struct meter *m = meter_get(id);

	return api_strdup(call, m ? m->cfg.name : "");
}

static char *port_encode_mirror(struct api_call *call, uint16_t id)
{
	const struct mirror *m = mirror_get(id);

	return api_strdup(call, m ? m->cfg.name : "");
}

static void port_encode_device(struct api_call *call, const struct port_config *c, PbPort *out)
{
	if (strcmp(c->kind, "dpdk") == 0) {
		out->device_case = CORELANE__V1__PORT__DEVICE_DPDK;
		out->dpdk = api_alloc(call, sizeof(*out->dpdk));
		corelane__v1__dpdk_device__init(out->dpdk);
		out->dpdk->devargs = api_strdup(call, c->devargs);
	} else if (strcmp(c->kind, "tap") == 0) {
		out->device_case = CORELANE__V1__PORT__DEVICE_TAP;
		out->tap = api_alloc(call, sizeof(*out->tap));
		corelane__v1__tap_device__init(out->tap);
		out->tap->ifname = api_strdup(call, c->ifname);
		out->tap->netns = api_strdup(call, c->netns);
	} else if (strcmp(c->kind, "memif") == 0) {
		out->device_case = CORELANE__V1__PORT__DEVICE_MEMIF;
		out->memif = api_alloc(call, sizeof(*out->memif));
		corelane__v1__memif_device__init(out->memif);
		out->memif->socket = api_strdup(call, c->socket);
		out->memif->id = c->memif_id;
		out->memif->role = c->client ? CORELANE__V1__MEMIF_ROLE__MEMIF_ROLE_CLIENT
					     : CORELANE__V1__MEMIF_ROLE__MEMIF_ROLE_SERVER;
		out->memif->secret = api_strdup(call, api_client(call)->role < ROLE_ADMINISTER ? "" : c->secret);
		out->memif->ring_size = c->ring_size;
		out->memif->buffer_size = c->buffer_size;
		out->memif->whole_segments = c->whole_segments;
		out->memif->socket_owner = api_strdup(call, c->socket_owner);
		out->memif->socket_group = api_strdup(call, c->socket_group);
		out->memif->socket_mode = api_strdup(call, c->socket_mode);
	} else if (strcmp(c->kind, "subport") == 0) {
		out->device_case = CORELANE__V1__PORT__DEVICE_SUBPORT;
		out->subport = api_alloc(call, sizeof(*out->subport));
		corelane__v1__subport_device__init(out->subport);
		out->subport->parent = api_strdup(call, port_get(c->parent) ? port_get(c->parent)->cfg.name : "");
		out->subport->vlan = c->tag;
		out->subport->outer_vlan = c->outer_tag;
	} else {
		out->device_case = CORELANE__V1__PORT__DEVICE_VHOST;
		out->vhost = api_alloc(call, sizeof(*out->vhost));
		corelane__v1__vhost_device__init(out->vhost);
		out->vhost->socket = api_strdup(call, c->socket);
		out->vhost->client = c->client;
		out->vhost->socket_owner = api_strdup(call, c->socket_owner);
		out->vhost->socket_group = api_strdup(call, c->socket_group);
		out->vhost->socket_mode = api_strdup(call, c->socket_mode);
	}
}

static void port_encode_queues(struct api_call *call, const struct port *p, Corelane__V1__PortState *s)
{
	unsigned i;

	s->n_queues = port_polled_queues(p);
	s->queues = api_alloc(call, (s->n_queues + 1) * sizeof(*s->queues));
	for (i = 0; i < s->n_queues; i++) {
		s->queues[i] = api_alloc(call, sizeof(**s->queues));
		corelane__v1__port_queue__init(s->queues[i]);
		s->queues[i]->index = i;
		s->queues[i]->orphan = p->queues[i].rx_worker == WORKER_NONE;
		port_encode_queue(&p->queues[i], s->queues[i]);
		s->queues[i]->worker = s->queues[i]->orphan ? 0 : p->queues[i].rx_worker;
		s->queues[i]->rx_packets = p->queues[i].rx_packets;
	}
}

static void port_encode_counters(struct api_call *call, struct port *p, Corelane__V1__PortState *s)
{
	struct port_stats dev = {0};
	struct port_counters c;
	unsigned i;

	if (p->ops->stats)
		p->ops->stats(p, &dev);
	counters_port(p->id, &c);
	s->counters = api_alloc(call, sizeof(*s->counters));
	corelane__v1__port_counters__init(s->counters);
	s->counters->rx_packets = c.rx_packets;
	s->counters->rx_bytes = c.rx_bytes;
	s->counters->tx_packets = c.tx_packets;
	s->counters->tx_refused = c.tx_refused;
	s->counters->tx_bytes = c.tx_bytes;
	s->counters->rx_missed = dev.rx_missed;
	for (i = 0; drop_reason_get((uint16_t)i); i++)
		s->counters->dropped += counters_drops(p->id, (uint16_t)i);
}

static void port_encode_takes(struct api_call *call, const struct port *p, Corelane__V1__PortState *s)
{
	static const char *const names[] = {"checksum", "tcp4", "tcp6", "ecn", "udp4", "udp6", "whole"};
	uint16_t takes = __atomic_load_n(&p->takes, __ATOMIC_RELAXED);
	unsigned i;

	s->takes = api_alloc(call, sizeof(names));
	for (i = 0; i < RTE_DIM(names); i++)
		if (takes & 1u << i)
			s->takes[s->n_takes++] = api_strdup(call, names[i]);
}

static void port_encode_state(struct api_call *call, struct port *p, PbPort *out)
{
	Corelane__V1__PortState *s = api_alloc(call, sizeof(*s));

	corelane__v1__port_state__init(s);
	s->id = p->id;
	s->link_up = p->link_up;
	s->peer_connected = p->peer_connected;
	s->mac = port_encode_mac(call, &p->mac);
	s->driver = api_strdup(call, p->driver);
	s->socket_numa = p->numa < 0 ? 0 : (uint32_t)p->numa;
	s->peer_connects = p->peer_connects;
	s->peer_disconnects = p->peer_disconnects;
	s->last_error = api_strdup(call, p->last_error);
	s->flows = flow_quota_get(p->id).flows;
	s->flows_refused = flow_quota_get(p->id).refused;
	s->learn_too_many = mac_learn_too_many_of(p->id);
	s->source_check = (Corelane__V1__SourceCheck)source_check_in_effect(&p->cfg);
	s->dhcp4_answers = boot_counts(p->id)->dhcp4;
	s->dhcp6_answers = boot_counts(p->id)->dhcp6;
	s->router_adverts = boot_counts(p->id)->adverts;
	s->buffers_kept = p->kept;
	s->buffers_waiting = held_by(p->id);
	port_encode_takes(call, p, s);
	port_encode_queues(call, p, s);
	port_encode_counters(call, p, s);
	out->state = s;
}

void port_encode(struct api_call *call, struct port *p, PbPort *out)
{
	const struct port_config *c = &p->cfg;

	out->name = api_strdup(call, c->name);
	out->role = (Corelane__V1__PortRole)c->role;
	out->owner = api_strdup(call, owner_name(p->owner));
	port_encode_device(call, c, out);
	out->queues = port_polled_queues(p) > 0 ? c->queues : 0; // a sub-port's are its parent's
	out->mtu = c->mtu;
	out->disabled = c->disabled;
	out->vlan = c->vlan;
	out->mac = port_encode_mac(call, &c->mac);
	out->addresses = port_encode_prefixes(call, c->addrs, c->n_addrs, &out->n_addresses);
	out->vrf = api_strdup(call, c->vrf != UINT16_MAX && vrf_get(c->vrf) ? vrf_get(c->vrf)->name : "");
	out->bridge = api_strdup(
		call, c->bridge != UINT16_MAX && bridge_get(c->bridge) ? bridge_get(c->bridge)->cfg.name : "");
	out->gateways = port_encode_prefixes(call, c->gateways, c->n_gateways, &out->n_gateways);
	out->guest_mac = port_encode_mac(call, &c->guest_mac);
	out->guest_addresses = port_encode_prefixes(call, c->guests, c->n_guests, &out->n_guest_addresses);
	out->proxy_arp = neighbor_config(c)->proxy_arp;
	out->mss_clamp = routed_config(c)->mss_clamp;
	out->unresolved_rate = routed_config(c)->unresolved_rate;
	out->no_anycast_gateway = routed_config(c)->no_gateway_echo;
	out->stateful = c->stateful;
	out->source_check = (Corelane__V1__SourceCheck)source_check_config(c)->check;
	out->allow_router = source_check_config(c)->allow_router;
	out->allow_dhcp_server = source_check_config(c)->allow_dhcp_server;
	out->offload = (Corelane__V1__Offload)c->offload;
	out->flow_limit = flow_quota_config(c)->limit;
	out->flow_rate = flow_quota_config(c)->rate;
	out->egress_meter = port_encode_meter(call, meters_config(c)->egress);
	out->ingress_meter = port_encode_meter(call, meters_config(c)->ingress);
	out->mirror = port_encode_mirror(call, mirroring_config(c)->mirror);
	out->fabric = api_strdup(call, port_get(c->fabric) ? port_get(c->fabric)->cfg.name : "");
	out->egress_rules = api_strdup(call, rule_list_name(rules_config(c)->lists[RULES_EGRESS]));
	out->ingress_rules = api_strdup(call, rule_list_name(rules_config(c)->lists[RULES_INGRESS]));
	out->mode = (Corelane__V1__PortMode)spread_config(c)->mode;
	out->ring_full = (Corelane__V1__RingFull)spread_config(c)->ring_full;
	out->spread_workers = port_encode_weights(call, spread_config(c), &out->n_spread_workers);
	out->polled_by = port_encode_polled_by(call, spread_config(c), &out->n_polled_by);
	port_encode_boot(call, boot_config(c), out);
	port_encode_state(call, p, out);
}
