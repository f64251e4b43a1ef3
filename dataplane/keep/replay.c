// SPDX-License-Identifier: Apache-2.0
// Repeats changes as requests of a client of this process: no other code decodes them.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/api.h"
#include "api/ttrpc.h"
#include "api/ttrpc.pb-c.h"
#include "base/log.h"
#include "keep/keep_private.h"
#include "keep/wire.h"
#include "system.pb-c.h"

#define BETWEEN 64   // requests, before the loop's work is done
#define LONGEST_S 30 // for one request that works in shares
#define LOGGED_REFUSALS 16

// Places of records that are tried later: what they name may be made meanwhile.
struct waiting {
	size_t *at;
	size_t n, room;
};

struct replay {
	struct api_conn *conn;
	uint32_t stream;
	char owner[64]; // of the requests that come next; empty: none was named yet
	bool answered;
	int code; // of the answer: 0, or a gRPC code
	char text[KEEP_WHY];
	void (*between)(void);
	struct waiting waiting;
	struct replay_result result;
};

static void replay_on_answer(void *arg, const void *data, size_t n)
{
	struct replay *r = arg;
	Ttrpc__Response *a;

	if (n < TTRPC_HEADER)
		return;
	a = ttrpc__response__unpack(NULL, n - TTRPC_HEADER, (const uint8_t *)data + TTRPC_HEADER);
	r->answered = true;
	r->code = a && a->status ? a->status->code : 0;
	if (r->code)
		snprintf(r->text, sizeof(r->text), "%s", a->status->message);
	if (a)
		ttrpc__response__free_unpacked(a, NULL);
}

static double replay_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int replay_send(struct replay *r, const void *frame, size_t n)
{
	double end = replay_seconds() + LONGEST_S;
	int ret;

	r->answered = false;
	r->code = 0;
	ret = api_conn_input(r->conn, frame, n);
	while (ret == 0 && !r->answered && replay_seconds() < end) {
		r->between();
		ret = api_conn_input(r->conn, "", 0);
	}
	if (ret == 0 && r->answered)
		return r->code;
	snprintf(r->text, sizeof(r->text), "there was no answer");
	return ret < 0 ? ret : -ETIMEDOUT;
}

// Returns 0 if the request was accepted.
static int replay_call(struct replay *r, const char *service, const char *method, ProtobufCBinaryData request)
{
	Ttrpc__Request call = TTRPC__REQUEST__INIT;
	struct ttrpc_header h;
	uint8_t *frame;
	int ret;

	call.service = (char *)(uintptr_t)service;
	call.method = (char *)(uintptr_t)method;
	call.payload = request;
	r->stream += r->stream ? 2 : 1;
	h = (struct ttrpc_header){
		.length = (uint32_t)ttrpc__request__get_packed_size(&call), .stream = r->stream, .type = TTRPC_REQUEST};
	frame = malloc(TTRPC_HEADER + h.length);
	if (frame == NULL)
		return -ENOMEM;
	ttrpc_header_write(frame, &h);
	ttrpc__request__pack(&call, frame + TTRPC_HEADER);
	ret = replay_send(r, frame, TTRPC_HEADER + h.length);
	free(frame);
	return ret;
}

static int replay_become(struct replay *r, const char *owner)
{
	Corelane__V1__HelloRequest hello = CORELANE__V1__HELLO_REQUEST__INIT;
	uint8_t packed[128];
	int ret;

	if (strcmp(owner, r->owner) == 0)
		return 0;
	if (strlen(owner) >= sizeof(r->owner))
		return -EINVAL;
	hello.major = API_MAJOR;
	hello.minor = API_MINOR;
	hello.owner = (char *)(uintptr_t)owner;
	ret = replay_call(r, "corelane.v1.System", "Hello",
			  (ProtobufCBinaryData){corelane__v1__hello_request__pack(&hello, packed), packed});
	if (ret == 0)
		snprintf(r->owner, sizeof(r->owner), "%s", owner);
	return ret;
}

static int replay_one(struct replay *r, const Keep__Change *c)
{
	int ret = replay_become(r, c->owner);

	return ret == 0 ? replay_call(r, c->service, c->method, c->request) : ret;
}

static void replay_refused(struct replay *r, const Keep__Change *c)
{
	struct replay_result *out = &r->result;

	if (out->refused++ == 0)
		snprintf(out->first, sizeof(out->first), "%.40s.%.20s: %.90s",
			 strrchr(c->service, '.') ? strrchr(c->service, '.') + 1 : c->service, c->method, r->text);
	if (out->refused <= LOGGED_REFUSALS)
		LOG(WARNING, "keep: a change of the kept state is refused now: %s.%s: %s", c->service, c->method,
		    r->text);
}

static size_t count_objects(struct slice request)
{
	struct wire_field f;
	size_t n = 0;

	while (wire_next(&request, &f) > 0)
		n += f.number == 1;
	return n;
}

// Copies `take` objects of a request from the one at `skip`, and its other fields.
static int take_objects(struct bytes *to, struct slice request, size_t skip, size_t take)
{
	struct wire_field f;
	size_t i = 0;

	while (wire_next(&request, &f) > 0) {
		bool copy = f.number != 1 || (i >= skip && i < skip + take);

		i += f.number == 1;
		if (copy && bytes_add(to, f.whole) < 0)
			return -ENOMEM;
	}
	return 0;
}

// Halves a request with many objects until those that are refused are alone: the others are made.
static void replay_parts(struct replay *r, const Keep__Change *c)
{
	struct slice all = {c->request.data, c->request.len};
	size_t n = count_objects(all), half = n / 2;
	int ret = replay_one(r, c), i;

	r->result.restored += ret == 0;
	if (ret != 0 && n <= 1)
		replay_refused(r, c);
	for (i = 0; i < 2 && ret != 0 && n > 1; i++) {
		Keep__Change part = *c;
		struct bytes some = {};

		if (take_objects(&some, all, i ? half : 0, i ? n - half : half) == 0) {
			part.request = (ProtobufCBinaryData){some.n, some.data};
			replay_parts(r, &part);
		} else {
			replay_refused(r, c);
		}
		free(some.data);
	}
}

static int waiting_add(struct waiting *w, size_t at)
{
	size_t *more;

	if (w->n == w->room) {
		more = realloc(w->at, (2 * w->room + 64) * sizeof(*more));
		if (more == NULL)
			return -ENOMEM;
		w->at = more;
		w->room = 2 * w->room + 64;
	}
	w->at[w->n++] = at;
	return 0;
}

static bool is_port(const Keep__Change *c)
{
	return strcmp(c->service, "corelane.v1.Ports") == 0;
}

void replay_all(struct replay *r, const struct keep_image *image, size_t at, bool ports)
{
	size_t here = at;
	uint64_t n = 0;
	Keep__Change *c;

	for (; (c = keep_file_next(image, &at)) != NULL; here = at) {
		if ((ports || !is_port(c)) && replay_one(r, c) == 0)
			r->result.restored++;
		else if (waiting_add(&r->waiting, here) < 0)
			replay_refused(r, c);
		keep__change__free_unpacked(c, NULL);
		if (++n % BETWEEN == 0)
			r->between();
	}
}

// Tries those that wait once more. Returns whether some were accepted. last: their requests are taken apart, and what
// is refused then is reported.
static bool replay_again(struct replay *r, const struct keep_image *image, bool last)
{
	struct waiting *w = &r->waiting;
	size_t i, n = w->n;
	Keep__Change *c;

	for (w->n = i = 0; i < n; i++) {
		size_t at = w->at[i];

		c = keep_file_next(image, &at);
		if (c == NULL)
			continue;
		if (last)
			replay_parts(r, c);
		else if (replay_one(r, c) == 0)
			r->result.restored++;
		else
			w->at[w->n++] = w->at[i];
		keep__change__free_unpacked(c, NULL);
		if (i % BETWEEN == 0)
			r->between();
	}
	return w->n < n;
}

void replay_waiting(struct replay *r, const struct keep_image *image)
{
	while (r->waiting.n > 0 && replay_again(r, image, false))
		;
	replay_again(r, image, true);
}

struct replay *replay_new(void (*between)(void))
{
	struct replay *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->between = between;
	r->conn = api_conn_test(replay_on_answer, r);
	if (r->conn == NULL) {
		free(r);
		return NULL;
	}
	api_conn_replay(r->conn);
	return r;
}

void replay_free(struct replay *r, struct replay_result *out)
{
	*out = (struct replay_result){};
	if (r == NULL)
		return;
	*out = r->result;
	api_conn_close(r->conn);
	free(r->waiting.at);
	free(r);
}
