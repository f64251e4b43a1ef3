// SPDX-License-Identifier: Apache-2.0
// API of the node's settings (api/system.proto). Modules register the fields of Settings (base/setting.h).
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "api/api.h"
#include "base/setting.h"
#include "system.pb-c.h"

#define PbSettings Corelane__V1__Settings
#define PbSetRequest Corelane__V1__SettingsSetRequest

// The place of a setting's value in a message.
struct settings_field {
	void *value;
	size_t *n; // of a list
};

static struct settings_field settings_field(const PbSettings *msg, const struct setting *s)
{
	const ProtobufCFieldDescriptor *f =
		protobuf_c_message_descriptor_get_field_by_name(&corelane__v1__settings__descriptor, s->name);

	return (struct settings_field){RTE_PTR_ADD(msg, f->offset), RTE_PTR_ADD(msg, f->quantifier_offset)};
}

static void settings_api_encode_list(struct api_call *call, const struct setting_list *l, struct settings_field to)
{
	uint32_t *values = api_alloc(call, l->n * sizeof(*values));

	memcpy(values, l->values, l->n * sizeof(*values));
	*to.n = l->n;
	*(uint32_t **)to.value = values;
}

static void settings_api_encode(struct api_call *call, PbSettings *out)
{
	const struct setting *s;

	for (s = setting_next(NULL); s; s = setting_next(s)) {
		struct settings_field to = settings_field(out, s);

		if (s->type == SETTING_LIST)
			settings_api_encode_list(call, setting_get_list(s), to);
		else
			*(uint32_t *)to.value = setting_get(s); // protobuf_c_boolean has its size
	}
}

static int settings_api_get(struct api_call *call, const void *req, void *resp, struct error *err)
{
	settings_api_encode(call, resp);
	return 0;
}

// Returns the list as it will be after the request.
static const uint32_t *wanted_list(const PbSetRequest *in, const struct setting *s, size_t *n)
{
	size_t i;

	for (i = 0; i < in->n_fields; i++) {
		if (strcmp(in->fields[i], s->name) == 0) {
			*n = *settings_field(in->settings, s).n;
			return *(uint32_t **)settings_field(in->settings, s).value;
		}
	}
	*n = setting_get_list(s)->n;
	return setting_get_list(s)->values;
}

static int check_pair(const PbSetRequest *in, const struct setting *a, const struct setting *b, struct error *err)
{
	size_t n_mine, n_others, i, j;
	const uint32_t *mine = wanted_list(in, a, &n_mine), *others = wanted_list(in, b, &n_others);
	char text[16], field[64];

	for (i = 0; i < n_mine; i++) {
		for (j = 0; j < n_others && mine[i] != others[j]; j++)
			;
		if (j == n_others)
			continue;
		snprintf(text, sizeof(text), "%u", mine[i]);
		snprintf(field, sizeof(field), "settings.%s", a->name);
		return error_set(err, EINVAL, field, text, "a port that no other list has", "is also in %s", b->name);
	}
	return 0;
}

static int check_exclusive(const PbSetRequest *in, struct error *err)
{
	const struct setting *a, *b;
	int ret = 0;

	for (a = setting_next(NULL); a; a = setting_next(a))
		for (b = setting_next(NULL); b != a && ret == 0; b = setting_next(b))
			if (a->exclusive && b->exclusive && strcmp(a->exclusive, b->exclusive) == 0)
				ret = check_pair(in, a, b, err);
	return ret;
}

static void settings_api_apply(const PbSettings *in, const struct setting *s)
{
	struct settings_field from = settings_field(in, s);

	if (s->type == SETTING_LIST)
		setting_set_list(s, *(uint32_t **)from.value, (uint32_t)*from.n);
	else
		setting_set(s, *(uint32_t *)from.value);
}

// api_check() has already validated each value and each name in `fields`.
static int settings_api_set(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const PbSetRequest *in = req;
	int ret = check_exclusive(in, err);
	size_t i;

	for (i = 0; i < in->n_fields && ret == 0; i++)
		settings_api_apply(in->settings, setting_find(in->fields[i]));
	if (ret == 0)
		settings_api_encode(call, resp);
	return ret;
}

static const struct api_method methods[] = {
	{"corelane.v1.System", "GetSettings", &corelane__v1__empty__descriptor, &corelane__v1__settings__descriptor,
	 .unary = settings_api_get},
	{"corelane.v1.System", "SetSettings", &corelane__v1__settings_set_request__descriptor,
	 &corelane__v1__settings__descriptor, .unary = settings_api_set},
};
API_METHODS(methods)
