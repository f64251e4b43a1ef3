// SPDX-License-Identifier: Apache-2.0
// API of VRFs (api/vrf.proto).
#include <errno.h>
#include <string.h>

#include "api/api.h"
#include "base/owner.h"
#include "l3/tunnel.h"
#include "l3/vrf.h"
#include "vrf.pb-c.h"

static void vrf_api_encode(struct api_call *call, const struct vrf *v, Corelane__V1__Vrf *out)
{
	char mac[18];

	out->name = api_strdup(call, v->name);
	out->id = v->id;
	out->owner = api_strdup(call, owner_name(v->owner));
	out->routes_ipv4 = rib_count(v->rib[0]);
	out->routes_ipv6 = rib_count(v->rib[1]);
	out->router_mac = api_strdup(call, mac_format(&tunnel_router_mac, mac));
}

static int vrf_api_add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__VrfAddRequest *in = req;
	struct vrf *v;

	v = vrf_add(in->vrf->name, in->vrf->id, err);
	if (v == NULL)
		return -(err->code ? err->code : EINVAL);
	v->owner = api_client(call)->owner;
	vrf_api_encode(call, v, resp);
	return 0;
}

// Answers once the routes are gone, so that the client can delete their next hops.
static int vrf_api_del(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const char *name = ((const Corelane__V1__VrfDelRequest *)req)->name;
	uint64_t *serial = cursor; // 0: not deleted yet
	const struct vrf *v = *serial ? NULL : vrf_find(name);
	int ret = v ? api_owns(call, v->owner, "vrf.name", name, err) : 0;

	if (ret == 0 && *serial == 0)
		ret = vrf_del(name, err);

	if (ret < 0)
		return ret;
	if (*serial == 0)
		*serial = vrf_deletions;
	return vrf_has_routes(*serial) ? api_again(call) : 1;
}

static int vrf_api_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__VrfListRequest *in = req;
	uint32_t *next = cursor;

	if (*in->name && *next == 0 && vrf_find_err(in->name, "vrf.name", err) == NULL)
		return -ENOENT;
	while (*next < VRF_MAX) {
		struct vrf *v = vrf_get((uint16_t)(*next)++);

		if (v && (*in->name == '\0' || strcmp(in->name, v->name) == 0)) {
			vrf_api_encode(call, v, item);
			return 1;
		}
	}
	return 0;
}

static const struct api_method methods[] = {
	{"corelane.v1.Vrfs", "Add", &corelane__v1__vrf_add_request__descriptor, &corelane__v1__vrf__descriptor,
	 .unary = vrf_api_add},
	{"corelane.v1.Vrfs", "Del", &corelane__v1__vrf_del_request__descriptor, &corelane__v1__empty__descriptor,
	 .next = vrf_api_del, .single = true, .cursor_size = sizeof(uint64_t)},
	{"corelane.v1.Vrfs", "List", &corelane__v1__vrf_list_request__descriptor, &corelane__v1__vrf__descriptor,
	 .next = vrf_api_list, .cursor_size = sizeof(uint32_t)},
};
API_METHODS(methods)
