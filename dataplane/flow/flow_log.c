// SPDX-License-Identifier: Apache-2.0
// One ring of records per worker, read by the master.
#include "flow/flow_log.h"

#include "base/log.h"
#include "flow/flow_text.h"
#include "port/registry.h"
#include "worker/worker.h"

#define RECORDS 256u // per worker

struct record {
	struct flow_key key;
	uint16_t in, out; // ports
	uint32_t rule[2];
	bool denied;
};

static struct notes {
	struct record record[RECORDS];
	uint32_t written; // worker
	uint32_t read;    // master
	uint32_t lost;    // worker
	uint32_t told;    // master: value of `lost` at its last report
} notes[WORKER_MAX];

void flow_log_add(unsigned worker, const struct flow_question *q, const struct flow_answer *a)
{
	struct notes *n = &notes[worker];

	if (n->written - __atomic_load_n(&n->read, __ATOMIC_ACQUIRE) == RECORDS) {
		__atomic_store_n(&n->lost, n->lost + 1, __ATOMIC_RELAXED);
		return;
	}
	n->record[n->written % RECORDS] =
		(struct record){q->key, q->port, a->out_port, {a->egress.rule, a->ingress.rule}, a->deny != NULL};
	__atomic_store_n(&n->written, n->written + 1, __ATOMIC_RELEASE);
}

static const char *flow_log_port_name(uint16_t id)
{
	const struct port *p = id ? port_get(id) : NULL;

	return p ? p->cfg.name : "a tunnel";
}

static void flow_log_say(const struct record *r)
{
	struct ip_addr src = flow_source(&r->key), dst = flow_destination(&r->key);
	char a[IP_TEXT], b[IP_TEXT], proto[4];

	LOG(INFO, "flow %s: %s %s port %u to %s port %u, from %s to %s, egress rule %u, ingress rule %u",
	    r->denied ? "denied" : "allowed", ip_format_protocol(r->key.proto, proto), ip_format_addr(&src, a),
	    rte_be_to_cpu_16(r->key.src_port), ip_format_addr(&dst, b), rte_be_to_cpu_16(r->key.dst_port),
	    flow_log_port_name(r->in), flow_log_port_name(r->out), r->rule[0], r->rule[1]);
}

void flow_log_poll(void)
{
	unsigned i;

	for (i = 0; i < WORKER_MAX; i++) {
		struct notes *n = &notes[i];
		uint32_t lost = __atomic_load_n(&n->lost, __ATOMIC_RELAXED);

		for (; n->read != __atomic_load_n(&n->written, __ATOMIC_ACQUIRE);
		     __atomic_store_n(&n->read, n->read + 1, __ATOMIC_RELEASE))
			flow_log_say(&n->record[n->read % RECORDS]);
		if (lost != n->told)
			LOG(WARNING, "%u more flows were not logged: too many at once", lost - n->told);
		n->told = lost;
	}
}
