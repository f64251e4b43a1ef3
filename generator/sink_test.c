// SPDX-License-Identifier: Apache-2.0
// The sink's counts of frames that a router lost, duplicated, damaged, changed or reordered.
#include <stdlib.h>
#include <string.h>

#include "gen_testlib.h"
#include "profile.h"
#include "sink.h"

#define COUNT 256
#define TRIAL 5
#define SENT 2000000000u // time

static uint8_t buffers[COUNT + PORT_FRAMES][4096] __rte_aligned(64);
static struct frame frames[COUNT + PORT_FRAMES]; // the frames that were sent
static struct gen_port a = {.n_tx = 1, .n_rx = 1}, b = {.n_tx = 1, .n_rx = 1};
static struct stream streams[2];
static struct sink sink;
static struct error err;

static void open_stream(unsigned i, const Corelane__V1__GeneratorStream *m, struct gen_port *rx)
{
	struct port_config ports[2] = {{.name = "a"}, {.name = "b"}};
	struct stream *s = &streams[i];

	stream_free(s);
	memset(s, 0, sizeof(*s));
	if (profile_stream(m, s, ports, 2, &err) < 0)
		fail_msg("%s", err.message);
	s->index = (uint16_t)i;
	s->tx = &a;
	s->rx = rx;
	s->copy = RTE_ALIGN(s->layout.size + PROBE_SIZE, 64);
	rx->probe = s->rx_probe;
	s->usual_rx = rx;
}

static void begin(unsigned n_streams, uint8_t trial, enum verify verify)
{
	unsigned i;

	for (i = 0; i < n_streams; i++)
		streams[i].count = (struct stream_count){0};
	sink_start(&sink, streams, n_streams, trial);
	sink.clock = clock_of(2000000000);
	sink.verify = verify;
	sink.latency = sink.timing = true;
	sink.age = 250000000;
}

static void send(unsigned stream, unsigned n)
{
	unsigned i;

	for (i = 0; i < n + PORT_AHEAD; i++) {
		memcpy(buffers[i], pattern, sizeof(buffers[i]));
		frames[i].data = buffers[i];
	}
	stream_build(&streams[stream], frames, n, TRIAL, SENT);
}

// One stream from a to b, 16 flows of plain packets, and COUNT frames of it.
static void prepare(uint32_t size, enum verify verify)
{
	struct test_header h = header_plain(false, 1);
	Corelane__V1__GeneratorStream *m = message_stream(&h, size);

	m->flows->count = m->flows->source_ports = 16;
	m->expected = m->header;
	m->expected_mask = (ProtobufCBinaryData){.data = calloc(1, h.n), .len = h.n};
	memset(m->expected_mask.data, 0xff, 14); // MAC addresses
	open_stream(0, m, &b);
	free(m->expected_mask.data);
	begin(1, TRIAL, verify);
	send(0, COUNT);
}

static void arrive(struct gen_port *port, unsigned from, unsigned n)
{
	for (; n > 0; n--, from++)
		sink_take(&sink, port, &frames[from], 1, SENT + 10);
}

static void assert_all_but(unsigned missing)
{
	assert_int_equal(streams[0].count.received, COUNT - missing);
}

static void assert_no_other(const struct stream_count *wanted)
{
	const struct stream_count *c = &streams[0].count;

	assert_int_equal(c->duplicated, wanted->duplicated);
	assert_int_equal(c->reordered, wanted->reordered);
	assert_int_equal(c->misplaced, wanted->misplaced);
	assert_int_equal(c->corrupt, wanted->corrupt);
	assert_int_equal(c->wrong_header, wanted->wrong_header);
}

static const struct stream_count nothing;

static void all_in_order(void **state)
{
	prepare(64, VERIFY_ALL);
	sink_take(&sink, &b, frames, 64, SENT + 10);
	sink_take(&sink, &b, frames + 64, 17, SENT + 10);
	sink_take(&sink, &b, frames + 81, COUNT - 81, SENT + 20);
	assert_all_but(0);
	assert_no_other(&nothing);
	assert_int_equal(streams[0].count.received_bytes, COUNT * 64);
	assert_int_equal(sink.foreign + sink.stale + sink.corrupt, 0);
	assert_int_equal(sink.checked, COUNT);
	assert_int_equal(sink.histogram.bars[10], 81);
	assert_int_equal(sink.histogram.bars[20], COUNT - 81);
}

static void untimed_streams(void **state)
{
	prepare(64, VERIFY_ALL);
	streams[0].untimed = true;
	sink_take(&sink, &b, frames, COUNT, SENT + 10);
	assert_all_but(0);
	assert_no_other(&nothing);
	assert_int_equal(sink.histogram.bars[10], 0);
}

static void a_few_lost(void **state)
{
	prepare(64, VERIFY_SAMPLE);
	arrive(&b, 0, 100);
	arrive(&b, 107, COUNT - 107);
	assert_all_but(7);
	assert_no_other(&nothing);
}

static void doubles_of_all_ages(void **state)
{
	prepare(64, VERIFY_SAMPLE);
	arrive(&b, 0, COUNT);
	arrive(&b, COUNT - 1, 1); // the last of its flow
	arrive(&b, 0, 16);        // 15 numbers back
	arrive(&b, 0, 16);        // and again
	assert_all_but(0);
	assert_no_other(&(struct stream_count){.duplicated = 33});
}

static void late_frames_are_reordered(void **state)
{
	prepare(64, VERIFY_SAMPLE);
	arrive(&b, 48, COUNT - 48); // numbers 4.. of each flow
	arrive(&b, 0, 48);          // then 1..3
	assert_all_but(0);
	assert_no_other(&(struct stream_count){.reordered = 48});
	arrive(&b, 0, 1);
	assert_no_other(&(struct stream_count){.reordered = 48, .duplicated = 1});
}

// The order between flows does not matter, because routers with several workers change it.
static void other_flows_may_overtake(void **state)
{
	unsigned i, turn;

	prepare(64, VERIFY_SAMPLE);
	for (turn = 0; turn < COUNT; turn += 16)
		for (i = 16; i > 0; i--)
			arrive(&b, turn + i - 1, 1);
	assert_all_but(0);
	assert_no_other(&nothing);
}

static void damaged_probes(void **state)
{
	unsigned i;

	prepare(64, VERIFY_SAMPLE);
	for (i = 0; i < 128; i++) // each bit
		buffers[i][42 + i / 8] ^= 1 << i % 8;
	arrive(&b, 0, COUNT);
	assert_all_but(128);
	assert_int_equal(sink.corrupt, 128);
	assert_int_equal(sink.foreign + sink.stale, 0);
	assert_no_other(&nothing);
}

static void damaged_payload(void **state)
{
	prepare(1000, VERIFY_ALL);
	buffers[3][999] ^= 1;
	buffers[4][58] ^= 0x80;
	frames[5].length = 999;
	frames[6].length = 1001;
	arrive(&b, 0, COUNT);
	assert_all_but(0); // their probes are good
	assert_no_other(&(struct stream_count){.corrupt = 4});
}

static void short_frames_may_be_padded(void **state)
{
	prepare(58, VERIFY_ALL);
	frames[0].length = 60;
	frames[1].length = 61;
	arrive(&b, 0, COUNT);
	assert_all_but(0);
	assert_no_other(&(struct stream_count){.corrupt = 1});
}

static void wrong_headers(void **state)
{
	prepare(64, VERIFY_ALL);
	buffers[10][0] ^= 4;
	buffers[11][12] ^= 1;
	buffers[12][14] ^= 1; // not compared
	arrive(&b, 0, COUNT);
	assert_all_but(0);
	assert_no_other(&(struct stream_count){.wrong_header = 2});
	assert_int_equal(sink.wrong.n, 64);
	assert_memory_equal(sink.wrong.bytes, buffers[10], 64);
	assert_ptr_equal(sink.wrong.stream, &streams[0]);
}

// After the first thousand frames, one in 64 is compared.
static void samples(void **state)
{
	unsigned i;

	prepare(64, VERIFY_SAMPLE);
	for (i = 0; i < 20; i++) {
		send(0, COUNT);
		arrive(&b, 0, COUNT / 2);
		sink_take(&sink, &b, frames + COUNT / 2, 37, SENT + 10);
		sink_take(&sink, &b, frames + COUNT / 2 + 37, COUNT / 2 - 37, SENT + 10);
	}
	assert_in_range(sink.checked, 1000 + (20 * COUNT - 1100) / 64, 1100 + 20 * COUNT / 64);
}

static void out_of_the_wrong_port(void **state)
{
	prepare(64, VERIFY_SAMPLE);
	a.probe = 100; // its frames have other headers
	arrive(&a, 0, 3);
	arrive(&b, 3, COUNT - 3);
	assert_all_but(3);
	assert_no_other(&(struct stream_count){.misplaced = 3});
}

static void of_an_earlier_trial(void **state)
{
	prepare(64, VERIFY_SAMPLE);
	begin(1, TRIAL + 1, VERIFY_SAMPLE);
	arrive(&b, 0, COUNT);
	assert_all_but(COUNT);
	assert_no_other(&nothing);
	assert_int_equal(sink.stale, COUNT);
}

// Frames of an earlier profile, which had more streams.
static void of_an_earlier_profile(void **state)
{
	struct test_header h = header_plain(false, 0);

	open_stream(0, message_stream(&h, 64), &b);
	open_stream(1, message_stream(&h, 64), &b);
	begin(2, TRIAL, VERIFY_SAMPLE);
	send(1, COUNT);
	begin(1, TRIAL + 1, VERIFY_SAMPLE);
	arrive(&b, 0, COUNT);
	assert_int_equal(sink.stale, COUNT);
	assert_int_equal(sink.foreign, 0);
}

static void of_others(void **state)
{
	static const uint8_t arp[64] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, [12] = 8, 6};
	static uint8_t zeroes[64], noise[1500];
	struct frame f[PORT_FRAMES] = {{(uint8_t *)arp, 42}, {zeroes, 64}, {noise, 1500}, {noise, 14}};
	unsigned i;

	prepare(64, VERIFY_ALL);
	for (i = 0; i < sizeof(noise); i++)
		noise[i] = (uint8_t)(i * 2654435761u >> 13);
	for (i = 4; i < PORT_FRAMES; i++)
		f[i].data = zeroes;
	sink_take(&sink, &b, f, 4, SENT + 10);
	assert_int_equal(sink.foreign, 4);
	assert_int_equal(sink.corrupt, 0);
	assert_int_equal(sink.strange.n, 42);
	assert_memory_equal(sink.strange.bytes, arp, 42);
	assert_all_but(COUNT);
	assert_no_other(&nothing);
}

// The router encapsulated only some of the packets in VXLAN.
static void not_rewritten(void **state)
{
	struct test_header plain = header_plain(false, 0), vxlan = header_in_vxlan(false, 0);
	Corelane__V1__GeneratorStream *m = message_stream(&plain, 64);
	struct frame wrapped[PORT_FRAMES] = {{0}};
	static uint8_t buffer[256];

	m->expected = (ProtobufCBinaryData){.data = vxlan.bytes, .len = vxlan.n};
	m->expected_mask = (ProtobufCBinaryData){.data = calloc(1, vxlan.n), .len = vxlan.n};
	memset(m->expected_mask.data, 0xff, 14);
	open_stream(0, m, &b);
	free(m->expected_mask.data);
	begin(1, TRIAL, VERIFY_ALL);
	send(0, 2);
	memcpy(buffer, vxlan.bytes, vxlan.n);
	memcpy(buffer + vxlan.n, frames[0].data + plain.n, 64 - plain.n);
	wrapped[0] = (struct frame){buffer, vxlan.n + 64u - plain.n};
	sink_take(&sink, &b, wrapped, 1, SENT + 10);
	assert_no_other(&nothing);
	arrive(&b, 1, 1);
	assert_int_equal(streams[0].count.received, 2);
	assert_no_other(&(struct stream_count){.wrong_header = 1});
}

// Two streams with probes at different offsets come out of one port.
static void streams_of_two_shapes(void **state)
{
	struct test_header four = header_plain(false, 0), six = header_plain(true, 1);
	unsigned i;

	open_stream(0, message_stream(&four, 64), &b);
	open_stream(1, message_stream(&six, 100), &b);
	streams[0].usual_rx = NULL; // as the profile has it: port b has its probes where stream 1 has them
	begin(2, TRIAL, VERIFY_ALL);
	for (i = 0; i < 2; i++) {
		send(i, COUNT);
		sink_take(&sink, &b, frames, 64, SENT + 10);
		arrive(&b, 64, COUNT - 64);
	}
	assert_int_equal(streams[0].count.received, COUNT);
	assert_int_equal(streams[1].count.received, COUNT);
	assert_int_equal(streams[0].count.received_bytes, COUNT * 64);
	assert_int_equal(streams[1].count.received_bytes, COUNT * 100);
	assert_int_equal(streams[0].count.wrong_header + streams[0].count.corrupt + streams[1].count.corrupt, 0);
	assert_int_equal(sink.histogram.bars[10], 2 * COUNT);
}

static void only_counted(void **state)
{
	prepare(64, VERIFY_NONE);
	memset(buffers[0], 0, 64);
	arrive(&b, 0, COUNT);
	assert_all_but(0);
	assert_int_equal(sink.checked + sink.foreign, 0);
}

static int setup(void **state)
{
	pattern_init();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_in_order),
		cmocka_unit_test(untimed_streams),
		cmocka_unit_test(a_few_lost),
		cmocka_unit_test(doubles_of_all_ages),
		cmocka_unit_test(late_frames_are_reordered),
		cmocka_unit_test(other_flows_may_overtake),
		cmocka_unit_test(damaged_probes),
		cmocka_unit_test(damaged_payload),
		cmocka_unit_test(short_frames_may_be_padded),
		cmocka_unit_test(wrong_headers),
		cmocka_unit_test(samples),
		cmocka_unit_test(out_of_the_wrong_port),
		cmocka_unit_test(of_an_earlier_trial),
		cmocka_unit_test(of_an_earlier_profile),
		cmocka_unit_test(of_others),
		cmocka_unit_test(not_rewritten),
		cmocka_unit_test(streams_of_two_shapes),
		cmocka_unit_test(only_counted),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
