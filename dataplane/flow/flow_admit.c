// SPDX-License-Identifier: Apache-2.0
// Verdicts of flows that are denied or metered.
#include "flow/act.h"
#include "policy/meter.h"
#include "port/registry.h"

DROP_REASON(
	meter_exceeded,
	"A meter of the sender's port, of the receiver's, or of a rule allows no more packets or bytes at this moment. "
	"`corelane meter list` shows which one drops; its rate or burst may be too small for this guest.");

static uint16_t port_meter(uint16_t port, bool egress)
{
	const struct port_fwd *p = port ? rcu_read(port_fwds[port]) : NULL;

	if (p == NULL)
		return 0;
	return egress ? p->egress_meter : p->ingress_meter;
}

static bool flow_admit_pass(uint16_t meter, uint32_t packets, uint32_t bytes, struct pkt_meta *md)
{
	if (meter == 0 || meter_pass(meter, packets, bytes, this_worker->tsc))
		return true;
	md->reason = drop_meter_exceeded.id;
	return false;
}

// Meters apply in the order in which a packet passes them; a packet that one of them drops takes no tokens from the
// later ones.
bool flow_admit(const struct rte_mbuf *m, struct flow *f, unsigned dir, struct pkt_meta *md)
{
	uint32_t packets = offload_segments(m, md->l3), bytes = offload_ip_bytes(m, md->l3);

	if (f->dir[dir].flags & FLOW_DENY) {
		md->reason = f->reason;
		return false;
	}
	return flow_admit_pass(port_meter(f->port[dir], true), packets, bytes, md) &&
	       flow_admit_pass(f->extras[dir].meter, packets, bytes, md) &&
	       flow_admit_pass(f->extras[!dir].meter, packets, bytes, md) &&
	       flow_admit_pass(port_meter(f->port[!dir], false), packets, bytes, md);
}

void flow_count_large(flow_entry_t e, unsigned worker, const struct rte_mbuf *m, unsigned l3)
{
	flow_count_packet(e, worker, offload_segments(m, l3), offload_ip_bytes(m, l3));
}
