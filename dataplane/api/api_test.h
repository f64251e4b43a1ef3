// SPDX-License-Identifier: Apache-2.0
// Tests of the API server: methods with known answers, and a connection whose frames can be inspected.
#pragma once

#include "api/api_private.h"
#include "api/ttrpc.pb-c.h"
#include "route.pb-c.h"

#define TEST_SERVICE "corelane.v1.Routes" // Add is refused, Lookup answers, List streams; Silent, Huge, Set

extern unsigned test_list_items;      // items of List; with VRF "wait", "fail" or "huge" it does that
extern unsigned test_list_given;      // items of all streams so far
extern int test_streams_open;         // streams that have produced and are not done
extern struct api_call *test_waiting; // the last call that returned -EAGAIN
extern unsigned test_hold_ms;         // for which Lookup with VRF "hold" holds its answer, until test_done
extern unsigned test_held;            // how often it was asked whether it still does
extern bool test_done;

struct test_frame {
	struct ttrpc_header h;
	const uint8_t *data;
};

struct test_conn {
	struct api_conn *conn;
	uint8_t *sent; // what the server has sent
	size_t n, at;
	struct test_frame frame;
};

void test_conn_open(struct test_conn *t);
void test_conn_close(struct test_conn *t);
int test_conn_frame(struct test_conn *t, uint32_t id, uint8_t type, uint8_t flags, const void *data, size_t n);
int test_conn_request(struct test_conn *t, uint32_t id, uint8_t flags, const char *service, const char *method,
		      const ProtobufCMessage *req);
struct test_frame *test_conn_next(struct test_conn *t); // valid until the next one; NULL: nothing more was sent
struct test_frame *test_conn_wait(struct test_conn *t); // the same, with as many turns as it takes
void test_conn_drop(struct test_conn *t);               // discards what was sent so far

// A whole frame; returns its length.
size_t test_pack_request(uint8_t *out, uint32_t id, uint8_t flags, const char *service, const char *method,
			 const ProtobufCMessage *req);

// One connection for tests of methods, which ask one thing after the other. Setup and teardown are cmocka's.
int test_ask_setup(void **state);
int test_ask_teardown(void **state);
Ttrpc__Response *test_ask(const char *service, const char *method, const ProtobufCMessage *req); // the caller frees it
// The request is refused, with an error whose text contains `message`.
void test_ask_refused(const char *service, const char *method, const ProtobufCMessage *req, const char *message);
// The request is done; returns the answer, which is of type `answer`, or NULL when `answer` is NULL.
void *test_ask_done(const char *service, const char *method, const ProtobufCMessage *req,
		    const ProtobufCMessageDescriptor *answer);
// Begins a stream; its items come by test_conn_wait().
struct test_conn *test_ask_stream(const char *service, const char *method, const ProtobufCMessage *req);
