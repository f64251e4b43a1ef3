// SPDX-License-Identifier: Apache-2.0
// Private to the API server: api.c finds and calls methods, api_conn.c reads frames and schedules turns, api_stream.c
// produces streams, api_server.c accepts connections. All run on the master thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "api/api.h"
#include "api/arena.h"
#include "api/limit.h"
#include "api/ttrpc.h"
#include "api/user.h"
#include "base/turn.h"

#define API_STREAMS 128                 // open streams of one connection
#define API_REQUEST_MEMORY (64u << 20)  // of an unpacked request, while it is answered
#define API_STREAM_MEMORY (256u << 10)  // of a stream's request, kept as long as the stream
#define API_TURN_REQUESTS 64            // requests in one turn of a connection, before the loop serves others
#define API_TURN_ITEMS 256              // stream items in one turn
#define API_TURN_NS (2 * 1000 * 1000)   // longest time for either of them in one turn, and, with many connections,
#define API_ROUND_NS (20 * 1000 * 1000) // for either of them in one turn of all connections
#define API_TURN_LEAST_NS (20 * 1000)

struct api_entry { // a registered method
	const struct api_method *method;
	enum role role;        // what a client needs
	struct turn_work work; // the time that the master spent with it
};

struct api_stream;
TAILQ_HEAD(api_streams, api_stream);

struct api_hold {                      // of an answer
	bool (*done)(uint64_t change); // NULL: none is held
	uint64_t change, until_ns;
	unsigned turns;
};

struct api_call {
	struct arena memory;
	struct api_hold hold;
	struct api_client *client;
	struct api_stream *stream; // NULL: unary
};

struct api_stream {
	TAILQ_ENTRY(api_stream) next;
	struct api_conn *conn;
	struct api_entry *entry;
	uint32_t id;
	bool waiting;        // on conn->waiting, else on conn->ready
	struct arena memory; // of the request
	ProtobufCMessage *req;
	struct api_call call; // of the item
	ProtobufCMessage *item;
	void *cursor;
};

struct api_conn {
	LIST_ENTRY(api_conn) next;
	struct api_client client;
	struct api_user *user;
	struct evbuffer *in, *out; // buffers of bev; in tests the connection's own
	struct bufferevent *bev;   // NULL in tests
	struct event *turn;        // a zero timer: the next turn, after the loop has polled all descriptors
	struct api_hold hold;
	struct evbuffer *held; // the answer; NULL: there was none yet
	struct api_streams ready, waiting;
	unsigned streams;
	uint32_t last_id;        // ids must grow
	uint64_t frames;         // received
	uint64_t swept, idle_ns; // frames at the last sweep that saw progress, and when that was
	uint32_t discard;        // bytes still to skip of a message that is too long
	bool paused;             // nothing is read until the client has read
	bool replay;             // repeats what was accepted before
	void (*write)(void *arg, const void *data, size_t n); // tests
	void *write_arg;
};

// api.c
struct api_entry *api_find(const char *service, const char *name, struct error *err);
ProtobufCMessage *api_unpack(const ProtobufCMessageDescriptor *type, struct arena *a, size_t limit, const uint8_t *data,
			     size_t n,
			     struct error *err); // NULL: err says why
void api_request(struct api_conn *c, const struct ttrpc_header *h, const uint8_t *data);
// Tells listeners of a change, before its answer.
void api_accepted(const struct api_conn *c, const struct api_entry *e, const ProtobufCMessage *req,
		  const ProtobufCMessage *resp);
void api_error_complete(struct error *err, int ret); // adds a message when a handler gave none

// api_conn.c
// Owns fd, also when it fails.
struct api_conn *api_conn_accept(struct event_base *base, evutil_socket_t fd, const struct api_client *client);
void api_conn_schedule(struct api_conn *c);
void api_conn_hold(struct api_conn *c, const struct api_hold *h);
struct evbuffer *api_conn_answers(struct api_conn *c); // where the answer of a unary request goes
bool api_conn_full(const struct api_conn *c);          // API_BUFFER bytes wait for the client
uint64_t api_turn_end(void); // of a turn that begins now: the time when the others have theirs
void api_conn_sweep(void);   // disconnects clients that do not complete a message
void api_conn_close_all(void);

// api_stream.c
int api_stream_open(struct api_conn *c, uint32_t id, struct api_entry *e, const uint8_t *data, size_t n,
		    struct error *err);
struct api_stream *api_stream_find(struct api_conn *c, uint32_t id);
void api_stream_produce(struct api_conn *c);
void api_stream_close(struct api_stream *s); // sends nothing to the client
uint64_t api_now_ns(void);
