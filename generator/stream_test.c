// SPDX-License-Identifier: Apache-2.0
// Frames as they are sent, checked by an independent parser.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen_testlib.h"
#include "profile.h"
#include "simd.h"

#define FRAMES 200

static uint8_t buffers[PORT_FRAMES][FRAME_MAX + HEAD_MAX] __rte_aligned(64);
static struct gen_port port = {.n_tx = 1, .n_rx = 1};
static struct error err;

static int make(struct stream *s, const Corelane__V1__GeneratorStream *m)
{
	struct port_config ports[2] = {{.name = "a"}, {.name = "b"}};
	int ret;

	memset(s, 0, sizeof(*s));
	ret = profile_stream(m, s, ports, 2, &err);
	s->tx = s->rx = &port;
	s->block = PORT_BURST;
	s->copy = RTE_ALIGN(s->layout.size + PROBE_SIZE, 64);
	return ret;
}

static void build(struct stream *s, struct frame *frames, unsigned n)
{
	unsigned i;

	for (i = 0; i < PORT_FRAMES; i++) {
		memcpy(buffers[i], pattern, FRAME_MAX);
		frames[i].data = buffers[i];
	}
	stream_build(s, frames, n, 7, 1234);
}

static void assert_stream(const Corelane__V1__GeneratorStream *m, const char *what)
{
	struct frame frames[PORT_FRAMES];
	struct stream s;
	unsigned sent, i;

	if (make(&s, m) < 0)
		fail_msg("%s: %s", what, err.message);
	for (sent = 0; sent < FRAMES; sent += PORT_BURST) {
		build(&s, frames, PORT_BURST);
		for (i = 0; i < PORT_BURST; i++) {
			uint32_t size = m->sizes[(sent + i) % m->n_sizes];
			const char *wrong = frame_wrong(frames[i].data, frames[i].length);
			struct probe p = probe_read(frames[i].data + s.layout.size);

			if (wrong != NULL)
				fail_msg("%s: frame %u of %u bytes: %s", what, sent + i, frames[i].length, wrong);
			assert_true(probe_intact(p));
			assert_int_equal(probe_flow(p), (sent + i) % s.n_flows);
			assert_int_equal(probe_sequence(p), 1 + (sent + i) / s.n_flows);
			assert_int_equal(probe_trial(p), 7);
			assert_int_equal(probe_time(p), 1234);
			if (s.n_turns == 1)
				assert_int_equal(frames[i].length, size);
			assert_int_equal(frames[i].length, stream_size(&s, probe_flow(p), probe_sequence(p)));
			assert_memory_equal(frames[i].data + s.layout.size + PROBE_SIZE,
					    pattern + s.layout.size + PROBE_SIZE,
					    frames[i].length - s.layout.size - PROBE_SIZE);
		}
	}
	stream_free(&s);
}

static void vary(Corelane__V1__GeneratorStream *m)
{
	m->flows->count = 77;
	m->flows->source_ports = 3;
	m->flows->destination_ports = 5;
	m->flows->source_addresses = 2;
	m->flows->destination_addresses = 50;
	m->flows->destination_step = 257;
}

static void assert_header(const struct test_header *h, const char *what)
{
	static const uint32_t sizes[] = {0, 1, 7, 64, 500, 1500, 9000};
	Corelane__V1__GeneratorStream *m;
	unsigned i;

	for (i = 0; i < RTE_DIM(sizes); i++) {
		m = message_stream(h, h->n + PROBE_SIZE + sizes[i]);
		vary(m);
		assert_stream(m, what);
		m->flows->shuffle = true;
		assert_stream(m, what);
	}
}

static void plain_packets(void **state)
{
	struct test_header four = header_plain(false, 0), four_sum = header_plain(false, 1),
			   six = header_plain(true, 0), six_sum = header_plain(true, 1);

	assert_header(&four, "IPv4");
	assert_header(&four_sum, "IPv4 with UDP checksum");
	assert_header(&six, "IPv6");
	assert_header(&six_sum, "IPv6 with UDP checksum");
}

static void tcp(void **state)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		struct test_header h = {0};

		header_ether(&h, i ? 0x86dd : 0x800);
		header_ip(&h, i, 6);
		header_tcp_syn(&h);
		assert_header(&h, i ? "IPv6 with TCP" : "IPv4 with TCP");
	}
}

static struct test_header underlay(bool ipv6, uint8_t proto)
{
	struct test_header h = {0};

	header_ether(&h, ipv6 ? 0x86dd : 0x800);
	header_ip(&h, ipv6, proto);
	return h;
}

static void packets_in_tunnels(void **state)
{
	unsigned i;

	for (i = 0; i < 8; i++) { // outer family, inner family, inner checksum
		bool inner6 = i & 2;
		struct test_header vxlan = header_in_vxlan(inner6, i & 4), udp = underlay(i & 1, 17),
				   gre = underlay(i & 1, 47);

		assert_header(&vxlan, "VXLAN");
		header_udp(&udp, 6635, 0);
		header_mpls(&udp, 100);
		header_ip(&udp, inner6, 17);
		header_udp(&udp, 2000, i & 4);
		assert_header(&udp, "MPLSoUDP");
		header_gre(&gre);
		header_mpls(&gre, 100);
		header_ip(&gre, inner6, 17);
		header_udp(&gre, 2000, i & 4);
		assert_header(&gre, "MPLSoGRE");
	}
}

// An outer checksum covers the whole inner packet; RFC 8085 requires one over IPv6.
static void tunnels_with_an_outer_checksum(void **state)
{
	unsigned i;

	for (i = 0; i < 8; i++) {
		bool inner6 = i & 2;
		struct test_header mpls = underlay(i & 1, 17), vxlan = underlay(i & 1, 17);

		header_udp(&mpls, 6635, 1);
		header_mpls(&mpls, 100);
		header_ip(&mpls, inner6, 17);
		header_udp(&mpls, 2000, i & 4);
		assert_header(&mpls, "MPLSoUDP with outer checksum");
		header_udp(&vxlan, 4789, 1);
		header_vxlan(&vxlan, 5);
		header_ether(&vxlan, inner6 ? 0x86dd : 0x800);
		header_ip(&vxlan, inner6, 17);
		header_udp(&vxlan, 2000, i & 4);
		assert_header(&vxlan, "VXLAN with outer checksum");
	}
}

static void fixed_headers(void **state)
{
	struct test_header h = {.n = 42};
	Corelane__V1__GeneratorStream *m;
	struct frame frames[PORT_FRAMES];
	struct stream s;
	unsigned i;

	for (i = 0; i < h.n; i++)
		h.bytes[i] = (uint8_t)(i + 1);
	m = message_stream(&h, 60);
	m->fixed = true;
	if (make(&s, m) < 0)
		fail_msg("%s", err.message);
	build(&s, frames, PORT_BURST);
	for (i = 0; i < PORT_BURST; i++) {
		struct probe p = probe_read(frames[i].data + h.n);

		assert_memory_equal(frames[i].data, h.bytes, h.n);
		assert_int_equal(frames[i].length, 60);
		assert_true(probe_intact(p));
		assert_int_equal(probe_sequence(p), 1 + i);
	}
	stream_free(&s);
}

// Each source address has a MAC of its own, and the rest of the frame is as without.
static void macs_of_sources(void **state)
{
	struct test_header h = header_plain(false, 1);
	Corelane__V1__GeneratorStream *m = message_stream(&h, 64);
	uint8_t without[PORT_BURST][64], expected[64];
	struct frame frames[PORT_FRAMES];
	struct stream s;
	unsigned i;

	vary(m);
	m->flows->source_ports = 0;
	m->flows->source_addresses = 1000;
	assert_int_equal(make(&s, m), 0);
	build(&s, frames, PORT_BURST);
	for (i = 0; i < PORT_BURST; i++)
		memcpy(without[i], frames[i].data, 64);
	stream_free(&s);
	m->source_macs = true;
	assert_stream(m, "IPv4 with MACs of sources");
	assert_int_equal(make(&s, m), 0);
	build(&s, frames, PORT_BURST);
	for (i = 0; i < PORT_BURST; i++) {
		memcpy(expected, without[i], 64);
		memcpy(expected + 8, expected + 26, 4); // of the source MAC, and the source address
		assert_memory_equal(frames[i].data, expected, 64);
		if (i >= 5) // each address has five destination ports
			assert_memory_not_equal(frames[i].data + 6, frames[i - 5].data + 6, 6);
	}
	stream_free(&s);
}

static void sizes_in_turn(void **state)
{
	static const uint32_t imix[] = {64, 64, 64, 64, 64, 64, 64, 570, 570, 570, 570, 1518};
	struct test_header h = header_plain(false, 1);
	Corelane__V1__GeneratorStream *m = message_stream(&h, 64);
	struct frame frames[PORT_FRAMES];
	unsigned count[3] = {0}, i;
	struct stream s;

	memcpy(m->sizes, imix, sizeof(imix));
	m->n_sizes = RTE_DIM(imix);
	vary(m);
	assert_stream(m, "IMIX");
	assert_int_equal(make(&s, m), 0);
	build(&s, frames, 60);
	for (i = 0; i < 60; i++)
		count[frames[i].length == 64 ? 0 : frames[i].length == 570 ? 1 : 2]++;
	assert_int_equal(count[0], 35);
	assert_int_equal(count[1], 20);
	assert_int_equal(count[2], 5);
	stream_free(&s);
}

static void assert_next(struct stream *s, uint32_t flow, uint32_t sequence)
{
	struct frame frames[PORT_FRAMES];
	struct probe p;

	build(s, frames, 1);
	p = probe_read(frames[0].data + s->layout.size);
	assert_int_equal(probe_flow(p), flow);
	assert_int_equal(probe_sequence(p), sequence);
}

static void frames_that_were_not_sent(void **state)
{
	struct test_header h = header_plain(false, 0);
	Corelane__V1__GeneratorStream *m = message_stream(&h, 64);
	struct frame frames[PORT_FRAMES];
	struct stream s;

	vary(m);
	m->flows->count = 10;
	assert_int_equal(make(&s, m), 0);
	build(&s, frames, 25); // flows 0..9 twice, 0..4 a third time
	stream_rewind(&s, 7);
	assert_next(&s, 8, 2);
	stream_skip(&s, 3);
	assert_next(&s, 2, 3);
	stream_free(&s);
}

// The list of sizes has no place for a jump where sequence numbers begin again.
static void sequence_numbers_wrap(void **state)
{
	struct test_header h = header_plain(false, 0);
	Corelane__V1__GeneratorStream *m = message_stream(&h, 64);
	struct frame frames[PORT_FRAMES];
	struct stream s;
	unsigned i, n;

	m->n_sizes = 3;
	m->sizes[1] = 100;
	m->sizes[2] = 200;
	vary(m);
	m->flows->count = 5;
	assert_int_equal(make(&s, m), 0);
	s.sequence = UINT32_MAX - 1;
	for (i = 0; i < 40; i++) {
		n = stream_run(&s);
		build(&s, frames, n);
		while (n-- > 0) {
			struct probe p = probe_read(frames[n].data + s.layout.size);

			assert_int_equal(frames[n].length, stream_size(&s, probe_flow(p), probe_sequence(p)));
		}
	}
	assert_in_range(s.sequence, 0, 600);
	stream_free(&s);
}

static void flows_keep_to_their_queue(void **state)
{
	static const uint32_t counts[] = {1, 2, 5, 100, 1000};
	struct test_header h = header_plain(false, 0);
	Corelane__V1__GeneratorStream *m = message_stream(&h, 64);
	struct frame frames[PORT_FRAMES];
	uint8_t queue_of[1000];
	unsigned c, sent, i, n, queue;
	struct stream s;

	vary(m);
	m->flows->destination_addresses = 1000;
	port.n_tx = 3;
	for (c = 0; c < RTE_DIM(counts); c++) {
		unsigned used[3] = {0};

		m->flows->count = counts[c];
		assert_int_equal(make(&s, m), 0);
		s.block = stream_block(s.n_flows, port.n_tx);
		memset(queue_of, 0xff, sizeof(queue_of));
		for (sent = 0; sent < 3000; sent += n) {
			queue = stream_queue(&s);
			n = stream_run(&s);
			assert_in_range(n, 1, PORT_BURST);
			build(&s, frames, n);
			for (i = 0; i < n; i++) {
				uint8_t *q = &queue_of[probe_flow(probe_read(frames[i].data + s.layout.size))];

				assert_true(*q == 0xff || *q == queue);
				*q = (uint8_t)queue;
				used[queue]++;
			}
		}
		for (queue = 0; queue < 3; queue++)
			assert_in_range(used[queue], queue < counts[c] ? 500 : 0, 3100);
		stream_free(&s);
	}
	port.n_tx = 1;
}

static int setup(void **state)
{
	pattern_init();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_packets),         cmocka_unit_test(tcp),
		cmocka_unit_test(packets_in_tunnels),    cmocka_unit_test(tunnels_with_an_outer_checksum),
		cmocka_unit_test(fixed_headers),         cmocka_unit_test(macs_of_sources),
		cmocka_unit_test(sizes_in_turn),         cmocka_unit_test(frames_that_were_not_sent),
		cmocka_unit_test(sequence_numbers_wrap), cmocka_unit_test(flows_keep_to_their_queue),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
