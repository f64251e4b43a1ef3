// SPDX-License-Identifier: Apache-2.0
// Checks one stream of a profile and prepares it for sending.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile.h"

static int profile_stream_find_port(const char *field, const char *name, const struct port_config *ports, unsigned n,
				    struct error *err)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (strcmp(ports[i].name, name) == 0)
			return (int)i;
	return error_set(err, ENOENT, field, name, "the name of a port of this profile", "there is no such port");
}

static int profile_stream_check_sizes(const Corelane__V1__GeneratorStream *in, struct error *err)
{
	uint32_t least = (uint32_t)in->header.len + PROBE_SIZE;
	char valid[64];
	size_t i;

	snprintf(valid, sizeof(valid), "%u (header and probe) to %d", least, FRAME_MAX);
	for (i = 0; i < in->n_sizes; i++)
		if (in->sizes[i] < least)
			return refuse_number(err, "stream.sizes", in->sizes[i], valid, "is not a valid frame size");
	return 0;
}

static int get_lengths(const Corelane__V1__GeneratorStream *in, struct length_field *out, struct error *err)
{
	size_t i, j;

	for (i = 0; i < in->n_lengths; i++) {
		const Corelane__V1__GeneratorLength *l = in->lengths[i];

		if (l->offset + UINT64_C(2) > in->header.len)
			return refuse_number(err, "stream.lengths.offset", l->offset, "an offset in the header",
					     "is outside the header");
		for (j = 0; j < in->n_sizes; j++)
			if (l->minus > in->sizes[j])
				return refuse_number(err, "stream.lengths.minus", l->minus,
						     "up to the smallest frame size", "makes a negative length");
		out[i] = (struct length_field){.offset = (uint16_t)l->offset, .minus = (uint16_t)l->minus};
	}
	return 0;
}

static int get_ip4(const Corelane__V1__GeneratorStream *in, uint16_t *out, struct error *err)
{
	size_t i, at;

	for (i = 0; i < in->n_ip4_offsets; i++) {
		at = in->ip4_offsets[i];
		if (at + 20 > in->header.len || in->header.data[at] >> 4 != 4 || (in->header.data[at] & 0xf) < 5 ||
		    at + (in->header.data[at] & 0xfu) * 4 > in->header.len)
			return refuse_number(err, "stream.ip4_offsets", at,
					     "the offset of an IPv4 header in the header",
					     "is not the offset of an IPv4 header");
		out[i] = (uint16_t)at;
	}
	return 0;
}

static int make_heads(const Corelane__V1__GeneratorStream *in, struct stream *s, struct error *err)
{
	struct length_field lengths[LIMIT_GENERATOR_STREAM_LENGTHS_ITEMS];
	uint16_t ip4[LIMIT_GENERATOR_STREAM_IP4_OFFSETS_ITEMS];
	unsigned n = 0, i, j;
	int ret = get_lengths(in, lengths, err);

	if (ret == 0)
		ret = get_ip4(in, ip4, err);
	if (ret < 0)
		return ret;
	s->heads = aligned_alloc(RTE_CACHE_LINE_SIZE, in->n_sizes * sizeof(*s->heads));
	if (s->heads == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "out of memory");
	for (i = 0; i < in->n_sizes; i++) {
		for (j = 0; j < n && s->heads[j].size != in->sizes[i]; j++)
			;
		if (j == n)
			head_build(&s->heads[n++], &s->layout, in->header.data, (uint16_t)in->sizes[i], lengths,
				   (unsigned)in->n_lengths, ip4, (unsigned)in->n_ip4_offsets);
		s->turns[i] = (uint16_t)j;
	}
	s->n_turns = (uint16_t)in->n_sizes;
	return 0;
}

static int get_expected(const Corelane__V1__GeneratorStream *in, struct stream *s, struct error *err)
{
	size_t n = in->expected.len;

	s->rx_probe = (uint16_t)(n > 0 ? n : in->header.len);
	if (in->expected_mask.len != n)
		return refuse_number(err, "stream.expected_mask", in->expected_mask.len,
				     "as many bytes as streams.expected", "is the wrong length of a mask");
	if (n == 0)
		return 0;
	s->expected = calloc(1, sizeof(*s->expected));
	if (s->expected == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "out of memory");
	s->expected->size = (uint16_t)n;
	memcpy(s->expected->bytes, in->expected.data, n);
	memcpy(s->expected->mask, in->expected_mask.data, n);
	return 0;
}

static uint32_t room_for(uint32_t frame)
{
	return RTE_MAX(PORT_ROOM, RTE_ALIGN(frame, 64u));
}

static void raise_sizes(const Corelane__V1__GeneratorStream *in, const struct stream *s, struct port_config *ports)
{
	struct port_config *tx = &ports[s->tx_index], *rx = &ports[s->rx_index];
	size_t i;

	for (i = 0; i < in->n_sizes; i++) {
		tx->room = RTE_MAX(tx->room, room_for(in->sizes[i]));
		rx->room = RTE_MAX(rx->room, room_for(in->sizes[i] - s->layout.size + s->rx_probe));
	}
}

static int get_names(const Corelane__V1__GeneratorStream *in, struct stream *s, const struct port_config *ports,
		     unsigned n_ports, struct error *err)
{
	snprintf(s->name, sizeof(s->name), "%s", in->name);
	s->tx_index = profile_stream_find_port("stream.tx_port", in->tx_port, ports, n_ports, err);
	if (s->tx_index < 0)
		return s->tx_index;
	s->rx_index = profile_stream_find_port("stream.rx_port", in->rx_port, ports, n_ports, err);
	return RTE_MIN(s->rx_index, 0);
}

int profile_stream(const Corelane__V1__GeneratorStream *in, struct stream *s, struct port_config *ports,
		   unsigned n_ports, struct error *err)
{
	int ret = get_names(in, s, ports, n_ports, err);

	s->weight = in->weight ? in->weight : LIMIT_GENERATOR_STREAM_WEIGHT_DEFAULT;
	s->untimed = in->untimed;
	if (ret == 0 && in->fixed)
		ret = layout_fixed(&s->layout, in->header.len, in->entropy_offset, err);
	else if (ret == 0)
		ret = layout_parse(&s->layout, in->header.data, in->header.len, in->inner_offset, in->entropy_offset,
				   err);
	if (ret == 0 && in->source_macs)
		ret = layout_source_macs(&s->layout, err);
	if (ret == 0)
		ret = profile_stream_check_sizes(in, err);
	if (ret == 0)
		ret = make_heads(in, s, err);
	if (ret == 0)
		ret = get_expected(in, s, err);
	if (ret == 0)
		ret = profile_flows(in, s, err);
	if (ret == 0)
		raise_sizes(in, s, ports);
	return ret;
}
