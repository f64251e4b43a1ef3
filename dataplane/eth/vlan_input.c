// SPDX-License-Identifier: Apache-2.0
// vlan_input: frames from a port that has sub-ports. The tags of a frame name its sub-port, and are removed; from here
// on it is as if the frame had come in by a device of its own. Frames without a tag are the port's own.
// Reads: port.  Writes: port, flags.  Next: tenant_input.
#include "base/eth.h"
#include "base/rcu.h"
#include "graph/capture.h"
#include "graph/counters.h"
#include "graph/node.h"
#include "graph/trace.h"
#include "port/registry.h"
#include "worker/buffer_share.h"
#include "worker/port_rx.h"
#include "worker/worker.h"

enum { TENANT = 1 };

DROP_REASON(vlan_unknown, "The guest sent a frame with a VLAN tag that no sub-port of its port has. "
			  "`corelane port add PORT tenant subport --parent PARENT --vlan ID` adds one.");

#define TAG ((unsigned)sizeof(struct rte_vlan_hdr))

static inline bool vlan_input_tagged(const struct rte_mbuf *m)
{
	return m->data_len >= sizeof(struct rte_ether_hdr) &&
	       eth_is_tagged(rte_pktmbuf_mtod(m, const struct rte_ether_hdr *));
}

// The tag behind the Ethernet header, or behind another tag.
static inline const struct rte_vlan_hdr *vlan_input_tag(const struct rte_mbuf *m, unsigned i)
{
	return rte_pktmbuf_mtod_offset(m, const struct rte_vlan_hdr *, sizeof(struct rte_ether_hdr) + i * TAG);
}

static inline unsigned vlan_input_id(const struct rte_vlan_hdr *tag)
{
	return rte_be_to_cpu_16(tag->vlan_tci) & (TAGS - 1);
}

// Returns the id of the sub-port and the length of its tags, 0 if there is none. The frame has a tag.
static inline uint16_t vlan_input_find(const struct trunk *t, const struct rte_mbuf *m, unsigned *tags)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_vlan_hdr *tag = vlan_input_tag(m, 0);
	const uint16_t *list;

	*tags = TAG;
	if (unlikely(m->data_len < sizeof(*eth) + TAG))
		return 0;
	if (likely(eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_VLAN)))
		return __atomic_load_n(&t->once[vlan_input_id(tag)], __ATOMIC_ACQUIRE);
	list = rcu_read(t->twice[vlan_input_id(tag)]);
	*tags = 2 * TAG;
	if (list == NULL || m->data_len < sizeof(*eth) + 2 * TAG || tag->eth_proto != RTE_BE16(RTE_ETHER_TYPE_VLAN))
		return 0;
	return __atomic_load_n(&list[vlan_input_id(vlan_input_tag(m, 1))], __ATOMIC_ACQUIRE);
}

// What port_rx does for a port with a device.
static inline edge_t vlan_input_enter(struct rte_mbuf *m, uint16_t id)
{
	const struct port *p = rcu_read(port_table[id]);
	const struct drop_reason *why = NULL;
	struct pkt_meta *md = meta(m);
	uint32_t longest;

	if (unlikely(p == NULL))
		return drop(m, vlan_unknown);
	m->port = id;
	counters->port[id].rx_packets++;
	counters->port[id].rx_bytes += m->pkt_len;
	md->flags = (uint8_t)((md->flags & META_TRACED) | __atomic_load_n(&p->rx_flags, __ATOMIC_RELAXED));
	longest = __atomic_load_n(&p->longest, __ATOMIC_RELAXED);
	if (unlikely(m->pkt_len > longest))
		why = port_rx_refuses(m, longest);
	if (unlikely(this_worker->share != BUFFERS_ENOUGH) && why == NULL)
		why = buffer_share_exceeded(p);
	if (unlikely(why))
		return drop_as(m, why);
	if (unlikely(capture_active))
		capture_batch(CAPTURE_RX, id, &m, 1);
	if (unlikely(graph_tracing) && !(md->flags & META_TRACED))
		trace_start(&m, 1);
	return TENANT;
}

static inline edge_t vlan_input_one(struct rte_mbuf *m)
{
	const struct trunk *t = rcu_read(port_trunks[m->port % PORT_MAX]);
	unsigned tags;
	uint16_t id;

	if (unlikely(t == NULL) || !vlan_input_tagged(m))
		return TENANT;
	// What is behind a priority may have a tag all the same.
	if (unlikely(eth_has_priority_tag(m, rte_pktmbuf_mtod(m, const struct rte_ether_hdr *)))) {
		eth_untag(m, TAG);
		if (!vlan_input_tagged(m))
			return TENANT;
	}
	id = vlan_input_find(t, m, &tags);
	if (unlikely(id == 0))
		return drop(m, vlan_unknown);
	eth_untag(m, tags);
	return vlan_input_enter(m, id);
}

static uint16_t vlan_input(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, vlan_input_one);
}

NODE(vlan_input, vlan_input, [TENANT] = "tenant_input");
