// SPDX-License-Identifier: Apache-2.0
// API of address groups (api/rule.proto).
#include <errno.h>
#include <string.h>

#include "api/api.h"
#include "policy/rules.h"
#include "rule.pb-c.h"

static void groups_api_encode(struct api_call *call, const struct address_group *g, Corelane__V1__AddressGroup *out)
{
	char text[IP_TEXT];
	size_t i;

	out->name = api_strdup(call, g->name);
	out->rules = g->rules;
	out->tunnel_ids = g->holders;
	out->n_prefixes = g->n;
	out->prefixes = api_alloc(call, (g->n + 1) * sizeof(*out->prefixes));
	for (i = 0; i < g->n; i++)
		out->prefixes[i] = api_strdup(call, ip_format_prefix(&g->prefixes[i], text));
}

static struct ip_prefix *groups_api_decode_prefixes(struct api_call *call, const Corelane__V1__AddressGroup *in,
						    struct error *err)
{
	struct ip_prefix *out = api_alloc(call, (in->n_prefixes + 1) * sizeof(*out));
	size_t i;

	for (i = 0; i < in->n_prefixes; i++) {
		if (ip_parse_prefix(in->prefixes[i], "group.prefixes", &out[i], err) < 0) {
			err->index = (uint32_t)i;
			return NULL;
		}
	}
	return out;
}

static int groups_api_add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__AddressGroup *in = ((const Corelane__V1__AddressGroupAddRequest *)req)->group;
	struct address_group *g;
	struct ip_prefix *p = groups_api_decode_prefixes(call, in, err);

	g = p ? address_group_add(in->name, p, in->n_prefixes, err) : NULL;
	if (g == NULL)
		return -err->code;
	groups_api_encode(call, g, resp);
	return 0;
}

static int groups_api_set(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__AddressGroupSetRequest *in = req;
	struct address_group *g = address_group_find_err(in->group->name, "group.name", err);
	struct ip_prefix *p;
	int ret;

	if (g == NULL)
		return -ENOENT;
	p = groups_api_decode_prefixes(call, in->group, err);
	if (p == NULL)
		return -err->code;
	// The prefixes are the only field of a group that Set may name (api/rule.proto).
	ret = address_group_set(g, p, in->group->n_prefixes, err);
	if (ret == 0)
		groups_api_encode(call, g, resp);
	return ret;
}

static int groups_api_del(struct api_call *call, const void *req, void *resp, struct error *err)
{
	return address_group_del(((const Corelane__V1__AddressGroupDelRequest *)req)->name, err);
}

static int groups_api_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__AddressGroupListRequest *in = req;
	uint16_t *last = cursor;
	struct address_group *g;

	if (*in->name && *last == 0 && address_group_find_err(in->name, "group.name", err) == NULL)
		return -ENOENT;
	while (++*last < ADDRESS_GROUPS_MAX) {
		g = address_group_get(*last);
		if (g == NULL || (*in->name && strcmp(in->name, g->name) != 0))
			continue;
		groups_api_encode(call, g, item);
		return 1;
	}
	*last = ADDRESS_GROUPS_MAX - 1;
	return 0;
}

static const struct api_method methods[] = {
	{"corelane.v1.AddressGroups", "Add", &corelane__v1__address_group_add_request__descriptor,
	 &corelane__v1__address_group__descriptor, .unary = groups_api_add},
	{"corelane.v1.AddressGroups", "Set", &corelane__v1__address_group_set_request__descriptor,
	 &corelane__v1__address_group__descriptor, .unary = groups_api_set},
	{"corelane.v1.AddressGroups", "Del", &corelane__v1__address_group_del_request__descriptor,
	 &corelane__v1__empty__descriptor, .unary = groups_api_del},
	{"corelane.v1.AddressGroups", "List", &corelane__v1__address_group_list_request__descriptor,
	 &corelane__v1__address_group__descriptor, .next = groups_api_list, .cursor_size = sizeof(uint16_t)},
};
API_METHODS(methods)
