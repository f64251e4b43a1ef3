// SPDX-License-Identifier: Apache-2.0
// API of meters (api/meter.proto).
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "api/fields.h"
#include "meter.pb-c.h"
#include "policy/meter.h"

typedef Corelane__V1__Meter PbMeter;

#define METER_FIELD(field)                                                              \
	static void meter_api_decode_##field(const PbMeter *in, struct meter_config *c) \
	{                                                                               \
		c->field = in->field;                                                   \
	}
METER_FIELD(bit_rate)
METER_FIELD(burst_bytes)
METER_FIELD(packet_rate)
METER_FIELD(burst_packets)

static const struct {
	const char *name;
	void (*decode)(const PbMeter *in, struct meter_config *c);
} meter_fields[] = {
	{"bit_rate", meter_api_decode_bit_rate},
	{"burst_bytes", meter_api_decode_burst_bytes},
	{"packet_rate", meter_api_decode_packet_rate},
	{"burst_packets", meter_api_decode_burst_packets},
};
API_FIELDS(meter, meter_fields)

static void meter_api_encode(struct api_call *call, struct meter *m, PbMeter *out)
{
	Corelane__V1__MeterState *s = api_alloc(call, sizeof(*s));
	struct meter_count passed, dropped;

	meter_count(m, &passed, &dropped);
	out->name = api_strdup(call, m->cfg.name);
	out->bit_rate = m->cfg.bit_rate;
	out->burst_bytes = m->cfg.burst_bytes;
	out->packet_rate = m->cfg.packet_rate;
	out->burst_packets = m->cfg.burst_packets;
	corelane__v1__meter_state__init(s);
	s->passed_packets = passed.packets;
	s->passed_bytes = passed.bytes;
	s->dropped_packets = dropped.packets;
	s->dropped_bytes = dropped.bytes;
	s->burst = m->burst;
	s->users = m->refs;
	out->state = s;
}

static int meter_api_add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const PbMeter *in = ((const Corelane__V1__MeterAddRequest *)req)->meter;
	struct meter_config c = {0};
	struct meter *m;

	c.bit_rate = in->bit_rate;
	c.burst_bytes = in->burst_bytes;
	c.packet_rate = in->packet_rate;
	c.burst_packets = in->burst_packets;
	snprintf(c.name, sizeof(c.name), "%s", in->name);
	m = meter_add(&c, err);
	if (m == NULL)
		return -err->code;
	meter_api_encode(call, m, resp);
	return 0;
}

static int meter_api_set(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__MeterSetRequest *in = req;
	struct meter_config c;
	struct meter *m;
	size_t i;
	int ret;

	m = meter_find_err(in->meter->name, "meter.name", err);
	if (m == NULL)
		return -ENOENT;
	c = m->cfg;
	for (i = 0; i < in->n_fields; i++)
		API_FIELD_FIND(meter_fields, in->fields[i])->decode(in->meter, &c);
	ret = meter_set(m, &c, err);
	if (ret == 0)
		meter_api_encode(call, m, resp);
	return ret;
}

static int meter_api_del(struct api_call *call, const void *req, void *resp, struct error *err)
{
	return meter_del(((const Corelane__V1__MeterDelRequest *)req)->name, err);
}

static int meter_api_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__MeterListRequest *in = req;
	uint32_t *last = cursor;
	struct meter *m;

	if (*in->name && *last == 0 && meter_find_err(in->name, "meter.name", err) == NULL)
		return -ENOENT;
	while (++*last < METER_MAX) {
		m = meter_get((uint16_t)*last);
		if (m == NULL || (*in->name && strcmp(in->name, m->cfg.name) != 0))
			continue;
		meter_api_encode(call, m, item);
		return 1;
	}
	return 0;
}

static const struct api_method methods[] = {
	{"corelane.v1.Meters", "Add", &corelane__v1__meter_add_request__descriptor, &corelane__v1__meter__descriptor,
	 .unary = meter_api_add},
	{"corelane.v1.Meters", "Set", &corelane__v1__meter_set_request__descriptor, &corelane__v1__meter__descriptor,
	 .unary = meter_api_set},
	{"corelane.v1.Meters", "Del", &corelane__v1__meter_del_request__descriptor, &corelane__v1__empty__descriptor,
	 .unary = meter_api_del},
	{"corelane.v1.Meters", "List", &corelane__v1__meter_list_request__descriptor, &corelane__v1__meter__descriptor,
	 .next = meter_api_list, .cursor_size = sizeof(uint32_t)},
};
API_METHODS(methods)
