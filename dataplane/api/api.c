// SPDX-License-Identifier: Apache-2.0
// Methods, the memory of a call, and the answer to one request.
#include "api/api.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_private.h"
#include "api/check.h"
#include "api/ttrpc.pb-c.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/owner.h"

#define METHODS_MAX 256

static struct api_entry entries[METHODS_MAX];
static size_t n_entries;

// The request that is being answered. Handlers do not nest, so there is one at a time, and the next one reuses its
// memory.
static struct api_call unary;
static struct api_listener *listeners;

void api_listen(struct api_listener *l)
{
	LISTEN(listeners, l);
}

// "Routes" of "corelane.v1.Routes"
static const char *api_noun(const struct api_method *m)
{
	const char *dot = strrchr(m->service, '.');

	return dot ? dot + 1 : m->service;
}

// Runs before main(), where no caller could handle an error.
void api_register(const struct api_method *array, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (n_entries == METHODS_MAX || api_find(array[i].service, array[i].name, NULL) != NULL) {
			fprintf(stderr, "api: %s.%s: registered twice, or more than %d methods\n", array[i].service,
				array[i].name, METHODS_MAX);
			abort();
		}
		entries[n_entries++] = (struct api_entry){.method = &array[i],
							  .role = role_of_method(array[i].service, array[i].name),
							  .work = {.noun = api_noun(&array[i]), .name = array[i].name}};
	}
}

struct api_entry *api_find(const char *service, const char *name, struct error *err)
{
	bool known = false;
	size_t i;

	for (i = 0; i < n_entries; i++) {
		if (strcmp(entries[i].method->service, service) != 0)
			continue;
		if (strcmp(entries[i].method->name, name) == 0)
			return &entries[i];
		known = true;
	}
	if (known)
		error_set(err, ENOTSUP, "method", name, NULL, "is not a method of %s", service);
	else
		error_set(err, ENOTSUP, "service", service, NULL, "is not a service of this daemon");
	return NULL;
}

const struct api_client *api_client(const struct api_call *call)
{
	return call->client;
}

void api_set_owner(struct api_call *call, uint8_t owner)
{
	call->client->owner = owner;
}

int api_owns(const struct api_call *call, uint8_t owner, const char *field, const char *value, struct error *err)
{
	return owner_check(owner, call->client->owner, field, value, err);
}

void *api_alloc(struct api_call *call, size_t size)
{
	void *p = arena_alloc(&call->memory, size);

	if (p == NULL) { // as in the rest of the control plane: without a few bytes nothing useful can be done
		LOG(CRIT, "api: out of memory for %zu bytes", size);
		abort();
	}
	return p;
}

char *api_strdup(struct api_call *call, const char *s)
{
	size_t n = strlen(s) + 1;

	return memcpy(api_alloc(call, n), s, n);
}

char *api_printf(struct api_call *call, const char *fmt, ...)
{
	char text[128], *s;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n < 0)
		return api_strdup(call, "");
	s = api_alloc(call, (size_t)n + 1);
	if ((size_t)n < sizeof(text)) // nearly always; formatting twice would cost most of the time of an item
		return memcpy(s, text, (size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf(s, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return s;
}

static void *unpack_alloc(void *arena, size_t size)
{
	return arena_alloc(arena, size);
}

static void unpack_free(void *arena, void *p)
{
	// The arena is freed as a whole. Freeing nothing while unpacking bounds the work too: a message whose fields
	// repeat, so that they are merged and copied over and over, reaches the limit.
}

ProtobufCMessage *api_unpack(const ProtobufCMessageDescriptor *type, struct arena *a, size_t limit, const uint8_t *data,
			     size_t n, struct error *err)
{
	ProtobufCAllocator allocator = {.alloc = unpack_alloc, .free = unpack_free, .allocator_data = a};
	ProtobufCMessage *msg;

	a->limit = a->used + limit;
	a->refused = false;
	msg = protobuf_c_message_unpack(type, &allocator, n, data);
	if (msg == NULL && a->refused)
		error_set(err, ENOSPC, NULL, NULL, NULL, "a request of %zu bytes takes too much memory", n);
	else if (msg == NULL)
		error_set(err, EINVAL, NULL, NULL, NULL, "the request is not a %s", type->name);
	a->limit = 0;
	if (msg == NULL)
		return NULL;
	return api_check(msg, err) < 0 ? NULL : msg;
}

void api_error_complete(struct error *err, int ret)
{
	if (err->code == 0)
		error_set(err, -ret, NULL, NULL, NULL, "%s", strerror(-ret));
	else if (err->message[0] == '\0')
		snprintf(err->message, sizeof(err->message), "%s", strerror(err->code));
}

const ProtobufCMessageDescriptor *api_request_type(const char *service, const char *method)
{
	const struct api_entry *e = api_find(service, method, NULL);

	return e ? e->method->req : NULL;
}

void api_request_object(const char *service, const char *method, const ProtobufCBinaryData *req, char *buf, size_t size)
{
	const struct api_entry *e = api_find(service, method, NULL);
	ProtobufCMessage *msg = e ? protobuf_c_message_unpack(e->method->req, NULL, req->len, req->data) : NULL;

	buf[0] = '\0';
	if (msg == NULL)
		return;
	user_object(msg, buf, size);
	protobuf_c_message_free_unpacked(msg, NULL);
}

void api_accepted(const struct api_conn *c, const struct api_entry *e, const ProtobufCMessage *req,
		  const ProtobufCMessage *resp)
{
	const struct api_change change = {.service = e->method->service,
					  .method = e->method->name,
					  .owner = owner_name(c->client.owner),
					  .req = req,
					  .resp = resp};
	const struct api_listener *l;

	for (l = listeners; l && e->role == ROLE_ADMINISTER && !c->replay; l = l->next)
		if (l->accepted)
			l->accepted(&change);
}

void api_hold(struct api_call *call, bool (*done)(uint64_t change), uint64_t change, unsigned ms)
{
	call->hold = (struct api_hold){.done = done, .change = change, .until_ns = api_now_ns() + ms * 1000000ull};
}

static int answer_unary(struct api_conn *c, uint32_t id, const struct api_entry *e, const ProtobufCBinaryData *data,
			struct error *err)
{
	const struct api_method *m = e->method;
	ProtobufCMessage *req = api_unpack(m->req, &unary.memory, API_REQUEST_MEMORY, data->data, data->len, err);
	const struct api_listener *l;
	ProtobufCMessage *resp;
	int ret;

	if (req == NULL)
		return -err->code;
	resp = api_alloc(&unary, m->resp->sizeof_message);
	protobuf_c_message_init(m->resp, resp);
	unary.hold.done = NULL;
	ret = m->unary(&unary, req, resp, err);
	for (l = listeners; l; l = l->next)
		if (l->settle)
			l->settle();
	if (ret < 0)
		return ret;
	api_accepted(c, e, req, resp);
	if (e->role > ROLE_READ && !c->replay)
		user_called(c->user, &c->client, &e->work, req);
	api_conn_hold(c, &unary.hold);
	ret = ttrpc_send_answer(api_conn_answers(c), id, resp, &unary.memory);
	if (ret == -EMSGSIZE)
		return error_set(err, ENOSPC, NULL, NULL, NULL, "the answer is longer than %d bytes", API_MAX_MESSAGE);
	return ret;
}

static int api_answer(struct api_conn *c, const struct ttrpc_header *h, const uint8_t *data, struct error *err)
{
	struct api_entry *e;
	Ttrpc__Request *req;
	int ret;

	req = (Ttrpc__Request *)api_unpack(&ttrpc__request__descriptor, &unary.memory, API_REQUEST_MEMORY, data,
					   h->length, err);
	if (req == NULL)
		return -err->code;
	e = api_find(req->service, req->method, err);
	if (e == NULL)
		return -err->code;
	if (role_check(&c->client, e->role, e->work.noun, e->work.name, err) < 0) {
		api_limit_count(LIMIT_ROLE);
		user_refused(c->user, &c->client, &e->work);
		return -err->code;
	}
	unary.client = &c->client;
	if (e->method->unary != NULL) {
		turn_begin(&e->work);
		ret = answer_unary(c, h->stream, e, &req->payload, err);
		turn_end();
		return ret;
	}
	if (!e->method->single && (h->flags & (TTRPC_REMOTE_CLOSED | TTRPC_REMOTE_OPEN)) == 0)
		return error_set(err, EINVAL, "method", req->method, NULL,
				 "answers with a stream and was called as unary");
	return api_stream_open(c, h->stream, e, req->payload.data, req->payload.len, err);
}

void api_request(struct api_conn *c, const struct ttrpc_header *h, const uint8_t *data)
{
	struct error err = {0};
	int ret = api_answer(c, h, data, &err);

	if (ret < 0) {
		api_error_complete(&err, ret);
		ttrpc_send_error(c->out, h->stream, &err);
	}
	arena_reset(&unary.memory);
}
