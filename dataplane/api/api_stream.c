// SPDX-License-Identifier: Apache-2.0
// Streams: a cursor produces one item after the other, as fast as the client reads. Unary calls that work in shares are
// streams of one item, which is sent as their answer.
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "api/api_private.h"

uint64_t api_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void api_stream_free(struct api_stream *s)
{
	arena_free(&s->memory);
	arena_free(&s->call.memory);
	free(s->item);
	free(s->cursor);
	free(s);
}

static struct api_stream *stream_new(struct api_conn *c, uint32_t id, struct api_entry *e)
{
	const struct api_method *m = e->method;
	struct api_stream *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->conn = c;
	s->id = id;
	s->entry = e;
	s->call.stream = s;
	s->call.client = &c->client;
	s->item = calloc(1, m->resp->sizeof_message);
	s->cursor = calloc(1, m->cursor_size ? m->cursor_size : 1);
	if (s->item == NULL || s->cursor == NULL) {
		api_stream_free(s);
		return NULL;
	}
	return s;
}

int api_stream_open(struct api_conn *c, uint32_t id, struct api_entry *e, const uint8_t *data, size_t n,
		    struct error *err)
{
	struct api_stream *s;

	if (c->streams >= API_STREAMS) {
		api_limit_count(LIMIT_STREAMS);
		return error_set(err, ENOSPC, NULL, NULL, NULL, "this connection has %d open streams already",
				 API_STREAMS);
	}
	if (c->user->streams >= api_limits.user_streams) {
		api_limit_count(LIMIT_USER_STREAMS);
		return error_set(err, ENOSPC, NULL, NULL, NULL, "uid %u has %u open streams already",
				 (unsigned)c->user->uid, c->user->streams);
	}
	s = stream_new(c, id, e);
	if (s == NULL)
		return -ENOMEM;
	s->req = api_unpack(e->method->req, &s->memory, API_STREAM_MEMORY, data, n, err);
	if (s->req == NULL) {
		api_stream_free(s);
		return -err->code;
	}
	TAILQ_INSERT_TAIL(&c->ready, s, next);
	c->streams++;
	c->user->streams++;
	if (e->role > ROLE_READ && !c->replay)
		user_called(c->user, &c->client, &e->work, s->req);
	return 0;
}

static struct api_stream *api_stream_method(struct api_streams *list, uint32_t id)
{
	struct api_stream *s;

	TAILQ_FOREACH (s, list, next) {
		if (s->id == id)
			break;
	}
	return s;
}

struct api_stream *api_stream_find(struct api_conn *c, uint32_t id)
{
	struct api_stream *s = api_stream_method(&c->ready, id);

	return s ? s : api_stream_method(&c->waiting, id);
}

void api_stream_close(struct api_stream *s)
{
	struct api_conn *c = s->conn;

	TAILQ_REMOVE(s->waiting ? &c->waiting : &c->ready, s, next);
	c->streams--;
	c->user->streams--;
	if (s->entry->method->done != NULL)
		s->entry->method->done(s->cursor);
	api_stream_free(s);
}

static void stream_move(struct api_stream *s, bool waiting)
{
	struct api_conn *c = s->conn;

	if (s->waiting == waiting)
		return;
	TAILQ_REMOVE(s->waiting ? &c->waiting : &c->ready, s, next);
	TAILQ_INSERT_TAIL(waiting ? &c->waiting : &c->ready, s, next);
	s->waiting = waiting;
}

void api_wake(struct api_call *call)
{
	stream_move(call->stream, false);
	api_conn_schedule(call->stream->conn);
}

int api_again(struct api_call *call)
{
	api_wake(call);
	return -EAGAIN;
}

static void stream_fail(struct api_stream *s, int ret, struct error *err)
{
	api_error_complete(err, ret);
	ttrpc_send_error(s->conn->out, s->id, err);
	api_stream_close(s);
}

static void stream_send(struct api_stream *s, struct error *err)
{
	bool single = s->entry->method->single;
	int ret = single ? ttrpc_send_answer(s->conn->out, s->id, s->item, &s->call.memory)
			 : ttrpc_send_data(s->conn->out, s->id, s->item);

	if (ret == -EMSGSIZE)
		ret = error_set(err, ENOSPC, NULL, NULL, NULL, "an item of the stream is longer than %d bytes",
				API_MAX_MESSAGE);
	arena_reset(&s->call.memory);
	if (ret < 0)
		stream_fail(s, ret, err);
	else if (single)
		api_stream_close(s);
}

// Produces one item of one stream and puts the stream last, so that the next item is another stream's.
static void stream_step(struct api_stream *s)
{
	const struct api_method *m = s->entry->method;
	struct error err = {0};
	int ret;

	stream_move(s, true); // before next(): api_wake() may be called before it returns -EAGAIN
	protobuf_c_message_init(m->resp, s->item);
	turn_begin(&s->entry->work);
	ret = m->next(&s->call, s->req, s->cursor, s->item, &err);
	turn_end();
	if (ret == -EAGAIN) {
		arena_reset(&s->call.memory);
		return;
	}
	stream_move(s, false);
	if (ret > 0) {
		if (m->single)
			api_accepted(s->conn, s->entry, s->req, s->item);
		stream_send(s, &err);
	} else if (ret == 0) {
		ttrpc_send_end(s->conn->out, s->id);
		api_stream_close(s);
	} else {
		stream_fail(s, ret, &err);
	}
}

void api_stream_produce(struct api_conn *c)
{
	uint64_t deadline = api_turn_end();
	unsigned i;

	for (i = 0; i < API_TURN_ITEMS && !api_conn_full(c) && !TAILQ_EMPTY(&c->ready); i++) {
		stream_step(TAILQ_FIRST(&c->ready));
		if (api_now_ns() > deadline)
			break;
	}
}
