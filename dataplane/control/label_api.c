// SPDX-License-Identifier: Apache-2.0
// API of labels and VNIs (api/label.proto, api/vni.proto).
#include <errno.h>
#include <stdio.h>

#include "api/api.h"
#include "base/owner.h"
#include "l2/bridge.h"
#include "l3/nexthop.h"
#include "l3/vrf.h"
#include "label.pb-c.h"
#include "overlay/overlay.h"
#include "policy/rules.h"
#include "vni.pb-c.h"

static int label_api_decode_target(const char *vrf, const char *bridge, uint32_t nexthop, uint32_t flags, uint32_t *out,
				   struct error *err)
{
	struct bridge *b;
	struct vrf *v;
	int ret;

	if (vrf) {
		v = vrf_find_err(vrf, "target.vrf", err);
		if (v == NULL)
			return -ENOENT;
		if (v->id == VRF_FABRIC)
			return error_set(err, EINVAL, "target.vrf", vrf, "a tenant's VRF", "belongs to the underlay");
		*out = TARGET(TARGET_VRF, v->id);
	} else if (bridge) {
		b = bridge_find_err(bridge, "target.bridge", err);
		if (b == NULL)
			return -ENOENT;
		*out = TARGET(TARGET_BRIDGE, b->id);
	} else {
		ret = nexthop_usable(nexthop, "target.nexthop", err);
		if (ret < 0)
			return ret;
		if (nexthop_get(nexthop)->cfg.kind == NH_LOCAL)
			return error_set(err, EINVAL, "target.nexthop", NULL, "another kind of next hop",
					 "the router's own addresses belong to a VRF");
		*out = TARGET(TARGET_NEXTHOP, nexthop);
	}
	*out |= flags;
	return 0;
}

static const char *vrf_name(uint32_t target)
{
	return vrf_get((uint16_t)TARGET_ID(target))->name;
}

static const char *bridge_name(uint32_t target)
{
	return bridge_get((uint16_t)TARGET_ID(target))->cfg.name;
}

static int label_api_decode_sources(const char *group, struct address_group **out, struct error *err)
{
	*out = *group ? address_group_find_err(group, "sources", err) : NULL;
	return *group && *out == NULL ? -ENOENT : 0;
}

static char *label_api_sources(struct api_call *call, uint32_t tunnel_id)
{
	const struct address_group *g = tunnel_sources(tunnel_id);

	return api_strdup(call, g ? g->name : "");
}

#define IS(in, PREFIX, kind) ((in)->target_case == CORELANE__V1__##PREFIX##__TARGET_##kind)

#define FLAGS(in) (((in)->uniform ? TARGET_UNIFORM : 0) | ((in)->tunnel_ends ? TARGET_ENDS : 0))

// A macro because the two messages differ only in their C types.
#define ENCODE_TARGET(call, target, out, PREFIX)                                       \
	do {                                                                           \
		(out)->uniform = ((target)&TARGET_UNIFORM) != 0;                       \
		(out)->tunnel_ends = ((target)&TARGET_ENDS) != 0;                      \
		(out)->owner = api_strdup(call, owner_name(TARGET_OWNER(target)));     \
		switch (TARGET_KIND(target)) {                                         \
		case TARGET_VRF:                                                       \
			(out)->target_case = CORELANE__V1__##PREFIX##__TARGET_VRF;     \
			(out)->vrf = api_strdup(call, vrf_name(target));               \
			break;                                                         \
		case TARGET_BRIDGE:                                                    \
			(out)->target_case = CORELANE__V1__##PREFIX##__TARGET_BRIDGE;  \
			(out)->bridge = api_strdup(call, bridge_name(target));         \
			break;                                                         \
		default:                                                               \
			(out)->target_case = CORELANE__V1__##PREFIX##__TARGET_NEXTHOP; \
			(out)->nexthop = TARGET_ID(target);                            \
		}                                                                      \
	} while (0)

static void label_api_encode(struct api_call *call, uint32_t label, Corelane__V1__Label *out)
{
	out->label = label;
	out->sources = label_api_sources(call, TUNNEL_ID_LABEL(label));
	ENCODE_TARGET(call, label_table[label], out, LABEL);
}

static void vni_api_encode(struct api_call *call, uint32_t vni, Corelane__V1__Vni *out)
{
	out->vni = vni;
	out->sources = label_api_sources(call, TUNNEL_ID_VNI(vni));
	ENCODE_TARGET(call, vni_target(vni), out, VNI);
}

// Returns 0 also if the label or VNI is free.
static int label_api_owns(const struct api_call *call, uint32_t target, const char *field, uint32_t value,
			  struct error *err)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	return target ? api_owns(call, TARGET_OWNER(target), field, text, err) : 0;
}

static int label_api_add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__LabelAddRequest *add = req;
	const Corelane__V1__Label *in = add->label;
	struct tunnel_target t = {.replace = add->replace};
	int ret;

	ret = label_api_decode_target(IS(in, LABEL, VRF) ? in->vrf : NULL, IS(in, LABEL, BRIDGE) ? in->bridge : NULL,
				      in->nexthop, FLAGS(in), &t.target, err);
	if (ret == 0)
		ret = label_api_decode_sources(in->sources, &t.sources, err);
	if (ret == 0 && t.replace)
		ret = label_api_owns(call, label_table[in->label], "label.label", in->label, err);
	t.target |= TARGET_OWNED(api_client(call)->owner);
	if (ret == 0)
		ret = label_add(in->label, &t, err);
	if (ret == 0)
		label_api_encode(call, in->label, resp);
	return ret;
}

static int label_del(struct api_call *call, const void *req, void *resp, struct error *err)
{
	uint32_t label = ((const Corelane__V1__LabelDelRequest *)req)->label;
	int ret = label < LABEL_MAX ? label_api_owns(call, label_table[label], "label.label", label, err) : 0;

	return ret < 0 ? ret : label_unset(label, err);
}

static int label_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	uint32_t *last = cursor;

	*last = label_next(*last);
	if (*last >= LABEL_MAX)
		return *last = LABEL_MAX - 1, 0;
	label_api_encode(call, *last, item);
	return 1;
}

static int vni_api_add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__VniAddRequest *add = req;
	const Corelane__V1__Vni *in = add->vni;
	struct tunnel_target t = {.replace = add->replace};
	int ret;

	ret = label_api_decode_target(IS(in, VNI, VRF) ? in->vrf : NULL, IS(in, VNI, BRIDGE) ? in->bridge : NULL,
				      in->nexthop, FLAGS(in), &t.target, err);
	if (ret == 0)
		ret = label_api_decode_sources(in->sources, &t.sources, err);
	if (ret == 0 && t.replace)
		ret = label_api_owns(call, vni_target(in->vni), "vni.vni", in->vni, err);
	t.target |= TARGET_OWNED(api_client(call)->owner);
	if (ret == 0)
		ret = vni_add(in->vni, &t, err);
	if (ret == 0)
		vni_api_encode(call, in->vni, resp);
	return ret;
}

static int vni_del(struct api_call *call, const void *req, void *resp, struct error *err)
{
	uint32_t vni = ((const Corelane__V1__VniDelRequest *)req)->vni;
	int ret = vni < VNI_MAX ? label_api_owns(call, vni_target(vni), "vni.vni", vni, err) : 0;

	return ret < 0 ? ret : vni_unset(vni, err);
}

static int vni_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	uint32_t *last = cursor;

	*last = vni_next(*last);
	if (*last >= VNI_MAX)
		return *last = VNI_MAX - 1, 0;
	vni_api_encode(call, *last, item);
	return 1;
}

static const struct api_method methods[] = {
	{"corelane.v1.Labels", "Add", &corelane__v1__label_add_request__descriptor, &corelane__v1__label__descriptor,
	 .unary = label_api_add},
	{"corelane.v1.Labels", "Del", &corelane__v1__label_del_request__descriptor, &corelane__v1__empty__descriptor,
	 .unary = label_del},
	{"corelane.v1.Labels", "List", &corelane__v1__label_list_request__descriptor, &corelane__v1__label__descriptor,
	 .next = label_list, .cursor_size = sizeof(uint32_t)},
	{"corelane.v1.Vnis", "Add", &corelane__v1__vni_add_request__descriptor, &corelane__v1__vni__descriptor,
	 .unary = vni_api_add},
	{"corelane.v1.Vnis", "Del", &corelane__v1__vni_del_request__descriptor, &corelane__v1__empty__descriptor,
	 .unary = vni_del},
	{"corelane.v1.Vnis", "List", &corelane__v1__vni_list_request__descriptor, &corelane__v1__vni__descriptor,
	 .next = vni_list, .cursor_size = sizeof(uint32_t)},
};
API_METHODS(methods)
