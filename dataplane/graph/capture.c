// SPDX-License-Identifier: Apache-2.0
#include "graph/capture.h"

#include <errno.h>
#include <nss.h>
#include <stdio.h>

#include <rte_cycles.h>

#include "base/offload.h"
#include "base/rcu.h"
#include "graph/graph.h"
#include "graph/meta.h"

bool capture_active;

static struct capture *sessions[CAPTURE_SESSIONS];

static bool capture_matches(const struct capture *c, const struct rte_mbuf *m)
{
	if (c->filter.bf_insns == NULL)
		return true;
	return bpf_filter(c->filter.bf_insns, rte_pktmbuf_mtod(m, const u_char *), m->pkt_len, m->data_len) != 0;
}

// Copies into a buffer of the packet's own pool: the record, then as many bytes as are wanted and fit. NULL when less
// than a sixteenth of the pool is free: whoever watches must not take the last buffers.
static struct rte_mbuf *capture_copy(const struct capture *c, struct rte_mbuf *m, enum capture_point point,
				     uint16_t port)
{
	struct captured *rec;
	struct rte_mbuf *out;
	uint32_t room;

	if (rte_mempool_avail_count(m->pool) < m->pool->size / 16)
		return NULL;
	out = rte_pktmbuf_alloc(m->pool);
	if (out == NULL)
		return NULL;
	rec = rte_pktmbuf_mtod(out, struct captured *);
	room = rte_pktmbuf_tailroom(out) - (uint32_t)sizeof(*rec);
	*rec = (struct captured){.tsc = rte_rdtsc(), .length = m->pkt_len, .point = (uint8_t)point};
	rec->kept = RTE_MIN(m->pkt_len, c->snaplen);
	rec->kept = RTE_MIN(rec->kept, room);
	rec->port = point == CAPTURE_TX ? port : m->port;
	rec->reason = point == CAPTURE_DROP ? meta(m)->reason : 0;
	rec->worker = graph_worker;
	rec->segment_size = offload_is_large(m) ? m->tso_segsz : 0;
	rec->unfinished = offload_is_unfinished(m);
	if (rte_pktmbuf_read(m, 0, rec->kept, rec + 1) != (void *)(rec + 1))
		memcpy(rec + 1, rte_pktmbuf_mtod(m, void *), rec->kept);
	return out;
}

static void capture_offer(struct capture *c, struct rte_mbuf *m, enum capture_point point, uint16_t port)
{
	struct rte_mbuf *out;

	if (!capture_matches(c, m))
		return;
	out = __atomic_fetch_sub(&c->tokens, 1, __ATOMIC_RELAXED) > 0 ? capture_copy(c, m, point, port) : NULL;
	if (out && rte_ring_mp_enqueue(c->ring, out) == 0)
		return;
	rte_pktmbuf_free(out);
	__atomic_fetch_add(&c->missed, 1, __ATOMIC_RELAXED);
}

void capture_batch(enum capture_point point, uint16_t port, struct rte_mbuf **pkts, unsigned n)
{
	struct capture *c;
	unsigned s, i;

	for (s = 0; s < CAPTURE_SESSIONS; s++) {
		c = rcu_read(sessions[s]);
		if (c == NULL || !(c->points & 1u << point))
			continue;
		for (i = 0; i < n; i++) {
			if (c->port && c->port != (point == CAPTURE_TX ? port : pkts[i]->port))
				continue;
			if (c->reason && point == CAPTURE_DROP && c->reason != meta(pkts[i])->reason)
				continue;
			capture_offer(c, pkts[i], point, port);
		}
	}
}

int filter_compile(const char *text, const char *field, struct bpf_program *out, struct error *err)
{
	pcap_t *dead;
	int ret = 0;

	memset(out, 0, sizeof(*out));
	if (*text == '\0')
		return 0;
	dead = pcap_open_dead(DLT_EN10MB, 262144);
	if (dead == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a filter");
	__nss_configure_lookup("hosts", "files"); // the master must not wait for a name server
	if (pcap_compile(dead, out, text, 1, PCAP_NETMASK_UNKNOWN) < 0)
		ret = error_set(err, EINVAL, field, text, "a libpcap expression such as 'udp port 6635'", "%s",
				pcap_geterr(dead));
	pcap_close(dead);
	return ret;
}

static void capture_set_active(void)
{
	unsigned i;
	bool any = false;

	for (i = 0; i < CAPTURE_SESSIONS; i++)
		any |= sessions[i] != NULL;
	__atomic_store_n(&capture_active, any, __ATOMIC_RELAXED);
}

int capture_start(struct capture *c, struct error *err)
{
	static unsigned count; // for unique names: an ended session may still have its ring
	char name[RTE_RING_NAMESIZE];
	unsigned i;

	for (i = 0; i < CAPTURE_SESSIONS && sessions[i]; i++)
		;
	if (i == CAPTURE_SESSIONS)
		return error_full(err, EBUSY, NULL, NULL, CAPTURE_SESSIONS, "captures at once");
	snprintf(name, sizeof(name), "capture-%u", count++);
	c->ring = rte_ring_create(name, CAPTURE_RING, SOCKET_ID_ANY, RING_F_SC_DEQ);
	if (c->ring == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a capture");
	c->tokens = c->rate;
	rcu_publish(sessions[i], c);
	capture_set_active();
	return 0;
}

static void capture_session_free(void *arg)
{
	struct capture *c = arg;
	struct rte_mbuf *m;

	while (rte_ring_sc_dequeue(c->ring, (void **)&m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(c->ring);
	c->gone(c);
}

void capture_stop(struct capture *c)
{
	unsigned i;

	for (i = 0; i < CAPTURE_SESSIONS; i++)
		if (sessions[i] == c)
			rcu_publish(sessions[i], NULL);
	capture_set_active();
	rcu_defer(capture_session_free, c);
}

void capture_refill(unsigned ms)
{
	int64_t tokens, more;
	struct capture *c;
	unsigned i;

	for (i = 0; i < CAPTURE_SESSIONS; i++) {
		c = sessions[i];
		if (c == NULL)
			continue;
		more = RTE_MAX((int64_t)c->rate * ms / 1000, 1);
		tokens = RTE_MAX(__atomic_load_n(&c->tokens, __ATOMIC_RELAXED), 0);
		__atomic_store_n(&c->tokens, RTE_MIN(tokens + more, (int64_t)c->rate), __ATOMIC_RELAXED);
	}
}
