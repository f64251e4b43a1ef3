// SPDX-License-Identifier: Apache-2.0
// The API server's input: frames, ttrpc's messages, and every request type of the contract through protobuf-c. What the
// server sends must be frames that a client can decode, and no stream may outlive its connection.
//
// The first byte chooses: 0, the rest is what comes out of the socket, in pieces; else the rest is a list of frames to
// build, so that the fuzzer does not have to guess lengths. 1: they cross a real socket. 3: it says which values the
// fields of a request have, at, within and outside of their limits. From 0xe0 on a user may have few streams only, from
// 0xf0 on the byte chooses the client's role too.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/api_private.h"
#include "api/check.h"
#include "api/ttrpc.pb-c.h"
#include "bridge.pb-c.h"
#include "capture.pb-c.h"
#include "label.pb-c.h"
#include "nat.pb-c.h"
#include "neighbor.pb-c.h"
#include "nexthop.pb-c.h"
#include "port.pb-c.h"
#include "route.pb-c.h"
#include "rule.pb-c.h"
#include "system.pb-c.h"
#include "vni.pb-c.h"
#include "vrf.pb-c.h"
#include "worker.pb-c.h"

#define SERVICE "s"
#define HUGE_ID 4242 // gets an answer that is too long
#define REQUESTS_MOST 128
#define MESSAGE_MOST 65536 // bytes
#define DEEPEST 4          // of messages within messages

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct api_call *waiting;
static int streams_open;

// Answers with the request, so that it is encoded again.
static int echo(struct api_call *call, const void *req, void *resp, struct error *err)
{
	memcpy(resp, req, ((const ProtobufCMessage *)req)->descriptor->sizeof_message);
	return 0;
}

static int refuse(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__Route *r = req;

	return error_set(err, r->nexthop % 130, r->vrf, r->prefix, r->origin, "refused as asked");
}

static char *long_text(struct api_call *call)
{
	return memset(api_alloc(call, API_MAX_MESSAGE + 1), 'x', API_MAX_MESSAGE);
}

static int answer_long(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__Route *r = req;
	Corelane__V1__Route *answer = resp;

	answer->prefix = api_printf(call, "%s/%s", r->prefix, r->vrf);
	answer->vrf = r->nexthop == HUGE_ID ? long_text(call) : api_strdup(call, r->vrf);
	return 0;
}

// Answers a unary call after some turns.
static int single(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__Route *r = req;
	uint32_t *n = cursor;

	if (*n == 0)
		streams_open++;
	if (++*n <= r->nexthop % 8)
		return api_again(call);
	if (r->nexthop % 5 == 4)
		return -ENOENT;
	((Corelane__V1__Route *)item)->vrf = r->nexthop == HUGE_ID ? long_text(call) : r->vrf;
	return 1;
}

static int next_rule(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__RuleAddRequest *r = req;
	uint32_t *n = cursor;

	if ((*n)++ == 0)
		streams_open++;
	if (*n > r->n_rules)
		return 0;
	((Corelane__V1__Route *)item)->vrf = r->rules[*n - 1]->id == HUGE_ID ? long_text(call) : r->rules[*n - 1]->list;
	return 1;
}

// The id of a next hop serves as the number of items, its kind decides between giving and waiting.
static int next(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__Nexthop *nh = req;
	uint32_t *n = cursor;

	if (*n == 0)
		streams_open++;
	if (++*n > nh->id % 1000)
		return nh->id % 3 == 0 ? 0 : error_set(err, ENOENT, "id", NULL, NULL, "no more");
	if (*n % 7 == 3) {
		waiting = call;
		if (nh->id % 5 == 0)
			api_wake(call);
		return -EAGAIN;
	}
	memcpy(item, req, sizeof(*nh));
	return 1;
}

static void done(void *cursor)
{
	streams_open -= *(uint32_t *)cursor > 0;
	waiting = NULL; // which stream has ended is not known here
}

#define ECHO(n, type)                                                                     \
	{                                                                                 \
		.service = SERVICE, .name = n, .req = &type, .resp = &type, .unary = echo \
	}

static const struct api_method methods[] = {
	ECHO("a", corelane__v1__route_add_request__descriptor),
	ECHO("b", corelane__v1__port_add_request__descriptor),
	ECHO("c", corelane__v1__port_set_request__descriptor),
	ECHO("d", corelane__v1__nexthop_add_request__descriptor),
	ECHO("e", corelane__v1__bridge_add_request__descriptor),
	ECHO("f", corelane__v1__mac_add_request__descriptor),
	ECHO("g", corelane__v1__label_add_request__descriptor),
	ECHO("h", corelane__v1__vni_add_request__descriptor),
	ECHO("i", corelane__v1__vrf_add_request__descriptor),
	ECHO("j", corelane__v1__neighbor_add_request__descriptor),
	ECHO("k", corelane__v1__worker_add_request__descriptor),
	ECHO("l", corelane__v1__capture_request__descriptor),
	ECHO("m", corelane__v1__trace_request__descriptor),
	ECHO("n", corelane__v1__settings_set_request__descriptor),
	ECHO("q", corelane__v1__rule_add_request__descriptor),
	ECHO("r", corelane__v1__rule_list_add_request__descriptor),
	ECHO("s", corelane__v1__address_group_add_request__descriptor),
	ECHO("t", corelane__v1__nat_add_request__descriptor),
	{.service = SERVICE,
	 .name = "o",
	 .req = &corelane__v1__route__descriptor,
	 .resp = &corelane__v1__route__descriptor,
	 .unary = refuse},
	{.service = SERVICE,
	 .name = "p",
	 .req = &corelane__v1__nexthop__descriptor,
	 .resp = &corelane__v1__nexthop__descriptor,
	 .next = next,
	 .done = done,
	 .cursor_size = sizeof(uint32_t)},
	{.service = SERVICE,
	 .name = "v",
	 .req = &corelane__v1__route__descriptor,
	 .resp = &corelane__v1__route__descriptor,
	 .unary = answer_long},
	{.service = SERVICE,
	 .name = "w",
	 .req = &corelane__v1__route__descriptor,
	 .resp = &corelane__v1__route__descriptor,
	 .next = single,
	 .done = done,
	 .single = true,
	 .cursor_size = sizeof(uint32_t)},
	{.service = SERVICE,
	 .name = "x",
	 .req = &corelane__v1__rule_add_request__descriptor,
	 .resp = &corelane__v1__route__descriptor,
	 .next = next_rule,
	 .done = done,
	 .cursor_size = sizeof(uint32_t)},
};

API_METHODS(methods)

static void settle(void)
{
}

static struct api_listener settled = {.settle = settle};

// Methods "0", "1" and so on: every request of the contract that has limits.
static struct event_base *base;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static struct api_method requests[REQUESTS_MOST];
	static char names[REQUESTS_MOST][4];
	unsigned i;

	if (n_api_requests > REQUESTS_MOST)
		abort();
	signal(SIGPIPE, SIG_IGN); // as api_server_start() does
	for (i = 0; i < n_api_requests; i++) {
		snprintf(names[i], sizeof(names[i]), "%u", i);
		requests[i] = (struct api_method)ECHO(names[i], *api_requests[i]->type);
	}
	api_register(requests, n_api_requests);
	api_listen(&settled);
	base = event_base_new();
	return 0;
}

static void check(bool ok)
{
	if (!ok)
		abort();
}

static void check_response(const uint8_t *data, size_t n)
{
	Ttrpc__Response *r = ttrpc__response__unpack(NULL, n, data);
	struct error err = {0};

	check(r != NULL);
	check(api_check(&r->base, &err) == 0);
	ttrpc__response__free_unpacked(r, NULL);
}

static void on_sent(void *arg, const void *data, size_t n)
{
	const uint8_t *p = data, *end = p + n;

	while (p < end) {
		struct ttrpc_header h;

		check(end - p >= TTRPC_HEADER);
		h = ttrpc_header_read(p);
		p += TTRPC_HEADER;
		check(h.length <= API_MAX_MESSAGE && h.length <= (size_t)(end - p));
		check(h.type == TTRPC_RESPONSE || h.type == TTRPC_DATA);
		if (h.type == TTRPC_RESPONSE)
			check_response(p, h.length);
		p += h.length;
	}
}

static void feed_raw(struct api_conn *c, const uint8_t *data, size_t size)
{
	size_t n;

	for (; size > 0; data += n, size -= n) {
		n = 1 + data[0] % 61;
		if (n > size)
			n = size;
		if (api_conn_input(c, data, n) < 0)
			return;
	}
}

// Where the frames of an input go: a connection without a socket, or one with.
struct sink {
	struct api_conn *conn;
	int fd; // -1: none
};

static void sink_write(const struct sink *to, const void *data, size_t n)
{
	if (to->fd < 0) {
		api_conn_input(to->conn, data, n);
		return;
	}
	if (send(to->fd, data, n, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		event_base_loop(base, EVLOOP_NONBLOCK);
}

static void frame(const struct sink *to, const struct ttrpc_header *head, const char *method, const uint8_t *data,
		  size_t n)
{
	struct ttrpc_header h = *head;
	Ttrpc__Request r = TTRPC__REQUEST__INIT;
	static uint8_t bytes[MESSAGE_MOST + 64];

	r.service = (char *)(uintptr_t)SERVICE;
	r.method = (char *)(uintptr_t)method;
	r.payload.data = (uint8_t *)(uintptr_t)data;
	r.payload.len = n;
	if (h.type == TTRPC_REQUEST)
		h.length = (uint32_t)ttrpc__request__pack(&r, bytes + TTRPC_HEADER);
	ttrpc_header_write(bytes, &h);
	sink_write(to, bytes, TTRPC_HEADER + h.length);
	if (waiting != NULL && n % 2 == 0)
		api_wake(waiting);
}

// Frames of four bytes (method, flags, stream, payload's length) and a payload.
static void feed_frames(const struct sink *to, const uint8_t *data, size_t size)
{
	uint32_t id = 1;
	char method[4];
	size_t n;

	while (size >= 4) {
		struct ttrpc_header h = {.type = data[1] & 0x80 ? TTRPC_DATA : TTRPC_REQUEST, .flags = data[1] & 7};

		if (data[1] & 0x40)
			snprintf(method, sizeof(method), "%u", data[0] % n_api_requests);
		else
			snprintf(method, sizeof(method), "%c", 'a' + data[0] % (data[1] & 0x20 ? 24 : 21));
		n = data[3] < size - 4 ? data[3] : size - 4;
		h.stream = data[2] == 0 || h.type == TTRPC_REQUEST ? id : data[2];
		frame(to, &h, method, data + 4, n);
		id += 2;
		data += 4 + n;
		size -= 4 + n;
	}
}

// --- Requests by their limits. Of each field a byte chooses how many values it has, and which ones. ---

struct choices {
	const uint8_t *data;
	size_t size;
};

static unsigned choose(struct choices *c)
{
	if (c->size == 0)
		return 0;
	c->size--;
	return *c->data++;
}

static size_t write_varint(uint8_t *out, uint64_t v)
{
	size_t n = 0;

	for (; v > 0x7f; v >>= 7)
		out[n++] = (uint8_t)(v | 0x80);
	out[n++] = (uint8_t)v;
	return n;
}

static uint64_t chosen_number(const struct field_limits *l, unsigned which)
{
	const uint64_t numbers[] = {0, 1, l->min, l->max, l->min - 1, l->max + 1, UINT64_MAX, 2};

	return numbers[which % 8];
}

static size_t chosen_text(const ProtobufCFieldDescriptor *f, const struct message_limits *limits,
			  const struct field_limits *l, unsigned which, uint8_t *out, size_t room)
{
	static const char *const texts[] = {"a", "10.0.0.1/24", "02:00:00:00:00:01", "b"};
	size_t longest = l->max < room / 2 ? l->max : room / 2, n;
	const char *const *name;
	unsigned i;

	if (which < 2) {
		memset(out, 'x', longest + which);
		return longest + which;
	}
	for (i = 0; strcmp(f->name, "fields") == 0 && i < limits->n_fields; i++) {
		if (limits->fields[i].of == NULL || limits->fields[i].of->settable == NULL)
			continue;
		for (n = 0, name = limits->fields[i].of->settable; *name && n < which - 2; name++)
			n++;
		if (*name)
			return strlen(memcpy(out, *name, strlen(*name) + 1));
	}
	return strlen(memcpy(out, texts[which % 4], strlen(texts[which % 4]) + 1));
}

static size_t build(const struct message_limits *limits, const ProtobufCMessageDescriptor *type, struct choices *c,
		    uint8_t *out, size_t room, unsigned depth);

static size_t build_value(const ProtobufCFieldDescriptor *f, const struct message_limits *limits,
			  const struct field_limits *l, struct choices *c, unsigned which, uint8_t *out, size_t room,
			  unsigned depth)
{
	static uint8_t inner[DEEPEST + 1][MESSAGE_MOST];
	double d = (double)(int64_t)chosen_number(l, which);
	size_t n, head;

	switch (f->type) {
	case PROTOBUF_C_TYPE_DOUBLE:
		head = write_varint(out, (uint64_t)f->id << 3 | 1);
		memcpy(out + head, &d, sizeof(d));
		return head + sizeof(d);
	case PROTOBUF_C_TYPE_STRING:
		n = chosen_text(f, limits, l, which, inner[depth], room);
		break;
	case PROTOBUF_C_TYPE_BYTES:
		n = chosen_number(l, which) % room / 2;
		memset(inner[depth], 0, n);
		break;
	case PROTOBUF_C_TYPE_MESSAGE:
		n = depth < DEEPEST ? build(l->of, f->descriptor, c, inner[depth], room, depth + 1) : 0;
		break;
	default:
		head = write_varint(out, (uint64_t)f->id << 3);
		return head + write_varint(out + head, chosen_number(l, which));
	}
	head = write_varint(out, (uint64_t)f->id << 3 | 2);
	head += write_varint(out + head, n);
	memcpy(out + head, inner[depth], n);
	return head + n;
}

// Returns the bytes of a message of this type. limits NULL: none of its fields has any.
static size_t build(const struct message_limits *limits, const ProtobufCMessageDescriptor *type, struct choices *c,
		    uint8_t *out, size_t room, unsigned depth)
{
	static const struct field_limits none;
	const struct field_limits *l;
	unsigned i, k, choice, values;
	size_t n = 0;

	for (i = 0; i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &type->fields[i];

		for (l = &none, k = 0; limits && k < limits->n_fields; k++)
			if (limits->fields[k].field == i)
				l = &limits->fields[k];
		choice = choose(c);
		values = choice % 4;
		if (f->label == PROTOBUF_C_LABEL_REPEATED && values == 3)
			values = l->items < 1024 ? l->items + 1 : 3;
		for (k = 0; k < values && n + room / 8 < room; k++)
			n += build_value(f, limits, l, c, (choice >> 2 & 7) + (choice & 0x80 ? k : 0), out + n,
					 room / 16, depth);
	}
	return n;
}

static void feed_requests(const struct sink *to, const uint8_t *data, size_t size)
{
	static uint8_t message[MESSAGE_MOST];
	struct ttrpc_header h = {.type = TTRPC_REQUEST, .stream = 1};
	struct choices c = {.data = data, .size = size};
	const struct message_limits *l;
	char method[4];
	unsigned which;

	for (; c.size > 0; h.stream += 2) {
		which = choose(&c) % n_api_requests;
		l = api_requests[which];
		snprintf(method, sizeof(method), "%u", which);
		frame(to, &h, method, message, build(l, l->type, &c, message, sizeof(message), 0));
	}
}

// The first byte of the rest: how the client ends. It closes its end, or sends no more and is too slow.
static void feed_socket(const uint8_t *data, size_t size)
{
	const struct api_client client = {.pid = getpid(), .role = ROLE_ADMINISTER};
	uint8_t answers[4096];
	struct sink to;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) < 0)
		abort();
	to = (struct sink){.conn = api_conn_accept(base, ends[0], &client), .fd = ends[1]};
	check(to.conn != NULL);
	feed_frames(&to, data + 1, size - 1);
	if (data[0] & 1)
		sink_write(&to, data, size); // whatever they are, not the end of a frame
	if (data[0] & 8)
		sink_write(&to, data + 1, size - 1);
	while ((data[0] & 2) && recv(ends[1], answers, sizeof(answers), 0) > 0)
		event_base_loop(base, EVLOOP_NONBLOCK);
	if (data[0] & 4) {
		api_limits.message_ms = 0;
		api_conn_sweep();
		api_conn_sweep();
		api_limits.message_ms = 30000;
	}
	close(ends[1]);
	event_base_loop(base, EVLOOP_NONBLOCK);
	api_conn_close_all(); // one whose answers are not read is full, and does not notice
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sink to = {.fd = -1};
	unsigned i;

	if (size > 2 && data[0] == 1) {
		feed_socket(data + 1, size - 1);
	} else if (size > 1) {
		to.conn = api_conn_test(on_sent, NULL);
		if (data[0] >= 0xf0) // the service of this file needs ROLE_ADMINISTER
			to.conn->client.role = data[0] % ROLES;
		api_limits.user_streams = data[0] >= 0xe0 ? 4 : 512;
		if (data[0] == 0)
			feed_raw(to.conn, data + 1, size - 1);
		else if (data[0] == 3)
			feed_requests(&to, data + 1, size - 1);
		else
			feed_frames(&to, data + 1, size - 1);
		for (i = 0; i < 4; i++)
			api_conn_input(to.conn, NULL, 0);
		api_conn_close(to.conn);
	}
	check(streams_open == 0 && api_conn_count() == 0);
	waiting = NULL;
	return 0;
}
