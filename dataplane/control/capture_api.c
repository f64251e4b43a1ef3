// SPDX-License-Identifier: Apache-2.0
// API of captures (api/capture.proto, Packets).
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <rte_cycles.h>

#include "api/api.h"
#include "capture.pb-c.h"
#include "control/streams.h"
#include "control/trace_api.h"
#include "graph/capture.h"
#include "graph/drop.h"
#include "port/registry.h"

struct stream {
	struct capture c;
	struct api_call *call;
	bool waiting;
	uint64_t sent;
	uint64_t epoch_ns, epoch_tsc; // one moment by both clocks
	struct stream *next;
};

static struct stream *streams;

void capture_streams_poll(void)
{
	static unsigned ms;
	struct stream *s;

	if (streams && ++ms % 10 == 0)
		capture_refill(10);
	for (s = streams; s; s = s->next) {
		if (s->waiting && rte_ring_count(s->c.ring) > 0) {
			s->waiting = false;
			api_wake(s->call);
		}
	}
}

static uint64_t capture_api_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void capture_api_decode_points(const Corelane__V1__CaptureRequest *in, struct capture *c)
{
	size_t i;

	c->points = in->n_points ? 0 : 1u << CAPTURE_RX | 1u << CAPTURE_TX;
	for (i = 0; i < in->n_points; i++)
		c->points |= 1u << in->points[i];
}

static int capture_api_decode(const Corelane__V1__CaptureRequest *in, struct capture *c, struct error *err)
{
	const struct drop_reason *r;
	struct port *p;

	capture_api_decode_points(in, c);
	if (*in->port) {
		p = port_find(in->port);
		if (p == NULL)
			return error_set(err, ENOENT, "port", in->port, "the name of a port that exists",
					 "there is no such port");
		c->port = p->id;
	}
	if (*in->reason) {
		r = drop_reason_find(in->reason);
		if (r == NULL)
			return error_set(err, ENOENT, "reason", in->reason, "a reason of `corelane drops --all`",
					 "there is no such drop reason");
		c->reason = r->id;
	}
	c->snaplen = in->snaplen ? in->snaplen : LIMIT_CAPTURE_REQUEST_SNAPLEN_DEFAULT;
	c->rate = in->packets_per_second ? in->packets_per_second : LIMIT_CAPTURE_REQUEST_PACKETS_PER_SECOND_DEFAULT;
	return filter_compile(in->filter, "filter", &c->filter, err);
}

static void capture_api_stream_free(struct capture *c)
{
	struct stream *s = container_of(c, struct stream, c);

	pcap_freecode(&s->c.filter);
	free(s);
}

static struct stream *capture_api_begin(struct api_call *call, const Corelane__V1__CaptureRequest *in,
					struct error *err)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a capture");
		return NULL;
	}
	s->call = call;
	s->c.gone = capture_api_stream_free;
	s->epoch_ns = capture_api_now_ns();
	s->epoch_tsc = rte_rdtsc();
	if (capture_api_decode(in, &s->c, err) < 0 || capture_start(&s->c, err) < 0) {
		capture_api_stream_free(&s->c);
		return NULL;
	}
	s->next = streams;
	streams = s;
	return s;
}

static void capture_api_encode(struct api_call *call, const struct stream *s, const struct captured *r,
			       Corelane__V1__CapturedPacket *out)
{
	const struct port *p = port_get(r->port);

	out->time_ns =
		s->epoch_ns + (uint64_t)((double)(int64_t)(r->tsc - s->epoch_tsc) * 1e9 / (double)rte_get_tsc_hz());
	out->point = (Corelane__V1__CapturePoint)r->point;
	out->port = api_strdup(call, p ? p->cfg.name : "");
	out->length = r->length;
	out->data.data = api_alloc(call, r->kept + 1);
	out->data.len = r->kept;
	memcpy(out->data.data, r + 1, r->kept);
	out->reason = api_strdup(call, r->point == CAPTURE_DROP ? drop_reason_get(r->reason)->name : "");
	out->worker = r->worker;
	out->missed = s->c.missed;
	out->segment_size = r->segment_size;
	out->checksum_unfinished = r->unfinished;
}

static int capture_api_packets(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__CaptureRequest *in = req;
	struct stream **s = cursor;
	struct rte_mbuf *m;

	if (*s == NULL) {
		*s = capture_api_begin(call, in, err);
		if (*s == NULL)
			return -err->code;
	}
	if (in->count && (*s)->sent == in->count)
		return 0;
	if (rte_ring_sc_dequeue((*s)->c.ring, (void **)&m) < 0) {
		(*s)->waiting = true;
		return -EAGAIN;
	}
	capture_api_encode(call, *s, rte_pktmbuf_mtod(m, struct captured *), item);
	rte_pktmbuf_free(m);
	(*s)->sent++;
	return 1;
}

static void capture_api_done(void *cursor)
{
	struct stream *s = *(struct stream **)cursor, **p = &streams;

	if (s == NULL)
		return;
	while (*p != s)
		p = &(*p)->next;
	*p = s->next;
	capture_stop(&s->c);
}

static const struct api_method methods[] = {
	{"corelane.v1.Capture", "Packets", &corelane__v1__capture_request__descriptor,
	 &corelane__v1__captured_packet__descriptor, .next = capture_api_packets, .done = capture_api_done,
	 .cursor_size = sizeof(struct stream *)},
	{"corelane.v1.Capture", "Trace", &corelane__v1__trace_request__descriptor,
	 &corelane__v1__trace_step__descriptor, .next = trace_next, .done = trace_done, .cursor_size = sizeof(void *)},
};
API_METHODS(methods)

void streams_poll(void)
{
	capture_streams_poll();
	trace_streams_poll();
}
