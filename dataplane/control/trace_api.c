// SPDX-License-Identifier: Apache-2.0
// API of traces (api/capture.proto, Trace).
#include "control/trace_api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>

#include "base/field_limits.h"
#include "capture.pb-c.h"
#include "control/streams.h"
#include "graph/capture.h"
#include "graph/graph.h"
#include "graph/node.h"
#include "graph/trace.h"
#include "l2/bridge.h"
#include "l3/nexthop.h"
#include "l3/vrf.h"
#include "port/registry.h"
#include "worker/worker.h"

#define QUIET_MS 100 // a trace ends so long after the last step of its last packet

struct stream {
	struct trace t;
	struct api_call *call;
	bool waiting;
	uint64_t started, last, timeout;                   // TSC
	uint64_t first[LIMIT_TRACE_REQUEST_COUNT_MAX + 1]; // TSC of each packet's first step
};

static struct stream *current;

static bool trace_api_over(const struct stream *s)
{
	uint64_t now = rte_rdtsc(), quiet = rte_get_tsc_hz() / 1000 * QUIET_MS;

	if (now - s->started > s->timeout)
		return true;
	return s->t.wanted <= 0 && now - s->last > quiet;
}

void trace_streams_poll(void)
{
	if (current && current->waiting && (rte_ring_count(current->t.ring) > 0 || trace_api_over(current))) {
		current->waiting = false;
		api_wake(current->call);
	}
}

static int trace_api_inject(const Corelane__V1__TraceRequest *in, const struct port *p, struct error *err)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(port_pool(p->numa));
	char text[16];
	void *data;

	snprintf(text, sizeof(text), "%zu", in->packet.len);
	data = m && in->packet.len <= UINT16_MAX ? rte_pktmbuf_append(m, (uint16_t)in->packet.len) : NULL;
	if (data == NULL || in->packet.len < 14) {
		rte_pktmbuf_free(m);
		return error_set(err, EINVAL, "packet", text, "a frame of at least 14 bytes that fits into one buffer",
				 "has an unusable length");
	}
	memcpy(data, in->packet.data, in->packet.len);
	memset(meta(m), 0, sizeof(struct pkt_meta));
	m->port = p->id;
	trace_mark(m, 1);
	if (worker_inject(m, INJECT_INPUT) < 0)
		return error_set(err, EAGAIN, "packet", NULL, NULL, "no worker can receive it now");
	return 0;
}

static int trace_api_check(const Corelane__V1__TraceRequest *in, struct stream *s, struct port **p, struct error *err)
{
	if (*in->port) {
		*p = port_find(in->port);
		if (*p == NULL)
			return error_set(err, ENOENT, "port", in->port, "the name of a port that exists",
					 "there is no such port");
		s->t.port = (*p)->id;
	}
	if (in->packet.len && *p == NULL)
		return error_set(err, EINVAL, "port", "", "the port that receives the packet", "is missing");
	return filter_compile(in->filter, "filter", &s->t.filter, err);
}

static void trace_api_stream_free(struct trace *t)
{
	struct stream *s = container_of(t, struct stream, t);

	pcap_freecode(&s->t.filter);
	free(s);
}

static struct stream *trace_api_begin(struct api_call *call, const Corelane__V1__TraceRequest *in, struct error *err)
{
	struct stream *s = calloc(1, sizeof(*s));
	struct port *p = NULL; // analyzer: core.NullDereference: trace_api_check() sets it for a packet

	if (s == NULL) {
		error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a trace");
		return NULL;
	}
	s->call = call;
	s->t.gone = trace_api_stream_free;
	s->started = s->last = rte_rdtsc();
	s->timeout =
		rte_get_tsc_hz() / 1000 * (in->timeout_ms ? in->timeout_ms : LIMIT_TRACE_REQUEST_TIMEOUT_MS_DEFAULT);
	s->t.wanted = in->packet.len ? 0 : in->count ? (int32_t)in->count : LIMIT_TRACE_REQUEST_COUNT_DEFAULT;
	s->t.only_ours = in->packet.len > 0;
	if (trace_api_check(in, s, &p, err) < 0 || trace_begin(&s->t, err) < 0) {
		trace_api_stream_free(&s->t);
		return NULL;
	}
	current = s;
	if (in->packet.len && trace_api_inject(in, p, err) < 0) {
		trace_done(&s);
		return NULL;
	}
	return s;
}

// Appends to a comma-separated text.
static void trace_api_add(char *buf, size_t size, const char *what)
{
	size_t at = strlen(buf);

	snprintf(buf + at, size - at, "%s%s", at ? ", " : "", what);
}

static const char *kind_name(uint32_t nexthop)
{
	static const char *const names[] = {
		[NH_DISCARD] = "discard", [NH_REJECT] = "reject", [NH_LOCAL] = "local", [NH_PORT] = "port",
		[NH_GLEAN] = "connected", [NH_TUNNEL] = "tunnel", [NH_GROUP] = "group"};
	const struct nexthop_entry *e = nexthop_get(nexthop);

	return e ? names[e->cfg.kind] : "gone";
}

// Describes the node's decision by what it left in the packet's metadata.
static char *trace_api_describe(struct api_call *call, const struct trace_record *r, const char *next)
{
	const struct pkt_meta *md = &r->meta;
	const struct vrf *v = vrf_get(md->vrf);
	const struct port *out = port_get(md->out_port);
	const struct bridge *b = md->bridge == UINT16_MAX ? NULL : bridge_get(md->bridge);
	char buf[256] = "";

	if (strcmp(next, "drop") == 0 || strcmp(next, "icmp_error") == 0) {
		const struct drop_reason *d = drop_reason_get(md->reason);

		return api_printf(call, "%s: %s", d ? d->name : "unknown", d ? d->text : "");
	}
	if (strcmp(r->node, "port_rx") == 0)
		return api_printf(call, "came in by %s",
				  port_get(r->port) ? port_get(r->port)->cfg.name : "the router");
	if (v)
		trace_api_add(buf, sizeof(buf), api_printf(call, "vrf %s", v->name));
	if (b)
		trace_api_add(buf, sizeof(buf), api_printf(call, "bridge %s", b->cfg.name));
	if (md->flags & META_FROM_TUNNEL)
		trace_api_add(buf, sizeof(buf), api_printf(call, "from a tunnel, label or VNI %u", md->arg));
	if (r->nexthop)
		trace_api_add(buf, sizeof(buf),
			      api_printf(call, "next hop %u (%s)", r->nexthop, kind_name(r->nexthop)));
	if (strcmp(next, "port_tx") == 0)
		trace_api_add(buf, sizeof(buf),
			      api_printf(call, "leaves by %s", out ? out->cfg.name : "a port that has gone"));
	return api_strdup(call, buf);
}

static void trace_api_encode(struct api_call *call, struct stream *s, const struct trace_record *r,
			     Corelane__V1__TraceStep *out)
{
	uint64_t *first = &s->first[RTE_MIN(r->packet, (uint32_t)LIMIT_TRACE_REQUEST_COUNT_MAX)];
	const char *next = graph_edge_of(r->node, r->edge);

	if (*first == 0)
		*first = r->tsc;
	out->packet = r->packet;
	out->worker = r->worker;
	out->node = api_strdup(call, r->node);
	out->next = api_strdup(call, next ? next : "-");
	out->detail = trace_api_describe(call, r, out->next);
	out->cycles = r->tsc - *first;
	out->data.len = r->length;
	out->data.data = api_alloc(call, r->length + 1u);
	memcpy(out->data.data, r->data, r->length);
}

int trace_next(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	struct stream **s = cursor;
	struct rte_mbuf *m;

	if (*s == NULL) {
		*s = trace_api_begin(call, req, err);
		if (*s == NULL)
			return -err->code;
	}
	if (rte_ring_sc_dequeue((*s)->t.ring, (void **)&m) < 0) {
		if (trace_api_over(*s))
			return 0;
		(*s)->waiting = true;
		return -EAGAIN;
	}
	(*s)->last = rte_rdtsc();
	trace_api_encode(call, *s, rte_pktmbuf_mtod(m, struct trace_record *), item);
	rte_pktmbuf_free(m);
	return 1;
}

void trace_done(void *cursor)
{
	struct stream *s = *(struct stream **)cursor;

	if (s == NULL)
		return;
	current = NULL;
	trace_end(&s->t);
}
