// SPDX-License-Identifier: Apache-2.0
// API of the process (api/system.proto): status. For settings see control/settings_api.c, for the handshake
// api/hello.c.
#include "control/system.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "api/api.h"
#include "api/limit.h"
#include "control/master_turns.h"
#include "flow/flow.h"
#include "graph/counters.h"
#include "keep/keep.h"
#include "l2/bridge.h"
#include "l3/nexthop.h"
#include "l3/tunnel.h"
#include "l3/vrf.h"
#include "neighbor/neighbor.h"
#include "overlay/overlay.h"
#include "port/port_kinds.h"
#include "port/registry.h"
#include "system.pb-c.h"
#include "worker/worker.h"

static uint64_t started, started_ns; // cycles, Unix time
static bool hugepages;
static char socket_path[108];

void system_init(const char *socket, bool with_hugepages)
{
	static struct api_listener requests = {.settle = flow_changes_take_effect};
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	started_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	started = rte_rdtsc();
	hugepages = with_hugepages;
	snprintf(socket_path, sizeof(socket_path), "%s", socket);
	api_listen(&requests);
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

static void system_encode_traffic(Corelane__V1__Status *out)
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

static void system_encode_api(struct api_call *call, Corelane__V1__Status *out)
{
	Corelane__V1__ApiLimit *l;
	char text[API_LIMIT_TEXT];
	enum api_limit i;

	out->api_connections = api_conn_count();
	out->api_limits = api_alloc(call, LIMITS * sizeof(*out->api_limits));
	for (i = 0; i < LIMITS; i++) {
		if (api_limit_reached(i) == 0)
			continue;
		l = api_alloc(call, sizeof(*l));
		corelane__v1__api_limit__init(l);
		l->name = api_strdup(call, api_limit_name(i));
		l->count = api_limit_reached(i);
		l->explanation = api_strdup(call, api_limit_text(i, text));
		out->api_limits[out->n_api_limits++] = l;
	}
}

static void system_encode_kept(struct api_call *call, Corelane__V1__Status *out)
{
	const struct keep_status *k = keep_status();

	if (k->directory == NULL)
		return;
	out->kept = api_alloc(call, sizeof(*out->kept));
	corelane__v1__kept_state__init(out->kept);
	out->kept->directory = api_strdup(call, k->directory);
	out->kept->bytes = k->bytes;
	out->kept->changes = k->changes;
	out->kept->restored = k->restored;
	out->kept->refused = k->refused;
	out->kept->restore_ns = k->restore_ns;
	out->kept->problem = api_strdup(call, k->problem);
}

static int system_status(struct api_call *call, const void *req, void *resp, struct error *err)
{
	Corelane__V1__Status *out = resp;
	unsigned total, used;

	port_pool_usage(&total, &used);
	out->version = api_strdup(call, CORELANE_VERSION);
	out->pid = (int32_t)getpid();
	out->uptime_seconds = (double)(rte_rdtsc() - started) / (double)rte_get_tsc_hz();
	out->started_ns = started_ns;
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
	out->master = master_turns_encode(call);
	system_encode_api(call, out);
	system_encode_kept(call, out);
	system_encode_traffic(out);
	return 0;
}

static const struct api_method methods[] = {
	{"corelane.v1.System", "GetStatus", &corelane__v1__empty__descriptor, &corelane__v1__status__descriptor,
	 .unary = system_status},
};
API_METHODS(methods)
