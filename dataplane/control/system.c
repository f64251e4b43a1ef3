// SPDX-License-Identifier: Apache-2.0
// API of the process (api/system.proto): handshake, status, settings.
#include "control/system.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_hash_crc.h>
#include <rte_version.h>

#include "api/api.h"
#include "flow/tcp.h"
#include "graph/counters.h"
#include "l2/bridge.h"
#include "l3/encap.h"
#include "l3/icmp.h"
#include "l3/nexthop.h"
#include "l3/vrf.h"
#include "neighbor/neighbor.h"
#include "overlay/overlay.h"
#include "port/port_kinds.h"
#include "port/registry.h"
#include "system.pb-c.h"
#include "worker/load.h"
#include "worker/worker.h"

static uint64_t started;
static bool hugepages;
static char socket_path[108];

// Stable for an instance of a host: the last 46 bits come from the machine's id and the run directory.
static void derive_router_mac(const char *run_dir)
{
	char id[128] = "";
	uint32_t a, b;
	FILE *f = fopen("/etc/machine-id", "r");

	if (f) {
		if (fgets(id, 64, f) == NULL)
			id[0] = '\0';
		fclose(f);
	}
	if (id[0] == '\0')
		gethostname(id, sizeof(id) - 1);
	a = rte_hash_crc(id, (uint32_t)strlen(id), 1);
	a = rte_hash_crc(run_dir, (uint32_t)strlen(run_dir), a);
	b = rte_hash_crc(id, (uint32_t)strlen(id), ~a);
	overlay_router_mac =
		(struct rte_ether_addr){{0x02, (uint8_t)b, (uint8_t)(a >> 24), (uint8_t)(a >> 16), (uint8_t)(a >> 8), (uint8_t)a}};
}

int system_init(const struct system_process *p, struct error *err)
{
	started = rte_rdtsc();
	hugepages = p->hugepages;
	snprintf(socket_path, sizeof(socket_path), "%s", p->socket);
	if (p->router_mac[0])
		return mac_parse(p->router_mac, "--router-mac", &overlay_router_mac, err);
	derive_router_mac(p->run_dir);
	return 0;
}

static int hello(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__HelloRequest *in = req;
	Corelane__V1__HelloReply *out = resp;
	char text[32], valid[32];

	snprintf(text, sizeof(text), "%u.%u", in->major, in->minor);
	snprintf(valid, sizeof(valid), "%d.x", API_MAJOR);
	if (in->major != API_MAJOR)
		return error_set(err, EPROTO, "major", text, valid, "client and daemon speak different versions of the API");
	out->major = API_MAJOR;
	out->minor = API_MINOR;
	out->version = api_strdup(call, CORELANE_VERSION);
	out->dpdk = api_strdup(call, rte_version());
	out->pid = (int32_t)getpid();
	return 0;
}

static uint64_t resident_bytes(void)
{
	unsigned long total = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f) {
		if (fscanf(f, "%lu %lu", &total, &resident) != 2)
			resident = 0;
		fclose(f);
	}
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint32_t open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint32_t n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n > 3 ? n - 3 : 0; // ".", ".." and the directory itself
}

static void put_traffic(Corelane__V1__Status *out)
{
	struct port_counters c;
	struct port *p;
	unsigned i, r;

	for (p = port_next(NULL); p; p = port_next(p)) {
		counters_port(p->id, &c);
		out->rx_packets += c.rx_packets;
		out->tx_packets += c.tx_packets;
		out->ports_up += p->up;
	}
	for (i = 0; i < PORT_MAX; i++)
		for (r = 0; drop_reason_get((uint16_t)r); r++)
			out->dropped_packets += counters_drops((uint16_t)i, (uint16_t)r);
}

static int status(struct api_call *call, const void *req, void *resp, struct error *err)
{
	Corelane__V1__Status *out = resp;
	unsigned total, used;

	port_pool_usage(&total, &used);
	out->version = api_strdup(call, CORELANE_VERSION);
	out->pid = (int32_t)getpid();
	out->uptime_seconds = (double)(rte_rdtsc() - started) / (double)rte_get_tsc_hz();
	out->socket = api_strdup(call, socket_path);
	out->hugepages = hugepages;
	out->memory_bytes = resident_bytes();
	out->mbufs_total = total;
	out->mbufs_in_use = used;
	out->ports = port_count();
	out->workers = worker_count();
	out->vrfs = vrf_count();
	out->routes_ipv4 = route_count(IPV4);
	out->routes_ipv6 = route_count(IPV6);
	out->nexthops = nexthop_count();
	out->labels = label_count();
	out->vnis = vni_count();
	out->bridges = bridge_count();
	out->macs = mac_count();
	out->neighbors = neighbor_count();
	out->fib_bytes = fib_memory();
	out->rib_bytes = rib_memory();
	out->open_files = open_files();
	put_traffic(out);
	return 0;
}

// The list of UDP ports that an encapsulation has in the settings.
struct ports_setting {
	size_t *n;
	uint32_t **ports;
};

static struct ports_setting ports_of(const Corelane__V1__Settings *s, const char *setting)
{
	const ProtobufCFieldDescriptor *f =
		protobuf_c_message_descriptor_get_field_by_name(&corelane__v1__settings__descriptor, setting);
	uint8_t *base = (uint8_t *)(uintptr_t)s;

	return (struct ports_setting){(size_t *)(base + f->quantifier_offset), (uint32_t **)(base + f->offset)};
}

static void put_ports(struct api_call *call, const struct encap_ops *e, Corelane__V1__Settings *out)
{
	struct ports_setting s = ports_of(out, e->udp_setting);
	const uint16_t *ports;
	unsigned n, i;

	ports = encap_ports(e, &n);
	*s.n = n;
	*s.ports = api_alloc(call, n * sizeof(**s.ports));
	for (i = 0; i < n; i++)
		(*s.ports)[i] = ports[i];
}

// The ages at which flows end, with the name of each in the API.
#define SECONDS(setting, timeout)                                                           \
	{                                                                                   \
#setting, offsetof(Corelane__V1__Settings, setting), &flow_timeouts.timeout \
	}
static const struct {
	const char *name;
	size_t at;
	uint16_t *seconds;
} ages[] = {
	SECONDS(flow_tcp_half_open_seconds, tcp[TCP_SYN_SENT]),
	SECONDS(flow_tcp_established_seconds, tcp[TCP_ESTABLISHED]),
	SECONDS(flow_tcp_closing_seconds, tcp[TCP_FIN_WAIT]),
	SECONDS(flow_udp_seconds, udp),
	SECONDS(flow_udp_answered_seconds, udp_answered),
	SECONDS(flow_icmp_seconds, icmp),
	SECONDS(flow_other_seconds, other),
	SECONDS(flow_denied_seconds, denied),
};

static uint32_t *age_of(Corelane__V1__Settings *s, unsigned i)
{
	return RTE_PTR_ADD(s, ages[i].at);
}

static void put_settings(struct api_call *call, Corelane__V1__Settings *out)
{
	const struct encap_ops *e;
	unsigned i;

	for (e = encap_next(NULL); e; e = encap_next(e))
		if (e->udp_setting)
			put_ports(call, e, out);
	out->mac_age_seconds = mac_age_seconds;
	out->neighbor_age_seconds = neighbor_age_seconds;
	out->icmp_errors_per_second = icmp_errors_per_second;
	out->label_stack_depth = label_stack_depth;
	out->flow_tcp_strict = flow_tcp_strict;
	out->rebalance_seconds = rebalance_seconds;
	for (i = 0; i < RTE_DIM(ages); i++)
		*age_of(out, i) = *ages[i].seconds;
}

static int get_settings(struct api_call *call, const void *req, void *resp, struct error *err)
{
	put_settings(call, resp);
	return 0;
}

struct wanted { // everything is checked before anything changes
	Corelane__V1__Settings s;
};

static int check_udp(const char *field, const uint32_t *ports, size_t n, struct error *err)
{
	char text[16];
	size_t i;

	if (n == 0 || n > ENCAP_UDP_PORTS)
		return error_set(err, EINVAL, field, NULL, "1 to 8 UDP ports", "a tunnel protocol needs a port");
	for (i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "%u", ports[i]);
		if (ports[i] == 0 || ports[i] > 65535)
			return error_set(err, ERANGE, field, text, "1 to 65535", "is no UDP port");
	}
	return 0;
}

static int check_range(const char *field, uint32_t v, uint32_t min, uint32_t max, struct error *err)
{
	char text[16], valid[32];

	snprintf(text, sizeof(text), "%u", v);
	snprintf(valid, sizeof(valid), "%u to %u", min, max);
	return v >= min && v <= max ? 0 : error_set(err, ERANGE, field, text, valid, "is out of range");
}

static int check_overlap(struct error *err, const struct wanted *w, const struct encap_ops *a, const struct encap_ops *b)
{
	struct ports_setting mine = ports_of(&w->s, a->udp_setting), other = ports_of(&w->s, b->udp_setting);
	char text[16], field[64];
	size_t i, j;

	for (i = 0; i < *mine.n; i++) {
		for (j = 0; j < *other.n; j++) {
			if ((*mine.ports)[i] != (*other.ports)[j])
				continue;
			snprintf(text, sizeof(text), "%u", (*mine.ports)[i]);
			snprintf(field, sizeof(field), "settings.%s", a->udp_setting);
			return error_set(err, EINVAL, field, text, "different ports", "is one of %s too", b->udp_setting);
		}
	}
	return 0;
}

static int check_overlaps(struct error *err, const struct wanted *w)
{
	const struct encap_ops *a, *b;
	int ret = 0;

	for (a = encap_next(NULL); a; a = encap_next(a))
		for (b = encap_next(NULL); b != a && ret == 0; b = encap_next(b))
			if (a->udp_setting && b->udp_setting)
				ret = check_overlap(err, w, a, b);
	return ret;
}

static int get_ports(const Corelane__V1__Settings *in, const char *setting, struct wanted *w, struct error *err)
{
	struct ports_setting from = ports_of(in, setting), to = ports_of(&w->s, setting);
	char field[64];

	*to.n = *from.n;
	*to.ports = *from.ports;
	snprintf(field, sizeof(field), "settings.%s", setting);
	return check_udp(field, *from.ports, *from.n, err);
}

static int get_age(const Corelane__V1__Settings *in, const char *f, struct wanted *w, struct error *err)
{
	char name[64];
	unsigned i;

	for (i = 0; i < RTE_DIM(ages); i++) {
		if (strcmp(f, ages[i].name) != 0)
			continue;
		*age_of(&w->s, i) = *(const uint32_t *)RTE_PTR_ADD(in, ages[i].at);
		snprintf(name, sizeof(name), "settings.%s", f);
		return check_range(name, *age_of(&w->s, i), 1, FLOW_TIMEOUT_MAX, err);
	}
	return error_set(err, EINVAL, "fields", f,
			 "..._ports, mac_age_seconds, neighbor_age_seconds, icmp_errors_per_second, label_stack_depth, "
			 "rebalance_seconds, flow_tcp_strict, flow_..._seconds",
			 "cannot be set");
}

static int get_field(const Corelane__V1__Settings *in, const char *f, struct wanted *w, struct error *err)
{
	const struct encap_ops *e;

	for (e = encap_next(NULL); e; e = encap_next(e))
		if (e->udp_setting && strcmp(f, e->udp_setting) == 0)
			return get_ports(in, f, w, err);
	if (strcmp(f, "mac_age_seconds") == 0)
		return w->s.mac_age_seconds = in->mac_age_seconds,
		       check_range("settings.mac_age_seconds", in->mac_age_seconds, 10, 1000000, err);
	if (strcmp(f, "neighbor_age_seconds") == 0)
		return w->s.neighbor_age_seconds = in->neighbor_age_seconds,
		       check_range("settings.neighbor_age_seconds", in->neighbor_age_seconds, 1, 1000000, err);
	if (strcmp(f, "icmp_errors_per_second") == 0)
		return w->s.icmp_errors_per_second = in->icmp_errors_per_second,
		       check_range("settings.icmp_errors_per_second", in->icmp_errors_per_second, 0, 1000000, err);
	if (strcmp(f, "label_stack_depth") == 0)
		return w->s.label_stack_depth = in->label_stack_depth,
		       check_range("settings.label_stack_depth", in->label_stack_depth, 1, 16, err);
	if (strcmp(f, "rebalance_seconds") == 0)
		return w->s.rebalance_seconds = in->rebalance_seconds,
		       check_range("settings.rebalance_seconds", in->rebalance_seconds, 0, 3600, err);
	if (strcmp(f, "flow_tcp_strict") == 0)
		return w->s.flow_tcp_strict = in->flow_tcp_strict, 0;
	return get_age(in, f, w, err);
}

static void apply_ports(const Corelane__V1__Settings *s)
{
	const struct encap_ops *e;

	for (e = encap_next(NULL); e; e = encap_next(e))
		if (e->udp_setting)
			encap_set_ports(e, *ports_of(s, e->udp_setting).ports, (unsigned)*ports_of(s, e->udp_setting).n);
}

static int set_settings(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__SettingsSetRequest *in = req;
	struct wanted w = {0};
	size_t i;
	int ret = 0;

	if (in->settings == NULL)
		return error_set(err, EINVAL, "settings", NULL, NULL, "is missing");
	corelane__v1__settings__init(&w.s);
	put_settings(call, &w.s);
	for (i = 0; i < in->n_fields && ret == 0; i++)
		ret = get_field(in->settings, in->fields[i], &w, err);
	if (ret == 0)
		ret = check_overlaps(err, &w);
	if (ret < 0)
		return ret;
	apply_ports(&w.s);
	mac_age_seconds = w.s.mac_age_seconds;
	neighbor_age_seconds = w.s.neighbor_age_seconds;
	icmp_errors_per_second = w.s.icmp_errors_per_second;
	label_stack_depth = (uint8_t)w.s.label_stack_depth;
	flow_tcp_strict = w.s.flow_tcp_strict;
	rebalance_seconds = w.s.rebalance_seconds;
	for (i = 0; i < RTE_DIM(ages); i++)
		*ages[i].seconds = (uint16_t)*age_of(&w.s, (unsigned)i);
	flow_timeouts.tcp[TCP_NONE] = flow_timeouts.tcp[TCP_SYN_RECV] = flow_timeouts.tcp[TCP_SYN_SENT];
	nexthop_underlay_changed(); // tunnels carry the ports in their headers
	put_settings(call, resp);
	return 0;
}

static const struct api_method methods[] = {
	{"corelane.v1.System", "Hello", &corelane__v1__hello_request__descriptor, &corelane__v1__hello_reply__descriptor,
	 .unary = hello},
	{"corelane.v1.System", "GetStatus", &corelane__v1__empty__descriptor, &corelane__v1__status__descriptor, .unary = status},
	{"corelane.v1.System", "GetSettings", &corelane__v1__empty__descriptor, &corelane__v1__settings__descriptor,
	 .unary = get_settings},
	{"corelane.v1.System", "SetSettings", &corelane__v1__settings_set_request__descriptor, &corelane__v1__settings__descriptor,
	 .unary = set_settings},
};
API_METHODS(methods)
