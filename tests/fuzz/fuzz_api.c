// SPDX-License-Identifier: Apache-2.0
// The API server's input: frames, ttrpc's messages, and every request type of the contract through protobuf-c. What the
// server sends must be frames that a client can decode, and no stream may outlive its connection.
//
// The first byte chooses: 0, the rest is what comes out of the socket, in pieces; else the rest is a list of frames to
// build, so that the fuzzer does not have to guess lengths. From 0xf0 on it chooses the client's role too.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_private.h"
#include "api/ttrpc.pb-c.h"
#include "api/utf8.h"
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
};

API_METHODS(methods)

static void check(bool ok)
{
	if (!ok)
		abort();
}

static void check_response(const uint8_t *data, size_t n)
{
	Ttrpc__Response *r = ttrpc__response__unpack(NULL, n, data);
	const char *field;

	check(r != NULL);
	check(utf8_invalid_field(&r->base, &field) == NULL);
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

static void frame(struct api_conn *c, uint32_t id, uint8_t type, uint8_t flags, char method, const uint8_t *data,
		  size_t n)
{
	struct ttrpc_header h = {.stream = id, .type = type, .flags = flags};
	uint8_t bytes[512];
	char name[2] = {method};
	Ttrpc__Request r = TTRPC__REQUEST__INIT;

	r.service = (char *)(uintptr_t)SERVICE;
	r.method = name;
	r.payload.data = (uint8_t *)(uintptr_t)data;
	r.payload.len = n;
	if (type == TTRPC_REQUEST)
		h.length = (uint32_t)ttrpc__request__pack(&r, bytes + TTRPC_HEADER);
	ttrpc_header_write(bytes, &h);
	api_conn_input(c, bytes, TTRPC_HEADER + h.length);
	if (waiting != NULL && n % 2 == 0)
		api_wake(waiting);
}

// Frames of four bytes (method, flags, stream, payload's length) and a payload.
static void feed_frames(struct api_conn *c, const uint8_t *data, size_t size)
{
	uint32_t id = 1;
	size_t n;

	while (size >= 4) {
		uint8_t method = data[0] % 21, flags = data[1] & 7, type = data[1] & 0x80 ? TTRPC_DATA : TTRPC_REQUEST;

		n = data[3] < size - 4 ? data[3] : size - 4;
		frame(c, data[2] == 0 || type == TTRPC_REQUEST ? id : data[2], type, flags, (char)('a' + method),
		      data + 4, n);
		id += 2;
		data += 4 + n;
		size -= 4 + n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct api_conn *c = api_conn_test(on_sent, NULL);
	unsigned i;

	if (size > 0 && data[0] >= 0xf0) // the service of this file needs ROLE_ADMINISTER
		c->client.role = data[0] % ROLES;
	if (size > 1 && data[0] == 0)
		feed_raw(c, data + 1, size - 1);
	else if (size > 1)
		feed_frames(c, data + 1, size - 1);
	for (i = 0; i < 4; i++)
		api_conn_input(c, NULL, 0);
	api_conn_close(c);
	check(streams_open == 0 && api_conn_count() == 0);
	waiting = NULL;
	return 0;
}
