// SPDX-License-Identifier: Apache-2.0
// The service as a client sees it, frame by frame.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_log.h>

#include "api/api_test.h"
#include "gen_router.h"
#include "poll.h"
#include "testing/wait_until.h"

#define SERVICE "corelane.v1.Generator"
#define HOUR_MS 3600000

static struct test_conn conn;
static uint32_t id;
static const Corelane__V1__Empty nothing = CORELANE__V1__EMPTY__INIT;

static int setup(void **state)
{
	test_conn_open(&conn);
	id = 1;
	return 0;
}

static int teardown(void **state)
{
	if (conn.conn != NULL)
		test_conn_close(&conn);
	assert_true(poll_idle());
	return router_disconnect(state);
}

static struct test_frame *wait_frame(void)
{
	struct test_frame *f = NULL;

	assert_true(wait_until((f = test_conn_wait(&conn)) != NULL || (router_pump(1), false)));
	return f;
}

static uint32_t ask(const char *method, const ProtobufCMessage *req, uint8_t flags)
{
	assert_int_equal(test_conn_request(&conn, id, flags, SERVICE, method, req), 0);
	id += 2;
	return id - 2;
}

static void assert_refused(const struct test_frame *f, const char *text)
{
	Ttrpc__Response *r = ttrpc__response__unpack(NULL, f->h.length, f->data);

	assert_int_equal(f->h.type, TTRPC_RESPONSE);
	assert_non_null(r->status);
	if (strstr(r->status->message, text) == NULL)
		fail_msg("'%s' is not in '%s'", text, r->status->message);
	ttrpc__response__free_unpacked(r, NULL);
}

static Corelane__V1__GeneratorProfile *answered(void)
{
	struct test_frame *f = wait_frame();
	Ttrpc__Response *r = ttrpc__response__unpack(NULL, f->h.length, f->data);
	Corelane__V1__GeneratorProfile *p;

	if (r->status != NULL && r->status->code != 0)
		fail_msg("%s", r->status->message);
	p = corelane__v1__generator_profile__unpack(NULL, r->payload.len, r->payload.data);
	ttrpc__response__free_unpacked(r, NULL);
	return p;
}

static const char *devargs; // of both ports, instead of memif

static void ask_configure(uint32_t frame_size, uint32_t queues)
{
	unsigned i;
	Corelane__V1__GeneratorPort *ports[] = {message_port("a", router_socket(0)),
						message_port("b", router_socket(1))};
	struct test_header h = header_plain(false, 0);
	Corelane__V1__GeneratorStream *s = message_stream(&h, frame_size);
	Corelane__V1__GeneratorProfile p = CORELANE__V1__GENERATOR_PROFILE__INIT;

	ports[1]->memif->queues = queues;
	for (i = 0; i < 2 && devargs; i++) {
		ports[i]->device_case = CORELANE__V1__GENERATOR_PORT__DEVICE_DEVARGS;
		ports[i]->devargs = (char *)(uintptr_t)devargs;
	}
	p.n_ports = 2;
	p.ports = ports;
	p.n_streams = 1;
	p.streams = &s;
	ask("Configure", &p.base, 0);
}

static void configure(void)
{
	Corelane__V1__GeneratorProfile *out;
	bool up = false;
	unsigned i;

	router_listen();
	ask_configure(64, 1);
	corelane__v1__generator_profile__free_unpacked(answered(), NULL);
	for (i = 0; i < 1000 && !up; i++) {
		router_pump(1);
		ask("Ports", &nothing.base, 0);
		out = answered();
		assert_int_equal(out->n_ports, 2);
		assert_string_equal(out->ports[1]->name, "b");
		assert_string_equal(out->ports[1]->memif->socket, router_socket(1));
		assert_int_equal(out->ports[1]->memif->ring_size, 1024);
		up = out->ports[0]->up && out->ports[1]->up;
		corelane__v1__generator_profile__free_unpacked(out, NULL);
	}
	assert_true(up);
}

static Corelane__V1__GeneratorTrial a_trial(uint32_t duration_ms)
{
	Corelane__V1__GeneratorTrial t = CORELANE__V1__GENERATOR_TRIAL__INIT;

	t.duration_ms = duration_ms;
	t.window_ms = 20;
	t.drain_ms = 1;
	t.packets_per_second = 1000;
	return t;
}

static Corelane__V1__GeneratorWindow *next_window(uint32_t stream)
{
	struct test_frame *f = wait_frame();

	assert_int_equal(f->h.stream, stream);
	assert_int_equal(f->h.type, TTRPC_DATA);
	return corelane__v1__generator_window__unpack(NULL, f->h.length, f->data);
}

static void windows_then_the_total(void **state)
{
	Corelane__V1__GeneratorTrial t = a_trial(60);
	Corelane__V1__GeneratorWindow *w;
	uint64_t due = 0;
	uint32_t stream;
	unsigned i;

	configure();
	stream = ask("Run", &t.base, TTRPC_REMOTE_CLOSED);
	for (i = 0; i < 3; i++) {
		w = next_window(stream);
		assert_false(w->total);
		// timed: a window has the length that was asked for, whenever the thread gets its CPU
		assert_true(w->seconds > 0.019 && w->seconds < 0.021);
		assert_int_equal(w->due, w->sent + w->no_room + w->late);
		due += w->due;
		corelane__v1__generator_window__free_unpacked(w, NULL);
	}
	w = next_window(stream);
	assert_true(w->total);
	assert_int_equal(w->due, due);
	assert_int_equal(w->due, 60);
	assert_int_equal(w->lost, w->sent);
	assert_int_equal(w->n_streams, 1);
	assert_string_equal(w->streams[0]->name, "a");
	assert_int_equal(w->streams[0]->sent, w->sent);
	assert_int_equal(w->streams[0]->lost, w->sent);
	assert_int_equal(w->streams[0]->no_room, w->no_room);
	assert_true(w->tsc_hz > 100000000);
	corelane__v1__generator_window__free_unpacked(w, NULL);
	assert_int_equal(wait_frame()->h.flags & TTRPC_REMOTE_CLOSED, TTRPC_REMOTE_CLOSED);
	ask("Run", &t.base, TTRPC_REMOTE_CLOSED); // a second time
	corelane__v1__generator_window__free_unpacked(next_window(id - 2), NULL);
}

static void one_trial_at_a_time(void **state)
{
	Corelane__V1__GeneratorTrial t = a_trial(HOUR_MS);
	Corelane__V1__GeneratorWindow *w;
	uint32_t stream;
	bool total;

	configure();
	t.window_ms = HOUR_MS; // nobody has the patience to wait for it
	stream = ask("Run", &t.base, TTRPC_REMOTE_CLOSED);
	test_conn_wait(&conn);
	ask("Run", &t.base, TTRPC_REMOTE_CLOSED);
	assert_refused(wait_frame(), "a trial is running");
	ask_configure(64, 1);
	assert_refused(wait_frame(), "a trial is running");
	ask("Stop", &nothing.base, 0);
	corelane__v1__generator_profile__free_unpacked(answered(), NULL);
	do {
		w = next_window(stream);
		total = w->total;
		corelane__v1__generator_window__free_unpacked(w, NULL);
	} while (!total);
}

static void a_client_that_goes(void **state)
{
	Corelane__V1__GeneratorTrial t = a_trial(100000);

	configure();
	ask("Run", &t.base, TTRPC_REMOTE_CLOSED);
	test_conn_wait(&conn);
	assert_false(poll_idle());
	test_conn_close(&conn);
	conn.conn = NULL;
	assert_true(poll_idle());
}

static void a_port_that_goes(void **state)
{
	Corelane__V1__GeneratorTrial t = a_trial(100000);
	unsigned i;

	configure();
	t.window_ms = 100000;
	ask("Run", &t.base, TTRPC_REMOTE_CLOSED);
	test_conn_wait(&conn);
	for (i = 0; i < 10; i++)
		router_pump(1);
	router_drop(1);
	assert_refused(wait_frame(), "port: b: ");
}

static void profiles_refused(void **state)
{
	ask_configure(64, 17);
	assert_refused(wait_frame(), "port.memif.queues '17': is out of range; valid: 1 to 16");
	ask_configure(65025, 1);
	assert_refused(wait_frame(), "stream.sizes '65025': is out of range; valid: 58 to 65024");
}

// The device is closed once, with the port that has it.
static void a_device_of_another_port(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *log = open_memstream(&text, &size);

	devargs = "net_null0";
	rte_openlog_stream(log);
	ask_configure(64, 1);
	assert_refused(wait_frame(),
		       "port.devargs 'net_null0': net_null0 belongs to another port; valid: another device");
	assert_int_equal(rte_eth_dev_count_avail(), 0);
	rte_openlog_stream(NULL);
	fclose(log);
	assert_string_equal(text, ""); // DPDK says so when a device that is closed already is closed
	free(text);
	devargs = NULL;
}

static void trials_refused(void **state)
{
	Corelane__V1__GeneratorTrial t = a_trial(0);
	int32_t threads[17] = {0};
	char *unknown = (char *)"none";
	unsigned i;

	ask("Run", &t.base, TTRPC_REMOTE_CLOSED);
	assert_refused(wait_frame(), "nothing is configured");
	configure();
	ask("Run", &t.base, TTRPC_REMOTE_CLOSED);
	assert_refused(wait_frame(), "duration_ms");
	t = a_trial(10);
	t.packets_per_second = -1;
	ask("Run", &t.base, TTRPC_REMOTE_CLOSED);
	assert_refused(wait_frame(), "packets_per_second '-1': is out of range; valid: 0 to 1000000000");
	t = a_trial(10);
	t.verify = 3;
	ask("Run", &t.base, TTRPC_REMOTE_CLOSED);
	assert_refused(wait_frame(), "verify '3': is not one of the values; valid: sample, all, none");
	t = a_trial(10);
	t.rest_us = 1001;
	ask("Run", &t.base, TTRPC_REMOTE_CLOSED);
	assert_refused(wait_frame(), "rest_us '1001': is out of range; valid: 0 to 1000");
	t = a_trial(10);
	t.real_time = threads;
	t.n_real_time = 17;
	ask("Run", &t.base, TTRPC_REMOTE_CLOSED);
	assert_refused(wait_frame(), "real_time '17': there are too many; valid: up to 16");
	t = a_trial(10);
	t.streams = &unknown;
	t.n_streams = 1;
	ask("Run", &t.base, TTRPC_REMOTE_CLOSED);
	assert_refused(wait_frame(), "streams 'none': there is no such stream");
	router_drop(0);
	for (i = 0; i < 10; i++)
		router_pump(1);
	t = a_trial(10);
	ask("Run", &t.base, TTRPC_REMOTE_CLOSED);
	assert_refused(wait_frame(), "port 'a': is not up");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(windows_then_the_total), TEST(one_trial_at_a_time), TEST(a_client_that_goes),
		TEST(a_port_that_goes),       TEST(profiles_refused),    TEST(a_device_of_another_port),
		TEST(trials_refused),
	};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
