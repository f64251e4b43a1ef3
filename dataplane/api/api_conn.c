// SPDX-License-Identifier: Apache-2.0
// One connection: frames in, turns of work, back-pressure.
//
// A turn handles some requests and some stream items, then returns to the loop and schedules the next one with a zero
// timer, so that other connections and events are served in between. Nothing is read or produced while API_BUFFER bytes
// wait for the client.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/api_private.h"
#include "base/log.h"

#define READ_AHEAD (64 * 1024) // input kept besides the message that is being received
#define IO_CHUNK (64 * 1024)   // bytes of one read or write
#define HOLD_QUICK 100         // turns in which a held answer is looked at, before it is each millisecond

static LIST_HEAD(, api_conn) conns = LIST_HEAD_INITIALIZER(conns);
static unsigned n_conns;

unsigned api_conn_count(void)
{
	return n_conns;
}

uint64_t api_turn_end(void)
{
	uint64_t share = API_ROUND_NS / (n_conns > 0 ? n_conns : 1);

	share = share < API_TURN_LEAST_NS ? API_TURN_LEAST_NS : share;
	return api_now_ns() + (share > API_TURN_NS ? API_TURN_NS : share);
}

bool api_conn_full(const struct api_conn *c)
{
	return evbuffer_get_length(c->out) >= API_BUFFER;
}

void api_conn_schedule(struct api_conn *c)
{
	static const struct timeval now, soon = {.tv_usec = 1000};
	bool held = c->hold.done != NULL && ++c->hold.turns > HOLD_QUICK && TAILQ_EMPTY(&c->ready);

	if (c->turn != NULL && !evtimer_pending(c->turn, NULL))
		evtimer_add(c->turn, held ? &soon : &now);
}

void api_conn_hold(struct api_conn *c, const struct api_hold *h)
{
	if (h->done == NULL || h->done(h->change))
		return;
	if (c->held == NULL)
		c->held = evbuffer_new();
	if (c->held != NULL) // no memory: answered at once
		c->hold = *h;
}

struct evbuffer *api_conn_answers(struct api_conn *c)
{
	return c->hold.done != NULL ? c->held : c->out;
}

// Sends the answer when it need not be held any more.
static bool conn_is_held(struct api_conn *c)
{
	if (c->hold.done == NULL)
		return false;
	if (!c->hold.done(c->hold.change) && api_now_ns() < c->hold.until_ns)
		return true;
	c->hold.done = NULL;
	evbuffer_add_buffer(c->out, c->held);
	return false;
}

static void frame_refuse(struct api_conn *c, uint32_t id, int code, const char *why)
{
	struct api_stream *s = api_stream_find(c, id);
	struct error err;

	if (s != NULL) // the answer ends the stream for the client
		api_stream_close(s);
	error_set(&err, code, NULL, NULL, NULL, "%s", why);
	ttrpc_send_error(c->out, id, &err);
}

static void read_request(struct api_conn *c, const struct ttrpc_header *h, const uint8_t *data)
{
	if (h->stream <= c->last_id) {
		frame_refuse(c, h->stream, EINVAL, "the stream id was used before");
		return;
	}
	c->last_id = h->stream;
	api_request(c, h, data);
}

// No method accepts a stream, so the only useful frame of a client is "remote closed", which cancels the answer.
static void read_data(struct api_conn *c, const struct ttrpc_header *h)
{
	bool close = (h->flags & TTRPC_REMOTE_CLOSED) != 0 && h->length == 0;

	if (close && api_stream_find(c, h->stream) != NULL)
		frame_refuse(c, h->stream, ECANCELED, "cancelled by the client");
	else if (!close)
		frame_refuse(c, h->stream, EINVAL, "methods take one request, in the message that opens the stream");
	// else: the client closed a stream that the server had just ended
}

static int api_conn_read_frame(struct api_conn *c, const struct ttrpc_header *h, const uint8_t *data)
{
	if (h->type == 0 || h->type == TTRPC_RESPONSE)
		return -EPROTO; // never sent by a client
	if (h->type > TTRPC_DATA)
		return 0; // from a later version: ignored, as other servers do
	if (h->stream % 2 == 0)
		frame_refuse(c, h->stream, EINVAL, "stream ids of a client are odd");
	else if (h->type == TTRPC_REQUEST)
		read_request(c, h, data);
	else
		read_data(c, h);
	return 0;
}

static void api_conn_discard(struct api_conn *c)
{
	size_t n = evbuffer_get_length(c->in);

	if (n > c->discard)
		n = c->discard;
	evbuffer_drain(c->in, n);
	c->discard -= (uint32_t)n;
}

static bool api_conn_peek(struct api_conn *c, struct ttrpc_header *h)
{
	uint8_t bytes[TTRPC_HEADER];

	if (evbuffer_copyout(c->in, bytes, sizeof(bytes)) < (ev_ssize_t)sizeof(bytes))
		return false;
	*h = ttrpc_header_read(bytes);
	return true;
}

// Returns 1 after a frame, 0 when the input holds no complete one, -EPROTO when the input is not ttrpc.
static int read_one(struct api_conn *c)
{
	struct ttrpc_header h;
	const uint8_t *p;
	char why[64];
	int ret;

	api_conn_discard(c);
	if (c->discard > 0 || !api_conn_peek(c, &h))
		return 0;
	if (h.length >= TTRPC_GARBAGE)
		return -EPROTO;
	if (h.length > API_MAX_MESSAGE) {
		api_limit_count(LIMIT_LONG_MESSAGE);
		c->frames++;
		snprintf(why, sizeof(why), "the message is longer than %d MiB", API_MAX_MESSAGE >> 20);
		frame_refuse(c, h.stream, EMSGSIZE, why);
		evbuffer_drain(c->in, TTRPC_HEADER);
		c->discard = h.length;
		return 1;
	}
	if (evbuffer_get_length(c->in) < TTRPC_HEADER + h.length)
		return 0;
	p = evbuffer_pullup(c->in, TTRPC_HEADER + (ev_ssize_t)h.length);
	if (p == NULL)
		return -ENOMEM;
	ret = api_conn_read_frame(c, &h, p + TTRPC_HEADER);
	evbuffer_drain(c->in, TTRPC_HEADER + h.length);
	c->frames++;
	return ret < 0 ? ret : 1;
}

// Returns 1 when there may be more to read, 0 when more input has to come first.
static int read_some(struct api_conn *c)
{
	uint64_t deadline = api_turn_end();
	unsigned i;
	int ret = 1;

	for (i = 0; i < API_TURN_REQUESTS && ret == 1 && !api_conn_full(c) && !conn_is_held(c); i++) {
		ret = read_one(c);
		if (api_now_ns() > deadline)
			break;
	}
	return ret;
}

// Buffers little more than the current message, and wakes up only when it is complete.
static void set_watermark(struct api_conn *c)
{
	struct ttrpc_header h;
	size_t need = TTRPC_HEADER;

	if (c->bev == NULL)
		return;
	if (c->discard > 0)
		need = 1;
	else if (api_conn_peek(c, &h) && h.length <= API_MAX_MESSAGE)
		need += h.length;
	bufferevent_setwatermark(c->bev, EV_READ, need, need > READ_AHEAD ? need : READ_AHEAD);
}

// Nothing is read from a client that must read first. While the input is at its high watermark, libevent would call
// on_read() in each pass of the loop.
static void conn_pause(struct api_conn *c, bool pause)
{
	c->paused = pause;
	if (pause)
		bufferevent_disable(c->bev, EV_READ);
	else
		bufferevent_enable(c->bev, EV_READ);
}

static int conn_turn(struct api_conn *c)
{
	int more = read_some(c);

	if (more < 0)
		return more;
	api_stream_produce(c);
	set_watermark(c);
	if (c->bev != NULL && api_conn_full(c))
		conn_pause(c, true);
	if (!api_conn_full(c) && (more || !TAILQ_EMPTY(&c->ready)))
		api_conn_schedule(c); // when full, on_write() schedules
	return 0;
}

static void turn_or_close(struct api_conn *c)
{
	int ret = conn_turn(c);

	if (ret < 0) {
		api_limit_count(LIMIT_NOT_TTRPC);
		LOG(DEBUG, "api: a client sent something that is not ttrpc (%d): disconnected", ret);
		api_conn_close(c);
	}
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct api_conn *c = arg;

	if (!evtimer_pending(c->turn, NULL)) // else a turn is scheduled
		turn_or_close(c);
}

// The client has read, so that paused work can go on.
static void on_write(struct bufferevent *bev, void *arg)
{
	struct api_conn *c = arg;

	if (c->paused)
		conn_pause(c, false);
	if (c->hold.done != NULL || !TAILQ_EMPTY(&c->ready) || evbuffer_get_length(c->in) >= TTRPC_HEADER)
		api_conn_schedule(c);
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	turn_or_close(arg);
}

static void api_conn_on_event(struct bufferevent *bev, short what, void *arg)
{
	struct api_conn *c = arg;

	if (what & BEV_EVENT_TIMEOUT) {
		api_limit_count(LIMIT_SLOW_READER);
		LOG(WARNING, "api: a client has not read for %u s: disconnected, %zu bytes unread",
		    api_limits.stall_ms / 1000, evbuffer_get_length(c->out));
	}
	api_conn_close(c);
}

static struct api_conn *conn_new(const struct api_client *client)
{
	struct api_user *user = user_get(client->uid);
	struct api_conn *c = user ? calloc(1, sizeof(*c)) : NULL;

	if (c == NULL) {
		if (user)
			user_put(user);
		return NULL;
	}
	c->client = *client;
	c->user = user;
	c->idle_ns = api_now_ns();
	TAILQ_INIT(&c->ready);
	TAILQ_INIT(&c->waiting);
	LIST_INSERT_HEAD(&conns, c, next);
	n_conns++;
	return c;
}

static void conn_listen(struct api_conn *c)
{
	struct timeval stall = {.tv_sec = api_limits.stall_ms / 1000, .tv_usec = api_limits.stall_ms % 1000 * 1000};

	c->in = bufferevent_get_input(c->bev);
	c->out = bufferevent_get_output(c->bev);
	bufferevent_setcb(c->bev, on_read, on_write, api_conn_on_event, c);
	bufferevent_set_timeouts(c->bev, NULL, &stall);
	bufferevent_setwatermark(c->bev, EV_WRITE, API_BUFFER / 2, 0);
	bufferevent_set_max_single_read(c->bev, IO_CHUNK);
	bufferevent_set_max_single_write(c->bev, IO_CHUNK);
	set_watermark(c);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}

struct api_conn *api_conn_accept(struct event_base *base, evutil_socket_t fd, const struct api_client *client)
{
	struct api_conn *c = conn_new(client);

	if (c == NULL) {
		evutil_closesocket(fd);
		return NULL;
	}
	c->bev = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (c->bev == NULL)
		evutil_closesocket(fd);
	c->turn = evtimer_new(base, on_turn, c);
	if (c->bev == NULL || c->turn == NULL) {
		api_conn_close(c);
		return NULL;
	}
	conn_listen(c);
	return c;
}

struct api_conn *api_conn_test(void (*write)(void *arg, const void *data, size_t n), void *arg)
{
	const struct api_client client = {.pid = getpid(), .role = ROLE_ADMINISTER};
	struct api_conn *c = conn_new(&client);

	if (c == NULL)
		return NULL;
	c->in = evbuffer_new();
	c->out = evbuffer_new();
	c->write = write;
	c->write_arg = arg;
	if (c->in == NULL || c->out == NULL) {
		api_conn_close(c);
		return NULL;
	}
	return c;
}

void api_conn_replay(struct api_conn *c)
{
	c->replay = true;
}

// Runs one turn, as the loop would. n = 0 runs a turn without new input.
int api_conn_input(struct api_conn *c, const void *data, size_t n)
{
	size_t length;
	int ret;

	if (evbuffer_add(c->in, data, n) < 0)
		return -ENOMEM;
	ret = conn_turn(c);
	length = evbuffer_get_length(c->out);
	if (length > 0) {
		c->write(c->write_arg, evbuffer_pullup(c->out, -1), length);
		evbuffer_drain(c->out, length);
	}
	return ret;
}

static void close_streams(struct api_streams *list)
{
	struct api_stream *s;

	while ((s = TAILQ_FIRST(list)) != NULL)
		api_stream_close(s);
}

void api_conn_close(struct api_conn *c)
{
	close_streams(&c->ready);
	close_streams(&c->waiting);
	LIST_REMOVE(c, next);
	n_conns--;
	user_put(c->user);
	if (c->turn != NULL)
		event_free(c->turn);
	if (c->held != NULL)
		evbuffer_free(c->held);
	if (c->bev != NULL) {
		bufferevent_free(c->bev);
	} else if (c->write != NULL) { // of a test
		if (c->in != NULL)
			evbuffer_free(c->in);
		if (c->out != NULL)
			evbuffer_free(c->out);
	}
	free(c);
}

// Whether the client has yet to send the rest of a message, or its first one.
static bool conn_is_owed(const struct api_conn *c)
{
	return (c->frames == 0 || c->discard > 0 || evbuffer_get_length(c->in) > 0) && !c->paused &&
	       (c->turn == NULL || !evtimer_pending(c->turn, NULL));
}

void api_conn_sweep(void)
{
	uint64_t now = api_now_ns();
	struct api_conn *c, *next;

	for (c = LIST_FIRST(&conns); c; c = next) {
		next = LIST_NEXT(c, next);
		if (!conn_is_owed(c) || c->frames != c->swept) {
			c->swept = c->frames;
			c->idle_ns = now;
		} else if (now - c->idle_ns > api_limits.message_ms * 1000000ull) {
			api_limit_count(LIMIT_HALF_MESSAGE);
			LOG(WARNING, "api: process %d of uid %u has sent no whole message for %u s: disconnected",
			    (int)c->client.pid, (unsigned)c->client.uid, api_limits.message_ms / 1000);
			api_conn_close(c);
		}
	}
	users_tidy();
}

void api_conn_close_all(void)
{
	struct api_conn *c;

	while ((c = LIST_FIRST(&conns)) != NULL)
		api_conn_close(c);
}
