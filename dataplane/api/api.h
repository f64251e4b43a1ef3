// SPDX-License-Identifier: Apache-2.0
// The API server: protobuf messages over ttrpc (containerd's protocol) on a Unix socket.
//
// A module registers its methods with API_METHODS. All handlers run on the master thread. Requests of a client are
// answered in order of arrival, except for methods that work in shares. A stream is produced only as fast as its client
// reads: while API_BUFFER bytes wait for a client, its streams pause, and it is disconnected after API_STALL seconds
// without reading.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "api/role.h"
#include "base/error.h"

#define API_MAJOR 1
#define API_MINOR 0
#define API_BUFFER (256 * 1024)
#define API_STALL 60
#define API_MAX_MESSAGE (4 * 1024 * 1024) // ttrpc's own limit

struct event_base;
struct api_call; // one request that is being answered

const struct api_client *api_client(const struct api_call *call); // that has made the call
void api_set_owner(struct api_call *call, uint8_t owner);         // of what its client adds from now on
// Returns 0 if the client may change an object of this owner, else -EPERM with err (base/owner.h).
int api_owns(const struct api_call *call, uint8_t owner, const char *field, const char *value, struct error *err);

// Memory that lives until the answer (for streams: the item) has been encoded. Zeroed; never NULL.
void *api_alloc(struct api_call *call, size_t size);
char *api_strdup(struct api_call *call, const char *s);
char *api_printf(struct api_call *call, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Fills resp (initialised by its descriptor) and returns 0, or fills err and returns -errno.
typedef int (*api_unary_fn)(struct api_call *call, const void *req, void *resp, struct error *err);

// A unary handler that has made its change holds its answer, and the client's next requests, until done(change) or for
// ms milliseconds. done() is called in turns of the connection.
void api_hold(struct api_call *call, bool (*done)(uint64_t change), uint64_t change, unsigned ms);

// Fills the next item and returns 1; 0 = the end; -EAGAIN = nothing now, called again after api_wake(); another
// negative errno with err = failed. The cursor is zeroed memory of cursor_size bytes that lives with the stream.
// Tables may change between two calls: a cursor holds the key of the last item, not a pointer.
typedef int (*api_next_fn)(struct api_call *call, const void *req, void *cursor, void *item, struct error *err);
typedef void (*api_done_fn)(void *cursor); // the stream has ended or its client has gone; may be NULL

struct api_method {
	const char *service; // "corelane.v1.Routes"
	const char *name;    // "Add"
	const ProtobufCMessageDescriptor *req, *resp;
	api_unary_fn unary; // either this
	api_next_fn next;   // or this
	bool single;        // the first item of next() answers a unary call: a long task in shares (api_again())
	api_done_fn done;
	size_t cursor_size;
};

void api_register(const struct api_method *methods, size_t n);

#define API_METHODS(array)                                                  \
	__attribute__((constructor)) static void api_register_methods(void) \
	{                                                                   \
		api_register(array, sizeof(array) / sizeof((array)[0]));    \
	}

// A request that was accepted and that needs the role administer: it has changed the configuration.
struct api_change {
	const char *service, *method; // "corelane.v1.Routes", "Add"
	const char *owner;            // of its client
	const ProtobufCMessage *req, *resp;
};

// Writes the object that a packed request is about; nothing if it is no request of the method.
void api_request_object(const char *service, const char *method, const ProtobufCBinaryData *req, char *buf,
			size_t size);

// The message of a method's requests; NULL: there is no such method.
const ProtobufCMessageDescriptor *api_request_type(const char *service, const char *method);

struct api_listener {
	// Called after each unary request and before its answer: applies the steps of its change together.
	void (*settle)(void);
	void (*accepted)(const struct api_change *change); // before the answer
	struct api_listener *next;
};
void api_listen(struct api_listener *l);

// Resumes the stream of this call. Master thread only; next() of the call must have returned -EAGAIN.
void api_wake(struct api_call *call);
// next() returns this to let others have their turn, and is called again.
int api_again(struct api_call *call);

// Listens on path (mode 0660, and the groups of role_set_group() in an access control list). Refuses when another
// process answers there; removes a stale socket.
int api_server_start(struct event_base *base, const char *path, struct error *err);
void api_server_stop(void);
unsigned api_conn_count(void);

// For tests, for fuzzing and for the replay of changes: feeds the bytes of one connection and collects its output.
struct api_conn *api_conn_test(void (*write)(void *arg, const void *data, size_t n), void *arg);
int api_conn_input(struct api_conn *conn, const void *data, size_t n); // -EPROTO: a client would be disconnected
void api_conn_close(struct api_conn *conn);
// The requests of this connection repeat what was accepted before: neither listeners nor events hear of them.
void api_conn_replay(struct api_conn *conn);
