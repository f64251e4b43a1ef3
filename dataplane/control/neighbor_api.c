// SPDX-License-Identifier: Apache-2.0
// The service corelane.v1.Neighbors.
#include <errno.h>
#include <string.h>

#include <rte_cycles.h>

#include "api/api.h"
#include "base/owner.h"
#include "neighbor.pb-c.h"
#include "neighbor/neighbor.h"
#include "port/registry.h"

static const Corelane__V1__NeighborStatus statuses[] = {
	[NEIGH_INCOMPLETE] = CORELANE__V1__NEIGHBOR_STATUS__NEIGHBOR_INCOMPLETE,
	[NEIGH_REACHABLE] = CORELANE__V1__NEIGHBOR_STATUS__NEIGHBOR_REACHABLE,
	[NEIGH_STALE] = CORELANE__V1__NEIGHBOR_STATUS__NEIGHBOR_STALE,
	[NEIGH_PROBE] = CORELANE__V1__NEIGHBOR_STATUS__NEIGHBOR_PROBE,
	[NEIGH_FAILED] = CORELANE__V1__NEIGHBOR_STATUS__NEIGHBOR_FAILED,
	[NEIGH_PERMANENT] = CORELANE__V1__NEIGHBOR_STATUS__NEIGHBOR_PERMANENT,
};

static struct port *port_named(const char *name, const char *field, struct error *err)
{
	struct port *p = name && *name ? port_find(name) : NULL;

	if (p == NULL)
		error_set(err, ENOENT, field, name, "the name of a port", "there is no such port");
	return p;
}

static void neighbor_api_encode(struct api_call *call, const struct neighbor *n, Corelane__V1__Neighbor *out)
{
	char addr[IP_TEXT], mac[18];

	out->port = api_strdup(call, port_get(n->port)->cfg.name);
	if (n->addr.family)
		out->address = api_strdup(call, ip_format_addr(&n->addr, addr));
	if (!rte_is_zero_ether_addr(&n->mac))
		out->mac = api_strdup(call, mac_format(&n->mac, mac));
	out->status = statuses[n->state];
	if (n->state == NEIGH_PERMANENT)
		out->owner = api_strdup(call, owner_name(n->owner));
	if (n->confirmed)
		out->age_seconds = (uint32_t)((neighbor_clock() - n->confirmed) / rte_get_tsc_hz());
	out->waiting = n->n_waiting;
}

// Returns 0 also for a neighbour that was learnt, or is not there.
static int neighbor_api_owns(const struct api_call *call, const struct neighbor *n, const char *address,
			     struct error *err)
{
	return n && n->state == NEIGH_PERMANENT ? api_owns(call, n->owner, "neighbor.address", address, err) : 0;
}

static int neighbor_api_add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__Neighbor *in = ((const Corelane__V1__NeighborAddRequest *)req)->neighbor;
	struct rte_ether_addr mac;
	struct ip_addr addr;
	struct port *p;
	int ret;

	p = port_named(in->port, "neighbor.port", err);
	if (p == NULL)
		return -ENOENT;
	ret = ip_parse_addr(in->address, "neighbor.address", &addr, err);
	if (ret == 0)
		ret = mac_parse(in->mac, "neighbor.mac", &mac, err);
	if (ret == 0)
		ret = neighbor_check_link(p->id, &addr, "neighbor.address", err);
	if (ret == 0)
		ret = neighbor_api_owns(call, neighbor_find(p->id, &addr), in->address, err);
	if (ret == 0)
		ret = neighbor_set(p->id, &addr, &mac, err);
	if (ret == 0)
		neighbor_find(p->id, &addr)->owner = api_client(call)->owner;
	if (ret == 0)
		neighbor_api_encode(call, neighbor_find(p->id, &addr), resp);
	return ret;
}

static int neighbor_api_del(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__NeighborDelRequest *in = req;
	struct port *p = port_named(in->port, "port", err);
	struct ip_addr addr;
	int ret;

	if (p == NULL)
		return -ENOENT;
	ret = ip_parse_addr(in->address, "address", &addr, err);
	if (ret == 0)
		ret = neighbor_api_owns(call, neighbor_find(p->id, &addr), in->address, err);
	return ret < 0 ? ret : neighbor_del(p->id, &addr, err);
}

static int neighbor_api_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__NeighborListRequest *in = req;
	uint32_t *last = cursor; // adjacency of the neighbour that was sent last
	struct port *p = NULL;
	struct neighbor *n;

	if (in->port && *in->port) {
		p = port_named(in->port, "port", err);
		if (p == NULL)
			return -ENOENT;
	}
	while (++*last < neighbor_end) {
		n = neighbor_at(*last);
		if (n && n->port && (p == NULL || n->port == p->id)) {
			neighbor_api_encode(call, n, item);
			return 1;
		}
	}
	return 0;
}

#define SERVICE "corelane.v1.Neighbors"

static const struct api_method methods[] = {
	{.service = SERVICE,
	 .name = "Add",
	 .req = &corelane__v1__neighbor_add_request__descriptor,
	 .resp = &corelane__v1__neighbor__descriptor,
	 .unary = neighbor_api_add},
	{.service = SERVICE,
	 .name = "Del",
	 .req = &corelane__v1__neighbor_del_request__descriptor,
	 .resp = &corelane__v1__empty__descriptor,
	 .unary = neighbor_api_del},
	{.service = SERVICE,
	 .name = "List",
	 .req = &corelane__v1__neighbor_list_request__descriptor,
	 .resp = &corelane__v1__neighbor__descriptor,
	 .next = neighbor_api_list,
	 .cursor_size = sizeof(uint32_t)},
};
API_METHODS(methods);
