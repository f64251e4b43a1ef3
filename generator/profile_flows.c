// SPDX-License-Identifier: Apache-2.0
// The flows of a stream: converts the message to records and to the sink's state.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "profile.h"

static_assert(LIMIT_GENERATOR_FLOWS_COUNT_MAX <= PROBE_MAX_FLOWS, "a probe can number each flow of a stream");

static uint32_t profile_flows_read32(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return rte_be_to_cpu_32(v);
}

static uint16_t profile_flows_read16(const uint8_t *at)
{
	uint16_t v;

	memcpy(&v, at, sizeof(v));
	return rte_be_to_cpu_16(v);
}

static int get_list(const Corelane__V1__GeneratorFlows *in, struct flow_plan *p, struct error *err)
{
	if (in->n_destinations == 0)
		return 0;
	if (in->destination_addresses > 1 || in->destination_step > 1)
		return error_set(err, EINVAL, "stream.flows.destinations", NULL,
				 "without destination_addresses and destination_step", "cannot be combined with them");
	p->list = malloc(in->n_destinations * sizeof(*p->list));
	if (p->list == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "out of memory");
	memcpy(p->list, in->destinations, in->n_destinations * sizeof(*p->list));
	p->n_list = (uint32_t)in->n_destinations;
	return 0;
}

static int profile_flows_check_ports(const char *field, uint32_t first, uint32_t n, struct error *err)
{
	char valid[48];

	if (n <= 65536 - first)
		return 0;
	snprintf(valid, sizeof(valid), "up to %u from port %u on", 65536 - first, first);
	return refuse_number(err, field, n, valid, "are too many ports");
}

static int get_plan(const Corelane__V1__GeneratorFlows *in, const uint8_t *header, const struct layout *l,
		    struct flow_plan *p, struct error *err)
{
	int ret;

	if (!l->fixed) {
		p->source = profile_flows_read32(header + l->source);
		p->destination = profile_flows_read32(header + l->destination);
		p->source_port = profile_flows_read16(header + l->destination + 4);
		p->destination_port = profile_flows_read16(header + l->destination + 6);
	}
	p->source_ports = in->source_ports ? in->source_ports : 1;
	p->destination_ports = in->destination_ports ? in->destination_ports : 1;
	p->sources = in->source_addresses ? in->source_addresses : 1;
	p->destinations = in->destination_addresses ? in->destination_addresses : 1;
	p->step = in->destination_step ? in->destination_step : 1;
	ret = profile_flows_check_ports("stream.flows.source_ports", p->source_port, p->source_ports, err);
	if (ret == 0)
		ret = profile_flows_check_ports("stream.flows.destination_ports", p->destination_port,
						p->destination_ports, err);
	return ret == 0 ? get_list(in, p, err) : ret;
}

static int check_count(const struct stream *s, uint64_t count, struct error *err)
{
	uint64_t most = flow_plan_size(&s->plan);
	char valid[64];

	if (s->layout.fixed && count > 1)
		return refuse_number(err, "stream.flows.count", count, "1 with stream.fixed", "are too many flows");
	if (count <= most)
		return 0;
	snprintf(valid, sizeof(valid), "up to %lu, or more ports or addresses", (unsigned long)most);
	return refuse_number(err, "stream.flows.count", count, valid, "are more flows than these values give");
}

static int make_flows(struct stream *s, bool shuffle, struct error *err)
{
	uint32_t i;

	s->flows = pages_alloc(s->n_flows * sizeof(*s->flows));
	s->seen = pages_alloc(s->n_flows * sizeof(*s->seen));
	if (s->flows == NULL || s->seen == NULL)
		return refuse_number(err, "stream.flows.count", s->n_flows, "fewer",
				     "need more memory than is available");
	flow_fill(&s->plan, s->flows, s->n_flows, shuffle);
	for (i = 0; i < s->n_flows; i++)
		s->seen[i].window = UINT32_MAX; // all earlier sequence numbers count as received
	s->sequence = 1;
	s->next_number = s->n_flows;
	return 0;
}

int profile_flows(const Corelane__V1__GeneratorStream *in, struct stream *s, struct error *err)
{
	static const Corelane__V1__GeneratorFlows none = CORELANE__V1__GENERATOR_FLOWS__INIT;
	const Corelane__V1__GeneratorFlows *flows = in->flows != NULL ? in->flows : &none;
	uint64_t count = flows->count ? flows->count : LIMIT_GENERATOR_FLOWS_COUNT_DEFAULT;
	int ret = get_plan(flows, in->header.data, &s->layout, &s->plan, err);

	if (ret == 0)
		ret = check_count(s, count, err);
	if (ret < 0)
		return ret;
	s->n_flows = (uint32_t)count;
	s->new_per_second = flows->new_per_second;
	return make_flows(s, flows->shuffle, err);
}
