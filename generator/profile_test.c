// SPDX-License-Identifier: Apache-2.0
// Profiles that are refused, with the field and the valid values, and without a change.
#include <stdlib.h>
#include <string.h>

#include "api/check.h"
#include "gen_testlib.h"
#include "profile.h"

static struct error err;
static Corelane__V1__GeneratorProfile p;
static Corelane__V1__GeneratorPort *ports[2];
static Corelane__V1__GeneratorStream *streams[2], *s;

// A valid profile, which a test then makes invalid.
static void good(const struct test_header *h)
{
	static uint32_t offsets[8];
	unsigned i;

	corelane__v1__generator_profile__init(&p);
	for (i = 0; i < 2; i++) {
		ports[i] = message_port(i == 0 ? "a" : "b", i == 0 ? "/tmp/a" : "/tmp/b");
		streams[i] = message_stream(h, 300);
	}
	p.n_ports = p.n_streams = 2;
	p.ports = ports;
	p.streams = streams;
	s = streams[1];
	memcpy(offsets, s->ip4_offsets, s->n_ip4_offsets * sizeof(*offsets));
	s->ip4_offsets = offsets;
}

static void good_plain(void)
{
	struct test_header h = header_plain(false, 0);

	good(&h);
}

static void assert_refused(const char *field, const char *value, uint32_t index)
{
	memset(&err, 0, sizeof(err));
	assert_true(api_check(&p.base, &err) < 0 || profile_set(&p, &err) < 0);
	assert_string_equal(err.field, field);
	if (value != NULL)
		assert_string_equal(err.value, value);
	assert_int_equal(err.index, index);
	assert_true(err.valid[0] != '\0');
	assert_int_equal(profile.n_ports + profile.n_streams, 0);
}

static void counts_of_things(void **state)
{
	static Corelane__V1__GeneratorStream *many[4097];
	size_t i;

	good_plain();
	p.n_ports = 0;
	assert_refused("ports", NULL, 0);
	good_plain();
	p.n_streams = 0;
	assert_refused("streams", NULL, 0);
	good_plain();
	for (i = 0; i < 4097; i++)
		many[i] = streams[0];
	p.streams = many;
	p.n_streams = 4097;
	assert_refused("streams", "4097", 0);
}

static void ports_refused(void **state)
{
	good_plain();
	ports[1]->name = (char *)"";
	assert_refused("port.name", "", 1);
	good_plain();
	ports[1]->name = (char *)"a";
	assert_refused("port.name", "a", 1);
	good_plain();
	ports[1]->device_case = CORELANE__V1__GENERATOR_PORT__DEVICE__NOT_SET;
	assert_refused("port.device", NULL, 1);
	good_plain();
	ports[0]->memif->socket = (char *)"relative";
	assert_refused("port.memif.socket", "relative", 0);
	good_plain();
	ports[0]->memif->ring_size = 1000;
	assert_refused("port.memif.ring_size", "1000", 0);
	good_plain();
	ports[0]->memif->ring_size = 32;
	assert_refused("port.memif.ring_size", "32", 0);
	good_plain();
	ports[1]->memif->queues = 17;
	assert_refused("port.memif.queues", "17", 1);
	good_plain();
	ports[1]->device_case = CORELANE__V1__GENERATOR_PORT__DEVICE_DEVARGS;
	ports[1]->devargs = (char *)"";
	assert_refused("port.devargs", "", 1);
}

static void ports_of_streams(void **state)
{
	good_plain();
	s->tx_port = (char *)"c";
	assert_refused("stream.tx_port", "c", 1);
	good_plain();
	s->rx_port = (char *)"";
	assert_refused("stream.rx_port", "", 1);
}

static void headers_refused(void **state)
{
	good_plain();
	s->header.len = 41;
	assert_refused("stream.header", "41", 1);
	good_plain();
	s->header.len = 241;
	assert_refused("stream.header", "241", 1);
	good_plain();
	s->inner_offset = 0;
	assert_refused("stream.inner_offset", "0", 1);
	good_plain();
	s->inner_offset = 4000000000u;
	assert_refused("stream.inner_offset", "4000000000", 1);
	good_plain();
	s->inner_offset = UINT32_MAX;
	assert_refused("stream.inner_offset", "4294967295", 1);
	good_plain();
	s->header.data[14] = 0x46; // options
	assert_refused("stream.inner_offset", "14", 1);
	good_plain();
	s->header.data[23] = 6; // TCP
	assert_refused("stream.inner_offset", "14", 1);
	good_plain();
	s->entropy_offset = 34; // that is the innermost UDP header
	assert_refused("stream.entropy_offset", "34", 1);
}

static void fixed_headers_refused(void **state)
{
	struct test_header vxlan = header_in_vxlan(false, 0);

	good(&vxlan);
	s->fixed = true;
	assert_refused("stream.entropy_offset", "34", 1);
	good_plain();
	s->fixed = true;
	s->flows->count = 2;
	assert_refused("stream.flows.count", "2", 1);
	good_plain();
	s->fixed = s->source_macs = true;
	assert_refused("stream.source_macs", "true", 1);
}

static void offsets_refused(void **state)
{
	struct test_header vxlan = header_in_vxlan(false, 0);

	good(&vxlan);
	s->entropy_offset = 36;
	assert_refused("stream.entropy_offset", "36", 1);
	good(&vxlan);
	s->lengths[0]->offset = vxlan.n - 1;
	assert_refused("stream.lengths.offset", "91", 1);
	good(&vxlan);
	s->lengths[0]->offset = UINT32_MAX;
	assert_refused("stream.lengths.offset", "4294967295", 1);
	good(&vxlan);
	s->lengths[0]->minus = 301;
	assert_refused("stream.lengths.minus", "301", 1);
	good(&vxlan);
	s->ip4_offsets[1] = 74;
	assert_refused("stream.ip4_offsets", "74", 1);
	good(&vxlan);
	s->ip4_offsets[0] = 15;
	assert_refused("stream.ip4_offsets", "15", 1);
	good(&vxlan);
	s->ip4_offsets[0] = UINT32_MAX;
	assert_refused("stream.ip4_offsets", "4294967295", 1);
}

static void sizes_refused(void **state)
{
	good_plain();
	s->n_sizes = 0;
	assert_refused("stream.sizes", NULL, 1);
	good_plain();
	s->n_sizes = 65;
	assert_refused("stream.sizes", "65", 1);
	good_plain();
	s->sizes[0] = 57; // 42 of headers, 16 of probe
	assert_refused("stream.sizes", "57", 1);
	good_plain();
	s->sizes[0] = 65025;
	assert_refused("stream.sizes", "65025", 1);
}

static void flows_refused(void **state)
{
	uint32_t list[4] = {1, 2, 3, 4};

	good_plain();
	s->flows->count = 2;
	assert_refused("stream.flows.count", "2", 1);
	good_plain();
	s->flows->count = 16777217;
	s->flows->source_addresses = 20000000;
	assert_refused("stream.flows.count", "16777217", 1);
	good_plain();
	s->flows->source_ports = 55537; // from 10000 on
	assert_refused("stream.flows.source_ports", "55537", 1);
	good_plain();
	s->flows->destination_ports = 65536;
	assert_refused("stream.flows.destination_ports", "65536", 1);
	good_plain();
	s->flows->destinations = list;
	s->flows->n_destinations = 4;
	s->flows->destination_addresses = 2;
	assert_refused("stream.flows.destinations", NULL, 1);
	good_plain();
	s->flows->new_per_second = -1;
	assert_refused("stream.flows.new_per_second", NULL, 1);
	good_plain();
	s->flows->new_per_second = 0.0 / 0.0;
	assert_refused("stream.flows.new_per_second", NULL, 1);
	good_plain();
	s->weight = 1000001;
	assert_refused("stream.weight", "1000001", 1);
}

static void too_many_flows_in_all(void **state)
{
	Corelane__V1__GeneratorStream *five[5];
	unsigned i;

	good_plain();
	for (i = 0; i < 5; i++)
		five[i] = streams[0];
	streams[0]->flows->count = streams[0]->flows->source_addresses = 16777216;
	p.streams = five;
	p.n_streams = 5;
	assert_refused("stream.flows.count", "83886080", 4);
}

static void expectations_refused(void **state)
{
	static uint8_t bytes[300];

	good_plain();
	s->expected = (ProtobufCBinaryData){.data = bytes, .len = 50};
	s->expected_mask = (ProtobufCBinaryData){.data = bytes, .len = 49};
	assert_refused("stream.expected_mask", "49", 1);
	good_plain();
	s->expected_mask = (ProtobufCBinaryData){.data = bytes, .len = 49};
	assert_refused("stream.expected_mask", "49", 1);
	good_plain();
	s->expected = s->expected_mask = (ProtobufCBinaryData){.data = bytes, .len = 241};
	assert_refused("stream.expected", "241", 1);
}

static int setup(void **state)
{
	pattern_init();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_of_things),      cmocka_unit_test(ports_refused),
		cmocka_unit_test(ports_of_streams),      cmocka_unit_test(headers_refused),
		cmocka_unit_test(fixed_headers_refused), cmocka_unit_test(offsets_refused),
		cmocka_unit_test(sizes_refused),         cmocka_unit_test(flows_refused),
		cmocka_unit_test(too_many_flows_in_all), cmocka_unit_test(expectations_refused),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
