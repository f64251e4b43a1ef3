// SPDX-License-Identifier: Apache-2.0
// Frames of a connection without a socket. api_server_test.c and tests/api test sockets, back-pressure and real
// clients.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/api_test.h"
#include "api/utf8.h"
#include "common.pb-c.h"
#include "testing/wait_until.h"

static struct test_conn t;

static int setup(void **state)
{
	test_conn_open(&t);
	return 0;
}

static int teardown(void **state)
{
	test_conn_close(&t);
	assert_int_equal(test_streams_open, 0);
	return 0;
}

// Sends one request of the routes service and returns the frame that answers.
static struct test_frame *ask(uint32_t id, const char *method, const ProtobufCMessage *req, uint8_t flags)
{
	assert_int_equal(test_conn_request(&t, id, flags, TEST_SERVICE, method, req), 0);
	return test_conn_next(&t);
}

static void assert_status(struct test_frame *f, uint32_t id, int code, const char *word)
{
	Ttrpc__Response *r;

	assert_non_null(f);
	assert_int_equal(f->h.stream, id);
	assert_int_equal(f->h.type, TTRPC_RESPONSE);
	r = ttrpc__response__unpack(NULL, f->h.length, f->data);
	assert_non_null(r);
	assert_non_null(r->status);
	assert_int_equal(r->status->code, code);
	assert_true(utf8_valid(r->status->message));
	if (strstr(r->status->message, word) == NULL)
		fail_msg("'%s' is not in '%s'", word, r->status->message);
	ttrpc__response__free_unpacked(r, NULL);
}

static void unary(void **state)
{
	static struct api_listener silent;
	Corelane__V1__RouteLookupRequest req = CORELANE__V1__ROUTE_LOOKUP_REQUEST__INIT;
	struct test_frame *f;
	Ttrpc__Response *r;
	Corelane__V1__Route *route;

	api_listen(&silent); // has no callback: skipped
	req.address = "192.0.2.1";
	f = ask(1, "Lookup", &req.base, 0);
	assert_non_null(f);
	assert_int_equal(f->h.type, TTRPC_RESPONSE);
	assert_int_equal(f->h.flags, 0);
	r = ttrpc__response__unpack(NULL, f->h.length, f->data);
	assert_null(r->status);
	route = corelane__v1__route__unpack(NULL, r->payload.len, r->payload.data);
	assert_string_equal(route->prefix, "192.0.2.1/32");
	corelane__v1__route__free_unpacked(route, NULL);
	ttrpc__response__free_unpacked(r, NULL);
	assert_null(test_conn_next(&t));
}

// The same bytes one at a time, and three requests in one piece: answered in order.
static void pieces(void **state)
{
	Corelane__V1__RouteLookupRequest req = CORELANE__V1__ROUTE_LOOKUP_REQUEST__INIT;
	uint8_t bytes[1024];
	size_t n = 0, i;

	for (i = 1; i <= 5; i += 2)
		n += test_pack_request(bytes + n, (uint32_t)i, 0, TEST_SERVICE, "Lookup", &req.base);
	for (i = 0; i < n; i++)
		assert_int_equal(api_conn_input(t.conn, bytes + i, 1), 0);
	for (i = 1; i <= 5; i += 2)
		assert_int_equal(test_conn_next(&t)->h.stream, i);
	assert_null(test_conn_next(&t));
	bytes[7] = 7; // new ids
	bytes[n / 3 + 7] = 9;
	bytes[n / 3 * 2 + 7] = 11;
	assert_int_equal(api_conn_input(t.conn, bytes, n), 0);
	for (i = 7; i <= 11; i += 2)
		assert_int_equal(test_conn_next(&t)->h.stream, i);
}

static void typed_error(void **state)
{
	Corelane__V1__RouteAddRequest req = CORELANE__V1__ROUTE_ADD_REQUEST__INIT;
	struct test_frame *f = ask(1, "Add", &req.base, 0);
	Ttrpc__Response *r;
	Corelane__V1__Error *e;

	assert_status(f, 1, 3, "has host bits set");
	r = ttrpc__response__unpack(NULL, f->h.length, f->data);
	assert_int_equal(r->status->n_details, 1);
	assert_string_equal(r->status->details[0]->type_url, "type.googleapis.com/corelane.v1.Error");
	e = corelane__v1__error__unpack(NULL, r->status->details[0]->value.len, r->status->details[0]->value.data);
	assert_string_equal(e->field, "route.prefix");
	assert_string_equal(e->value, "10.0.0.1/24");
	assert_string_equal(e->valid, "10.0.0.0/24");
	assert_string_equal(e->message, r->status->message);
	assert_int_equal(e->index, 7);
	corelane__v1__error__free_unpacked(e, NULL);
	ttrpc__response__free_unpacked(r, NULL);
}

static void codes(void **state)
{
	static const struct {
		int code, grpc;
	} want[] = {{EINVAL, 3},  {ERANGE, 3},    {EMSGSIZE, 3}, {ENOENT, 5},  {EEXIST, 6},   {EPERM, 9},
		    {EACCES, 7},  {ENOMEM, 8},    {ENOSPC, 8},   {EBUSY, 9},   {EPROTO, 9},   {ENOTSUP, 12},
		    {ENOSYS, 12}, {ECANCELED, 1}, {EIO, 13},     {EAGAIN, 14}, {ETIMEDOUT, 4}};
	unsigned i;

	for (i = 0; i < sizeof(want) / sizeof(*want); i++)
		assert_int_equal(ttrpc_grpc_code(want[i].code), want[i].grpc);
}

static void refused(void **state)
{
	Corelane__V1__Empty empty = CORELANE__V1__EMPTY__INIT;
	Corelane__V1__RouteLookupRequest req = CORELANE__V1__ROUTE_LOOKUP_REQUEST__INIT;

	assert_status(ask(1, "Fly", &empty.base, 0), 1, 12, "method 'Fly': is not a method of corelane.v1.Routes");
	assert_int_equal(test_conn_request(&t, 3, 0, "corelane.v1.Moon", "Fly", &empty.base), 0);
	assert_status(test_conn_next(&t), 3, 12, "service 'corelane.v1.Moon'");
	test_conn_frame(&t, 5, TTRPC_REQUEST, 0, "\xff\xff\xff", 3);
	assert_status(test_conn_next(&t), 5, 3, "is not a ttrpc.Request");
	// a Lookup whose payload is a field without its length
	test_conn_frame(&t, 7, TTRPC_REQUEST, 0, "\x0a\x12" TEST_SERVICE "\x12\x06Lookup\x1a\x01\x0a", 31);
	assert_status(test_conn_next(&t), 7, 3, "is not a corelane.v1.RouteLookupRequest");
	req.vrf = "r\xc3\xb6t\xff";
	assert_status(ask(9, "Lookup", &req.base, 0), 9, 3, "vrf 'r\xc3\xb6t?': is not UTF-8");
	assert_status(ask(11, "Silent", &empty.base, 0), 11, 5, "No such file");
	assert_status(ask(13, "List", &empty.base, 0), 13, 3, "answers with a stream");
	assert_status(ask(13, "Silent", &empty.base, 0), 13, 3, "used before");
	assert_status(ask(14, "Silent", &empty.base, 0), 14, 3, "odd");
	req.vrf = NULL;
	assert_int_equal(ask(15, "Lookup", &req.base, 0)->h.stream, 15);
}

static void stream(void **state)
{
	Corelane__V1__RouteListRequest req = CORELANE__V1__ROUTE_LIST_REQUEST__INIT;
	struct test_frame *f;
	unsigned n;

	test_list_items = 1000;
	f = ask(1, "List", &req.base, TTRPC_REMOTE_CLOSED);
	for (n = 0; f != NULL && f->h.flags == 0; n++) {
		Corelane__V1__Route *r = corelane__v1__route__unpack(NULL, f->h.length, f->data);

		assert_int_equal(f->h.type, TTRPC_DATA);
		assert_int_equal(r->nexthop, n);
		corelane__v1__route__free_unpacked(r, NULL);
		f = test_conn_next(&t);
		if (f == NULL) { // the next turn
			assert_in_range(n + 1, 1, API_TURN_ITEMS * (n / API_TURN_ITEMS + 1));
			assert_int_equal(api_conn_input(t.conn, NULL, 0), 0);
			f = test_conn_next(&t);
		}
	}
	assert_int_equal(n, 1000);
	assert_non_null(f);
	assert_int_equal(f->h.type, TTRPC_DATA);
	assert_int_equal(f->h.flags, TTRPC_REMOTE_CLOSED | TTRPC_NO_DATA);
	assert_int_equal(f->h.length, 0);
	assert_int_equal(test_streams_open, 0);
}

static void stream_fails(void **state)
{
	Corelane__V1__RouteListRequest req = CORELANE__V1__ROUTE_LIST_REQUEST__INIT;

	req.vrf = "fail"; // after two items
	assert_int_equal(ask(1, "List", &req.base, TTRPC_REMOTE_CLOSED)->h.type, TTRPC_DATA);
	assert_int_equal(test_conn_next(&t)->h.type, TTRPC_DATA);
	assert_status(test_conn_next(&t), 1, 5, "vrf 'fail': no such VRF");
	assert_int_equal(test_streams_open, 0);
	req.vrf = "huge";
	assert_status(ask(3, "List", &req.base, TTRPC_REMOTE_CLOSED), 3, 8, "longer than");
	assert_int_equal(test_streams_open, 0);
	assert_status(ask(5, "Huge", &req.base, 0), 5, 8, "longer than");
}

static void wake(void **state)
{
	Corelane__V1__RouteListRequest req = CORELANE__V1__ROUTE_LIST_REQUEST__INIT;

	req.vrf = "wait"; // an item only after each wake
	assert_null(ask(1, "List", &req.base, TTRPC_REMOTE_CLOSED));
	api_conn_input(t.conn, NULL, 0);
	assert_null(test_conn_next(&t));
	api_wake(test_waiting);
	api_conn_input(t.conn, NULL, 0);
	assert_int_equal(test_conn_next(&t)->h.type, TTRPC_DATA);
	assert_null(test_conn_next(&t));
	assert_int_equal(test_streams_open, 1);
}

// A unary call in shares: other requests of the client are answered between them.
static void shares(void **state)
{
	Corelane__V1__RouteLookupRequest req = CORELANE__V1__ROUTE_LOOKUP_REQUEST__INIT;
	uint8_t bytes[512];
	Corelane__V1__Route *route;
	struct test_frame *f;
	Ttrpc__Response *r;
	size_t n;

	req.address = "192.0.2.1";
	n = test_pack_request(bytes, 1, 0, TEST_SERVICE, "Slow", &req.base);
	n += test_pack_request(bytes + n, 3, 0, TEST_SERVICE, "Lookup", &req.base);
	assert_int_equal(api_conn_input(t.conn, bytes, n), 0);
	assert_int_equal(test_conn_wait(&t)->h.stream, 3);
	f = test_conn_wait(&t);
	assert_non_null(f);
	assert_int_equal(f->h.stream, 1);
	assert_int_equal(f->h.type, TTRPC_RESPONSE);
	r = ttrpc__response__unpack(NULL, f->h.length, f->data);
	assert_null(r->status);
	route = corelane__v1__route__unpack(NULL, r->payload.len, r->payload.data);
	assert_int_equal(route->nexthop, 1000);
	corelane__v1__route__free_unpacked(route, NULL);
	ttrpc__response__free_unpacked(r, NULL);
	api_conn_input(t.conn, NULL, 0);
	assert_null(test_conn_next(&t)); // nothing follows an answer
	req.vrf = "fail";
	test_conn_request(&t, 5, 0, TEST_SERVICE, "Slow", &req.base);
	assert_status(test_conn_wait(&t), 5, 5, "vrf 'fail': no such VRF");
	assert_int_equal(t.conn->streams, 0);
}

static void cancel(void **state)
{
	Corelane__V1__RouteListRequest req = CORELANE__V1__ROUTE_LIST_REQUEST__INIT;
	uint32_t id;

	for (id = 1; id < 5; id += 2) {
		req.vrf = id == 1 ? "wait" : NULL;
		test_list_items = 1000000;
		ask(id, "List", &req.base, TTRPC_REMOTE_OPEN);
		test_conn_drop(&t);
		assert_int_equal(test_streams_open, 1);
		test_conn_frame(&t, id, TTRPC_DATA, TTRPC_REMOTE_CLOSED | TTRPC_NO_DATA, "", 0);
		assert_status(test_conn_next(&t), id, 1, "cancelled");
		assert_int_equal(test_streams_open, 0);
		api_conn_input(t.conn, NULL, 0);
		assert_null(test_conn_next(&t));
	}
	test_conn_frame(&t, 3, TTRPC_DATA, TTRPC_REMOTE_CLOSED | TTRPC_NO_DATA, "",
			0); // sent while the end was on the way: no answer
	assert_null(test_conn_next(&t));
	test_conn_frame(&t, 3, TTRPC_DATA, 0, "x", 1);
	assert_status(test_conn_next(&t), 3, 3, "one request");
}

static void many_streams(void **state)
{
	Corelane__V1__RouteListRequest req = CORELANE__V1__ROUTE_LIST_REQUEST__INIT;
	uint32_t i;

	req.vrf = "wait";
	for (i = 0; i < API_STREAMS; i++)
		assert_null(ask(2 * i + 1, "List", &req.base, TTRPC_REMOTE_CLOSED));
	assert_int_equal(test_streams_open, API_STREAMS);
	assert_status(ask(2 * i + 1, "List", &req.base, TTRPC_REMOTE_CLOSED), 2 * i + 1, 8, "open streams already");
	test_conn_frame(&t, 1, TTRPC_DATA, TTRPC_REMOTE_CLOSED | TTRPC_NO_DATA, "", 0);
	assert_status(test_conn_next(&t), 1, 1, "cancelled");
	assert_null(ask(2 * i + 3, "List", &req.base, TTRPC_REMOTE_CLOSED));
}

// Two streams share a turn, and a request does not wait for them.
static void fair(void **state)
{
	Corelane__V1__RouteListRequest req = CORELANE__V1__ROUTE_LIST_REQUEST__INIT;
	Corelane__V1__RouteLookupRequest lookup = CORELANE__V1__ROUTE_LOOKUP_REQUEST__INIT;
	unsigned of[4] = {0};
	struct test_frame *f;

	test_list_items = 1000000;
	ask(1, "List", &req.base, TTRPC_REMOTE_CLOSED);
	ask(3, "List", &req.base, TTRPC_REMOTE_CLOSED);
	test_conn_drop(&t);
	f = ask(5, "Lookup", &lookup.base, 0);
	assert_int_equal(f->h.stream, 5);
	while ((f = test_conn_next(&t)) != NULL)
		of[f->h.stream]++;
	assert_in_range(of[1], 1, API_TURN_ITEMS / 2);
	assert_in_range(of[3], of[1] - 1, of[1] + 1);
}

static void oversized(void **state)
{
	Corelane__V1__RouteLookupRequest req = CORELANE__V1__ROUTE_LOOKUP_REQUEST__INIT;
	static uint8_t zeros[64 * 1024];
	struct ttrpc_header h = {.length = API_MAX_MESSAGE + 1, .stream = 1, .type = TTRPC_REQUEST};
	uint8_t bytes[TTRPC_HEADER];
	size_t left;

	ttrpc_header_write(bytes, &h);
	assert_int_equal(api_conn_input(t.conn, bytes, sizeof(bytes)), 0);
	assert_status(test_conn_next(&t), 1, 3, "longer than 4 MiB");
	for (left = h.length; left > 0; left -= left < sizeof(zeros) ? left : sizeof(zeros)) {
		assert_int_equal(api_conn_input(t.conn, zeros, left < sizeof(zeros) ? left : sizeof(zeros)), 0);
		assert_int_equal(evbuffer_get_length(t.conn->in), 0);
	}
	assert_int_equal(ask(3, "Lookup", &req.base, 0)->h.stream, 3);
}

static void garbage(void **state)
{
	static const char *const bad[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x01garbage with a length of 16 MiB",
					  "\0\0\0\0\0\0\0\1\0\0", "\0\0\0\0\0\0\0\1\2\0"}; // a type 0 and an answer
	unsigned i;

	for (i = 0; i < 4; i++) {
		test_conn_close(&t);
		test_conn_open(&t);
		assert_int_equal(api_conn_input(t.conn, bad[i], i < 2 ? strlen(bad[i]) : TTRPC_HEADER), -EPROTO);
	}
	test_conn_close(&t);
	test_conn_open(&t);
	test_conn_frame(&t, 1, 9, 0, "of a later version", 18);
	assert_null(test_conn_next(&t));
}

// Small on the wire, huge once unpacked: submessages of two bytes, and ones that are merged over and over.
static void bombs(void **state)
{
	static const char name[] = "\x0a\x12" TEST_SERVICE "\x12\x03"
				   "Add";
	size_t n = API_MAX_MESSAGE - 64, i, at = sizeof(name) - 1;
	uint8_t *bytes = calloc(1, API_MAX_MESSAGE);

	memcpy(bytes, name, at);
	bytes[at++] = 0x1a;
	for (i = n; i > 0x7f; i >>= 7)
		bytes[at++] = (uint8_t)(i | 0x80);
	bytes[at++] = (uint8_t)i;
	for (i = 0; i < n; i += 2)
		bytes[at + i] = 0x0a;
	test_conn_frame(&t, 1, TTRPC_REQUEST, 0, bytes, at + n);
	assert_status(test_conn_next(&t), 1, 8, "takes too much memory");
	memcpy(bytes + 22, "Set", 3);
	for (i = 0; i + 4 <= n; i += 4)
		memcpy(bytes + at + i, "\x0a\x02\x08\x01", 4);
	test_conn_frame(&t, 3, TTRPC_REQUEST, 0, bytes, at + n);
	assert_status(test_conn_next(&t), 3, 8, "takes too much memory");
	free(bytes);
}

static void texts(void **state)
{
	static const char *const good[] = {
		"", "abc", "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x9a\x80", "\xf4\x8f\xbf\xbf"};
	static const char *const bad[] = {"\x80",
					  "a\xff",
					  "\xc3",
					  "\xc0\x80",
					  "\xe0\x80\x80",
					  "\xed\xa0\x80",
					  "\xf4\x90\x80\x80",
					  "\xf8\x88\x80\x80\x80"};
	char buf[16];
	unsigned i;

	for (i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_true(utf8_valid(good[i]));
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_false(utf8_valid(bad[i]));
		snprintf(buf, sizeof(buf), "%s", bad[i]);
		assert_true(utf8_valid(utf8_repair(buf)));
		assert_int_equal(strlen(buf), strlen(bad[i]));
	}
}

static void prints(void **state)
{
	struct api_call call = {0};
	char want[300];

	assert_string_equal(api_printf(&call, "%s", ""), "");
	assert_string_equal(api_printf(&call, "%u/%s", 7, "x"), "7/x");
	memset(want, 'y', sizeof(want));
	for (size_t n = 126; n < 130; n++) {
		want[n] = '\0';
		assert_string_equal(api_printf(&call, "%s", want), want);
		want[n] = 'y';
	}
	want[299] = '\0';
	assert_string_equal(api_printf(&call, "%s", want), want);
	arena_free(&call.memory);
}

static void arenas(void **state)
{
	struct arena a = {.limit = 100000};
	uint8_t *p;
	unsigned i;

	for (i = 0; i < 3; i++) {
		p = arena_alloc(&a, 3000);
		assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
		assert_int_equal(p[0] | p[2999], 0);
		memset(p, 0xff, 3000);
		assert_non_null(arena_alloc(&a, 80000));
		assert_null(arena_alloc(&a, 20000));
		assert_true(a.refused);
		assert_null(arena_alloc(&a, SIZE_MAX - 4));
		arena_reset(&a);
	}
	assert_non_null(arena_alloc(&a, 0));
	arena_free(&a);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

// A held answer keeps the order: later requests of the client wait, too, and those of others do not.
static void held(void **state)
{
	Corelane__V1__RouteLookupRequest hold = CORELANE__V1__ROUTE_LOOKUP_REQUEST__INIT;
	Corelane__V1__RouteLookupRequest lookup = CORELANE__V1__ROUTE_LOOKUP_REQUEST__INIT;
	struct test_conn other;

	hold.vrf = "hold";
	hold.address = lookup.address = "192.0.2.1";
	test_hold_ms = UINT32_MAX;
	test_done = false;
	assert_null(ask(1, "Lookup", &hold.base, 0));
	assert_null(ask(3, "Lookup", &lookup.base, 0));
	test_conn_open(&other);
	assert_int_equal(test_conn_request(&other, 1, 0, TEST_SERVICE, "Lookup", &lookup.base), 0);
	assert_non_null(test_conn_next(&other));
	test_conn_close(&other);
	test_held = 0;
	assert_int_equal(api_conn_input(t.conn, NULL, 0), 0);
	assert_int_equal(test_held, 1); // once in a turn
	assert_null(test_conn_next(&t));
	test_done = true;
	assert_int_equal(api_conn_input(t.conn, NULL, 0), 0);
	assert_int_equal(test_conn_next(&t)->h.stream, 1);
	assert_int_equal(test_conn_next(&t)->h.stream, 3);
	assert_int_equal(ask(5, "Lookup", &hold.base, 0)->h.stream, 5); // is done at once
	test_done = false;
	assert_null(ask(7, "Lookup", &hold.base, 0));
	// Its client goes.
}

// The change may take for ever, but its answer does not.
static void held_for_long(void **state)
{
	Corelane__V1__RouteLookupRequest hold = CORELANE__V1__ROUTE_LOOKUP_REQUEST__INIT;
	struct test_frame *f;

	hold.vrf = "hold";
	hold.address = "192.0.2.1";
	test_hold_ms = 1;
	test_done = false;
	assert_int_equal(test_conn_request(&t, 1, 0, TEST_SERVICE, "Lookup", &hold.base), 0);
	assert_true(wait_until((api_conn_input(t.conn, NULL, 0) == 0 && (f = test_conn_next(&t)) != NULL)));
	assert_int_equal(f->h.stream, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(unary),
					   TEST(pieces),
					   TEST(typed_error),
					   cmocka_unit_test(codes),
					   TEST(refused),
					   TEST(stream),
					   TEST(stream_fails),
					   TEST(wake),
					   TEST(shares),
					   TEST(held),
					   TEST(held_for_long),
					   TEST(cancel),
					   TEST(many_streams),
					   TEST(fair),
					   TEST(oversized),
					   TEST(garbage),
					   TEST(bombs),
					   cmocka_unit_test(texts),
					   cmocka_unit_test(prints),
					   cmocka_unit_test(arenas)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
