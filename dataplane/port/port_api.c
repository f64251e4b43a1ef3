// SPDX-License-Identifier: Apache-2.0
// API of ports (api/port.proto).
#include <errno.h>
#include <stdio.h>

#include "flow/quota.h"
#include "graph/counters.h"
#include "l2/bridge.h"
#include "l3/vrf.h"
#include "main/api.h"
#include "policy/meter.h"
#include "policy/mirror.h"
#include "policy/rules.h"
#include "port.pb-c.h"
#include "port/devargs.h"
#include "port/mode_api.h"
#include "port/registry.h"
#include "worker/worker.h"

#define PbPort Corelane__V1__Port

static int copy(const char *field, char *dst, size_t size, const char *src, struct error *err)
{
	char valid[48];

	if (strlen(src) < size) {
		snprintf(dst, size, "%s", src);
		return 0;
	}
	snprintf(valid, sizeof(valid), "up to %zu characters", size - 1);
	return error_set(err, EINVAL, field, src, valid, "is too long");
}

static int get_device(const PbPort *in, struct port_config *c, struct error *err)
{
	int ret;

	switch (in->device_case) {
	case CORELANE__V1__PORT__DEVICE_DPDK:
		c->kind = "dpdk";
		ret = devargs_memif(in->dpdk->devargs, c, err);
		return ret != 0 ? RTE_MIN(ret, 0)
				: copy("port.dpdk.devargs", c->devargs, sizeof(c->devargs), in->dpdk->devargs, err);
	case CORELANE__V1__PORT__DEVICE_TAP:
		c->kind = "tap";
		ret = copy("port.tap.ifname", c->ifname, sizeof(c->ifname), *in->tap->ifname ? in->tap->ifname : c->name, err);
		return ret < 0 ? ret : copy("port.tap.netns", c->netns, sizeof(c->netns), in->tap->netns, err);
	case CORELANE__V1__PORT__DEVICE_MEMIF:
		c->kind = "memif";
		c->memif_id = in->memif->id;
		c->client = in->memif->role == CORELANE__V1__MEMIF_ROLE__MEMIF_ROLE_CLIENT;
		c->ring_size = in->memif->ring_size;
		c->buffer_size = in->memif->buffer_size;
		ret = copy("port.memif.secret", c->secret, sizeof(c->secret), in->memif->secret, err);
		return ret < 0 ? ret : copy("port.memif.socket", c->socket, sizeof(c->socket), in->memif->socket, err);
	case CORELANE__V1__PORT__DEVICE_VHOST:
		c->kind = "vhost";
		c->client = in->vhost->client;
		return copy("port.vhost.socket", c->socket, sizeof(c->socket), in->vhost->socket, err);
	default:
		return error_set(err, EINVAL, "port.device", "", "dpdk, tap, memif, vhost", "a port needs a device");
	}
}

static int get_ifaddrs(const char *field, char **in, size_t n, bool hosts, struct ip_prefix *out, unsigned *n_out,
		       struct error *err)
{
	char text[IP_TEXT];
	unsigned i, j;
	int ret;

	if (n > PORT_MAX_ADDRS)
		return error_set(err, E2BIG, field, in[PORT_MAX_ADDRS], "up to 16 addresses", "is one too many");
	for (i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "%s%s", in[i],
			 hosts && !strchr(in[i], '/') ? (strchr(in[i], ':') ? "/128" : "/32") : "");
		ret = hosts ? ip_parse_prefix(text, field, &out[i], err) : ip_parse_ifaddr(text, field, &out[i], err);
		if (ret < 0)
			return ret;
		for (j = 0; j < i; j++)
			if (ip_addr_eq(&out[j].addr, &out[i].addr) && (!hosts || out[j].len == out[i].len))
				return error_set(err, EINVAL, field, in[i], "each address once", "is given twice");
	}
	*n_out = (unsigned)n;
	return 0;
}

static int get_vrf(const char *name, struct port_config *c, struct error *err)
{
	struct vrf *v;

	c->vrf = UINT16_MAX;
	if (*name == '\0')
		return 0;
	v = vrf_find_err(name, "port.vrf", err);
	if (v == NULL)
		return -ENOENT;
	c->vrf = v->id;
	return 0;
}

static int get_bridge(const char *name, struct port_config *c, struct error *err)
{
	struct bridge *b;

	c->bridge = UINT16_MAX;
	if (*name == '\0')
		return 0;
	b = bridge_find_err(name, "port.bridge", err);
	if (b == NULL)
		return -ENOENT;
	c->bridge = b->id;
	return 0;
}

static int get_meter(const char *field, const char *name, uint16_t *out, struct error *err)
{
	struct meter *m = *name ? meter_find_err(name, field, err) : NULL;

	if (*name && m == NULL)
		return -ENOENT;
	*out = m ? m->id : 0;
	return 0;
}

static int get_mirror(const char *name, struct port_config *c, struct error *err)
{
	struct mirror *m = *name ? mirror_find_err(name, "port.mirror", err) : NULL;

	if (*name && m == NULL)
		return -ENOENT;
	c->mirror = m ? m->id : 0;
	return 0;
}

static int get_rules(const char *name, const char *field, uint16_t *out, struct error *err)
{
	struct rule_list *l = *name ? rule_list_find_err(name, field, err) : NULL;

	*out = l ? rule_list_id(l) : 0;
	return *name && l == NULL ? -ENOENT : 0;
}

static int get_fabric(const char *name, struct port_config *c, struct error *err)
{
	struct port *p = *name ? port_find(name) : NULL;

	if (*name && p == NULL)
		return error_set(err, ENOENT, "port.fabric", name, "the name of a fabric port", "there is no such port");
	c->fabric = p ? p->id : 0;
	return 0;
}

static int get_mac(const char *field, const char *text, struct rte_ether_addr *out, struct error *err)
{
	memset(out, 0, sizeof(*out));
	return *text ? mac_parse(text, field, out, err) : 0;
}

static int get_source_check(int in, struct port_config *c, struct error *err)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", in);
	if (in < SOURCE_CHECK_NONE || in > SOURCE_CHECK_STRICT)
		return error_set(err, EINVAL, "port.source_check", text, "none, reverse_path, strict", "is no kind of check");
	c->source_check = (uint8_t)in;
	return 0;
}

// One settable field of the message into the configuration.
static int get_field(const PbPort *in, const char *field, struct port_config *c, struct error *err)
{
	if (strcmp(field, "mtu") == 0) {
		c->mtu = (uint16_t)RTE_MIN(in->mtu, (uint32_t)UINT16_MAX);
		return 0;
	}
	if (strcmp(field, "disabled") == 0)
		return c->disabled = in->disabled, 0;
	if (strcmp(field, "vlan") == 0)
		return c->vlan = (uint16_t)RTE_MIN(in->vlan, (uint32_t)UINT16_MAX), 0;
	if (strcmp(field, "addresses") == 0)
		return get_ifaddrs("port.addresses", in->addresses, in->n_addresses, false, c->addrs, &c->n_addrs, err);
	if (strcmp(field, "vrf") == 0)
		return get_vrf(in->vrf, c, err);
	if (strcmp(field, "bridge") == 0)
		return get_bridge(in->bridge, c, err);
	if (strcmp(field, "gateways") == 0)
		return get_ifaddrs("port.gateways", in->gateways, in->n_gateways, false, c->gateways, &c->n_gateways, err);
	if (strcmp(field, "guest_mac") == 0)
		return get_mac("port.guest_mac", in->guest_mac, &c->guest_mac, err);
	if (strcmp(field, "guest_addresses") == 0)
		return get_ifaddrs("port.guest_addresses", in->guest_addresses, in->n_guest_addresses, true, c->guests,
				   &c->n_guests, err);
	if (strcmp(field, "proxy_arp") == 0)
		return c->proxy_arp = in->proxy_arp, 0;
	if (strcmp(field, "mss_clamp") == 0)
		return c->mss_clamp = in->mss_clamp, 0;
	if (strcmp(field, "no_anycast_gateway") == 0)
		return c->no_gateway_echo = in->no_anycast_gateway, 0;
	if (strcmp(field, "stateful") == 0)
		return c->stateful = in->stateful, 0;
	if (strcmp(field, "source_check") == 0)
		return get_source_check((int)in->source_check, c, err);
	if (strcmp(field, "flow_limit") == 0)
		return c->flow_limit = in->flow_limit, 0;
	if (strcmp(field, "flow_rate") == 0)
		return c->flow_rate = in->flow_rate, 0;
	if (strcmp(field, "egress_meter") == 0)
		return get_meter("port.egress_meter", in->egress_meter, &c->egress_meter, err);
	if (strcmp(field, "ingress_meter") == 0)
		return get_meter("port.ingress_meter", in->ingress_meter, &c->ingress_meter, err);
	if (strcmp(field, "mirror") == 0)
		return get_mirror(in->mirror, c, err);
	if (strcmp(field, "egress_rules") == 0)
		return get_rules(in->egress_rules, "port.egress_rules", &c->rules[RULES_EGRESS], err);
	if (strcmp(field, "ingress_rules") == 0)
		return get_rules(in->ingress_rules, "port.ingress_rules", &c->rules[RULES_INGRESS], err);
	if (strcmp(field, "mode") == 0)
		return port_mode_get((int)in->mode, c, err);
	if (strcmp(field, "ring_full") == 0)
		return port_ring_full_get((int)in->ring_full, c, err);
	if (strcmp(field, "spread_workers") == 0)
		return port_weights_get(in->spread_workers, in->n_spread_workers, c, err);
	if (strcmp(field, "polled_by") == 0)
		return port_polled_by_get(in->polled_by, in->n_polled_by, c, err);
	return error_set(err, EINVAL, "fields", field,
			 "mtu, disabled, vlan, addresses, vrf, bridge, gateways, guest_mac, guest_addresses, proxy_arp, mss_clamp, "
			 "no_anycast_gateway, stateful, flow_limit, flow_rate, source_check, egress_rules, ingress_rules, "
			 "egress_meter, ingress_meter, mirror, mode, ring_full, spread_workers, polled_by",
			 "cannot be set");
}

static const char *const settable[] = {"mtu",          "disabled",      "vlan",
				       "addresses",    "vrf",           "bridge",
				       "gateways",     "guest_mac",     "guest_addresses",
				       "proxy_arp",    "mss_clamp",     "no_anycast_gateway",
				       "stateful",     "flow_limit",    "flow_rate",
				       "source_check", "egress_rules",  "ingress_rules",
				       "egress_meter", "ingress_meter", "mirror",
				       "mode",         "ring_full",     "spread_workers",
				       "polled_by"};

static int get_port(const PbPort *in, struct port_config *c, struct error *err)
{
	unsigned i;
	int ret;

	*c = (struct port_config){.role = (enum port_role)in->role, .vrf = UINT16_MAX, .bridge = UINT16_MAX};
	ret = copy("port.name", c->name, sizeof(c->name), in->name, err);
	if (ret == 0)
		ret = get_device(in, c, err);
	if (ret == 0)
		ret = get_mac("port.mac", in->mac, &c->mac, err);
	if (ret == 0)
		ret = get_fabric(in->fabric, c, err);
	for (i = 0; i < RTE_DIM(settable) && ret == 0; i++)
		ret = get_field(in, settable[i], c, err);
	if (ret == 0 && in->queues > PORT_MAX_QUEUES)
		ret = error_set(err, ERANGE, "port.queues", NULL, "1 to 16", "there are too many queues");
	c->queues = (uint16_t)in->queues;
	return ret;
}

static char **put_list(struct api_call *call, const struct ip_prefix *list, unsigned n, size_t *n_out)
{
	char **out = api_alloc(call, (n + 1) * sizeof(*out)), text[IP_TEXT];
	unsigned i;

	for (i = 0; i < n; i++)
		out[i] = api_strdup(call, ip_format_prefix(&list[i], text));
	*n_out = n;
	return out;
}

static char *put_mac(struct api_call *call, const struct rte_ether_addr *mac)
{
	char text[18];

	return rte_is_zero_ether_addr(mac) ? api_strdup(call, "") : api_strdup(call, mac_format(mac, text));
}

static char *put_meter(struct api_call *call, uint16_t id)
{
	const struct meter *m = meter_get(id);

	return api_strdup(call, m ? m->cfg.name : "");
}

static void put_device(struct api_call *call, const struct port_config *c, PbPort *out)
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
		out->memif->role =
			c->client ? CORELANE__V1__MEMIF_ROLE__MEMIF_ROLE_CLIENT : CORELANE__V1__MEMIF_ROLE__MEMIF_ROLE_SERVER;
		out->memif->secret = api_strdup(call, c->secret);
		out->memif->ring_size = c->ring_size;
		out->memif->buffer_size = c->buffer_size;
	} else {
		out->device_case = CORELANE__V1__PORT__DEVICE_VHOST;
		out->vhost = api_alloc(call, sizeof(*out->vhost));
		corelane__v1__vhost_device__init(out->vhost);
		out->vhost->socket = api_strdup(call, c->socket);
		out->vhost->client = c->client;
	}
}

static void put_queues(struct api_call *call, const struct port *p, Corelane__V1__PortState *s)
{
	unsigned i;

	s->n_queues = p->n_queues;
	s->queues = api_alloc(call, p->n_queues * sizeof(*s->queues));
	for (i = 0; i < p->n_queues; i++) {
		s->queues[i] = api_alloc(call, sizeof(**s->queues));
		corelane__v1__port_queue__init(s->queues[i]);
		s->queues[i]->index = i;
		s->queues[i]->orphan = p->queues[i].rx_worker == WORKER_NONE;
		port_queue_put(&p->queues[i], s->queues[i]);
		s->queues[i]->worker = s->queues[i]->orphan ? 0 : p->queues[i].rx_worker;
		s->queues[i]->rx_packets = p->queues[i].rx_packets;
	}
}

static void put_counters(struct api_call *call, struct port *p, Corelane__V1__PortState *s)
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
	s->counters->tx_bytes = c.tx_bytes;
	s->counters->rx_missed = dev.rx_missed;
	for (i = 0; drop_reason_get((uint16_t)i); i++)
		s->counters->dropped += counters_drops(p->id, (uint16_t)i);
}

static void put_state(struct api_call *call, struct port *p, PbPort *out)
{
	Corelane__V1__PortState *s = api_alloc(call, sizeof(*s));

	corelane__v1__port_state__init(s);
	s->id = p->id;
	s->link_up = p->link_up;
	s->peer_connected = p->peer_connected;
	s->mac = put_mac(call, &p->mac);
	s->driver = api_strdup(call, p->driver);
	s->socket_numa = p->numa < 0 ? 0 : (uint32_t)p->numa;
	s->peer_connects = p->peer_connects;
	s->peer_disconnects = p->peer_disconnects;
	s->last_error = api_strdup(call, p->last_error);
	s->flows = flow_quota_get(p->id).flows;
	s->flows_refused = flow_quota_get(p->id).refused;
	put_queues(call, p, s);
	put_counters(call, p, s);
	out->state = s;
}

static void put_port(struct api_call *call, struct port *p, PbPort *out)
{
	const struct port_config *c = &p->cfg;

	out->name = api_strdup(call, c->name);
	out->role = (Corelane__V1__PortRole)c->role;
	put_device(call, c, out);
	out->queues = c->queues;
	out->mtu = c->mtu;
	out->disabled = c->disabled;
	out->vlan = c->vlan;
	out->mac = put_mac(call, &c->mac);
	out->addresses = put_list(call, c->addrs, c->n_addrs, &out->n_addresses);
	out->vrf = api_strdup(call, c->vrf != UINT16_MAX && vrf_get(c->vrf) ? vrf_get(c->vrf)->name : "");
	out->bridge = api_strdup(call, c->bridge != UINT16_MAX && bridge_get(c->bridge) ? bridge_get(c->bridge)->cfg.name : "");
	out->gateways = put_list(call, c->gateways, c->n_gateways, &out->n_gateways);
	out->guest_mac = put_mac(call, &c->guest_mac);
	out->guest_addresses = put_list(call, c->guests, c->n_guests, &out->n_guest_addresses);
	out->proxy_arp = c->proxy_arp;
	out->mss_clamp = c->mss_clamp;
	out->no_anycast_gateway = c->no_gateway_echo;
	out->stateful = c->stateful;
	out->source_check = (Corelane__V1__SourceCheck)c->source_check;
	out->flow_limit = c->flow_limit;
	out->flow_rate = c->flow_rate;
	out->egress_meter = put_meter(call, c->egress_meter);
	out->ingress_meter = put_meter(call, c->ingress_meter);
	out->mirror = api_strdup(call, mirror_get(c->mirror) ? mirror_get(c->mirror)->cfg.name : "");
	out->fabric = api_strdup(call, port_get(c->fabric) ? port_get(c->fabric)->cfg.name : "");
	out->egress_rules = api_strdup(call, rule_list_name(c->rules[RULES_EGRESS]));
	out->ingress_rules = api_strdup(call, rule_list_name(c->rules[RULES_INGRESS]));
	out->mode = (Corelane__V1__PortMode)c->mode;
	out->ring_full = (Corelane__V1__RingFull)c->ring_full;
	out->spread_workers = port_weights_put(call, c, &out->n_spread_workers);
	out->polled_by = port_polled_by_put(call, c, &out->n_polled_by);
	put_state(call, p, out);
}

static int missing(const char *field, struct error *err)
{
	return error_set(err, EINVAL, field, NULL, NULL, "is missing");
}

static int add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__PortAddRequest *in = req;
	struct port_config c;
	struct port *p;
	int ret = in->port ? get_port(in->port, &c, err) : missing("port", err);

	if (ret < 0)
		return ret;
	p = port_add(&c, err);
	if (p == NULL)
		return -(err->code ? err->code : EINVAL);
	put_port(call, p, resp);
	return 0;
}

static int set(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__PortSetRequest *in = req;
	struct port_config c;
	struct port *p;
	size_t i;
	int ret = 0;

	if (in->port == NULL)
		return missing("port", err);
	p = port_find(in->port->name);
	if (p == NULL)
		return error_set(err, ENOENT, "port.name", in->port->name, NULL, "there is no such port");
	c = p->cfg;
	for (i = 0; i < in->n_fields && ret == 0; i++)
		ret = get_field(in->port, in->fields[i], &c, err);
	if (ret == 0)
		ret = port_set(p, &c, err);
	if (ret == 0)
		put_port(call, p, resp);
	return ret;
}

static int del(struct api_call *call, const void *req, void *resp, struct error *err)
{
	return port_del(((const Corelane__V1__PortDelRequest *)req)->name, err);
}

static int list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__PortListRequest *in = req;
	uint16_t *last = cursor;
	struct port *p;

	if (*in->name && *last == 0 && port_find(in->name) == NULL)
		return error_set(err, ENOENT, "port.name", in->name, NULL, "there is no such port");
	while (++*last < PORT_MAX) {
		p = port_get(*last);
		if (p == NULL || (*in->name && strcmp(in->name, p->cfg.name) != 0) || (in->role && (unsigned)in->role != p->role))
			continue;
		put_port(call, p, item);
		return 1;
	}
	return 0;
}

static int assign(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__PortAssignRequest *in = req;
	struct worker *w = worker_get(in->worker);
	struct port *p = port_find(in->name);
	char text[16], valid[32];
	int ret;

	if (p == NULL)
		return error_set(err, ENOENT, "name", in->name, NULL, "there is no such port");
	snprintf(text, sizeof(text), "%u", in->queue);
	snprintf(valid, sizeof(valid), "0 to %u", p->n_queues - 1u);
	if (in->queue >= p->n_queues)
		return error_set(err, ERANGE, "queue", text, valid, "the port has no such queue");
	snprintf(text, sizeof(text), "%u", in->worker);
	if (w == NULL)
		return error_set(err, ENOENT, "worker", text, "the id of a worker that exists", "there is no such worker");
	ret = worker_assign(&p->queues[in->queue], w, err);
	if (ret == 0)
		put_port(call, p, resp);
	return ret;
}

static const struct api_method methods[] = {
	{"corelane.v1.Ports", "Add", &corelane__v1__port_add_request__descriptor, &corelane__v1__port__descriptor, .unary = add},
	{"corelane.v1.Ports", "Set", &corelane__v1__port_set_request__descriptor, &corelane__v1__port__descriptor, .unary = set},
	{"corelane.v1.Ports", "Del", &corelane__v1__port_del_request__descriptor, &corelane__v1__empty__descriptor, .unary = del},
	{"corelane.v1.Ports", "List", &corelane__v1__port_list_request__descriptor, &corelane__v1__port__descriptor, .next = list,
	 .cursor_size = sizeof(uint16_t)},
	{"corelane.v1.Ports", "Assign", &corelane__v1__port_assign_request__descriptor, &corelane__v1__port__descriptor,
	 .unary = assign},
};
API_METHODS(methods)
