// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/api_test.h"
#include "common.pb-c.h"
#include "system.pb-c.h"

unsigned test_list_items, test_list_given;
int test_streams_open;
struct api_call *test_waiting;
unsigned test_hold_ms, test_held;
bool test_done;

struct list_cursor {
	unsigned n;
	bool open, told;
};

static bool test_change_done(uint64_t change)
{
	assert_int_equal(change, 7);
	test_held++;
	return test_done;
}

static int lookup(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__RouteLookupRequest *r = req;
	Corelane__V1__Route *route = resp;

	route->vrf = r->vrf;
	route->prefix = api_printf(call, "%s/32", r->address);
	if (strcmp(r->vrf, "hold") == 0)
		api_hold(call, test_change_done, 7, test_hold_ms);
	return 0;
}

static int add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	error_set(err, EINVAL, "route.prefix", "10.0.0.1/24", "10.0.0.0/24", "has host bits set");
	err->index = 7;
	return -EINVAL;
}

static int silent(struct api_call *call, const void *req, void *resp, struct error *err)
{
	return -ENOENT;
}

static char *huge_text(struct api_call *call)
{
	char *s = api_alloc(call, API_MAX_MESSAGE + 1);

	return memset(s, 'x', API_MAX_MESSAGE);
}

static int huge(struct api_call *call, const void *req, void *resp, struct error *err)
{
	((Corelane__V1__Route *)resp)->vrf = huge_text(call);
	return 0;
}

static int set(struct api_call *call, const void *req, void *resp, struct error *err)
{
	return 0;
}

static int list_next(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__RouteListRequest *r = req;
	Corelane__V1__Route *route = item;
	struct list_cursor *c = cursor;

	if (!c->open)
		test_streams_open++;
	c->open = true;
	if (strcmp(r->vrf, "wait") == 0 && (c->told = !c->told)) {
		test_waiting = call;
		return -EAGAIN;
	}
	if (strcmp(r->vrf, "fail") == 0 && c->n == 2)
		return error_set(err, ENOENT, "vrf", r->vrf, NULL, "no such VRF");
	if (c->n >= test_list_items)
		return 0;
	route->vrf = strcmp(r->vrf, "huge") == 0 ? huge_text(call) : r->vrf;
	route->prefix = api_printf(call, "10.%u.%u.%u/32", c->n >> 16 & 255, c->n >> 8 & 255, c->n & 255);
	route->nexthop = c->n++;
	route->origin = api_strdup(call, "api");
	test_list_given++;
	return 1;
}

static void list_done(void *cursor)
{
	const struct list_cursor *c = cursor;

	if (c->open)
		test_streams_open--;
}

// Answers with its 1000th call, after several turns: nexthop is the number of calls.
static int slow(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__RouteLookupRequest *r = req;
	Corelane__V1__Route *route = item;
	struct list_cursor *c = cursor;

	if (++c->n < 1000)
		return api_again(call);
	if (strcmp(r->vrf, "fail") == 0)
		return error_set(err, ENOENT, "vrf", r->vrf, NULL, "no such VRF");
	route->vrf = r->vrf;
	route->nexthop = c->n;
	return 1;
}

static const struct api_method methods[] = {
	{.service = TEST_SERVICE,
	 .name = "Slow",
	 .req = &corelane__v1__route_lookup_request__descriptor,
	 .resp = &corelane__v1__route__descriptor,
	 .next = slow,
	 .single = true,
	 .cursor_size = sizeof(struct list_cursor)},
	{.service = TEST_SERVICE,
	 .name = "Lookup",
	 .req = &corelane__v1__route_lookup_request__descriptor,
	 .resp = &corelane__v1__route__descriptor,
	 .unary = lookup},
	{.service = TEST_SERVICE,
	 .name = "Add",
	 .req = &corelane__v1__route_add_request__descriptor,
	 .resp = &corelane__v1__route_reply__descriptor,
	 .unary = add},
	{.service = TEST_SERVICE,
	 .name = "Silent",
	 .req = &corelane__v1__empty__descriptor,
	 .resp = &corelane__v1__empty__descriptor,
	 .unary = silent},
	{.service = TEST_SERVICE,
	 .name = "Huge",
	 .req = &corelane__v1__empty__descriptor,
	 .resp = &corelane__v1__route__descriptor,
	 .unary = huge},
	{.service = TEST_SERVICE,
	 .name = "Set",
	 .req = &corelane__v1__settings_set_request__descriptor,
	 .resp = &corelane__v1__empty__descriptor,
	 .unary = set},
	{.service = TEST_SERVICE,
	 .name = "List",
	 .req = &corelane__v1__route_list_request__descriptor,
	 .resp = &corelane__v1__route__descriptor,
	 .next = list_next,
	 .done = list_done,
	 .cursor_size = sizeof(struct list_cursor)},
};

API_METHODS(methods)

static void on_sent(void *arg, const void *data, size_t n)
{
	struct test_conn *t = arg;

	t->sent = realloc(t->sent, t->n + n);
	memcpy(t->sent + t->n, data, n);
	t->n += n;
}

void test_conn_open(struct test_conn *t)
{
	*t = (struct test_conn){0};
	test_list_items = 10;
	t->conn = api_conn_test(on_sent, t);
}

void test_conn_close(struct test_conn *t)
{
	api_conn_close(t->conn);
	free(t->sent);
}

int test_conn_frame(struct test_conn *t, uint32_t id, uint8_t type, uint8_t flags, const void *data, size_t n)
{
	struct ttrpc_header h = {.length = (uint32_t)n, .stream = id, .type = type, .flags = flags};
	uint8_t *bytes = malloc(TTRPC_HEADER + n);
	int ret;

	ttrpc_header_write(bytes, &h);
	memcpy(bytes + TTRPC_HEADER, data, n);
	ret = api_conn_input(t->conn, bytes, TTRPC_HEADER + n);
	free(bytes);
	return ret;
}

size_t test_pack_request(uint8_t *out, uint32_t id, uint8_t flags, const char *service, const char *method,
			 const ProtobufCMessage *req)
{
	struct ttrpc_header h = {.stream = id, .type = TTRPC_REQUEST, .flags = flags};
	Ttrpc__Request r = TTRPC__REQUEST__INIT;
	uint8_t payload[512];

	r.service = (char *)(uintptr_t)service;
	r.method = (char *)(uintptr_t)method;
	r.payload.data = payload;
	r.payload.len = protobuf_c_message_pack(req, payload);
	h.length = (uint32_t)ttrpc__request__pack(&r, out + TTRPC_HEADER);
	ttrpc_header_write(out, &h);
	return TTRPC_HEADER + h.length;
}

int test_conn_request(struct test_conn *t, uint32_t id, uint8_t flags, const char *service, const char *method,
		      const ProtobufCMessage *req)
{
	uint8_t bytes[1024];

	return api_conn_input(t->conn, bytes, test_pack_request(bytes, id, flags, service, method, req));
}

struct test_frame *test_conn_next(struct test_conn *t)
{
	if (t->at + TTRPC_HEADER > t->n)
		return NULL;
	t->frame.h = ttrpc_header_read(t->sent + t->at);
	t->frame.data = t->sent + t->at + TTRPC_HEADER;
	t->at += TTRPC_HEADER + t->frame.h.length;
	return &t->frame;
}

struct test_frame *test_conn_wait(struct test_conn *t)
{
	struct test_frame *f = test_conn_next(t);
	unsigned turns;

	for (turns = 0; f == NULL && turns < 100; turns++) { // a turn ends early on a busy machine
		api_conn_input(t->conn, NULL, 0);
		f = test_conn_next(t);
	}
	return f;
}

void test_conn_drop(struct test_conn *t)
{
	t->at = t->n;
}

static struct test_conn asking;
static uint32_t ask_id;

int test_ask_setup(void **state)
{
	ask_id = 1;
	test_conn_open(&asking);
	return 0;
}

int test_ask_teardown(void **state)
{
	test_conn_close(&asking);
	return 0;
}

Ttrpc__Response *test_ask(const char *service, const char *method, const ProtobufCMessage *req)
{
	struct test_frame *f;

	test_conn_request(&asking, ask_id, 0, service, method, req);
	ask_id += 2;
	f = test_conn_wait(&asking);
	assert_non_null(f);
	return ttrpc__response__unpack(NULL, f->h.length, f->data);
}

void test_ask_refused(const char *service, const char *method, const ProtobufCMessage *req, const char *message)
{
	Ttrpc__Response *r = test_ask(service, method, req);

	assert_non_null(r->status);
	if (strstr(r->status->message, message) == NULL)
		fail_msg("'%s' is not in '%s'", message, r->status->message);
	ttrpc__response__free_unpacked(r, NULL);
}

void *test_ask_done(const char *service, const char *method, const ProtobufCMessage *req,
		    const ProtobufCMessageDescriptor *answer)
{
	Ttrpc__Response *r = test_ask(service, method, req);
	void *message = NULL;

	if (r->status && r->status->code)
		fail_msg("%s", r->status->message);
	if (answer) {
		message = protobuf_c_message_unpack(answer, NULL, r->payload.len, r->payload.data);
		assert_non_null(message);
	}
	ttrpc__response__free_unpacked(r, NULL);
	return message;
}

struct test_conn *test_ask_stream(const char *service, const char *method, const ProtobufCMessage *req)
{
	test_conn_request(&asking, ask_id, TTRPC_REMOTE_CLOSED, service, method, req);
	ask_id += 2;
	return &asking;
}
