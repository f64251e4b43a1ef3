// SPDX-License-Identifier: Apache-2.0
// host_share: ARP and ND frames that both the router and the kernel need. The control plane gets the frame, the kernel
// a copy.
// Reads: out_port (enum punt).  Next: punt, host_output.
#include "graph/counters.h"
#include "graph/node.h"

enum { PUNT = 1, HOST };

#define SHARE_CHUNK (NODE_CHUNK / 2)

DROP_REASON(host_no_buffer, "An ARP or ND frame could not be copied for the kernel: no packet buffer was free. The "
			    "router itself got the frame.");

static unsigned host_share_packet(struct rte_mbuf *m, void **objs, edge_t *edges)
{
	struct rte_mbuf *copy = rte_pktmbuf_copy(m, m->pool, 0, UINT32_MAX);

	objs[0] = m;
	edges[0] = PUNT;
	if (unlikely(copy == NULL)) {
		counters->drops[m->port % PORT_MAX][drop_host_no_buffer.id]++;
		return 1;
	}
	objs[1] = copy;
	edges[1] = HOST;
	return 2;
}

static uint16_t host_share(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	void *out[NODE_CHUNK];
	edge_t edges[NODE_CHUNK];
	unsigned done, i, k, used;

	for (done = 0; done < n; done += k) {
		k = RTE_MIN(n - done, SHARE_CHUNK);
		for (i = 0, used = 0; i < k; i++)
			used += host_share_packet(objs[done + i], out + used, edges + used);
		node_pass(graph, node, out, edges, used);
	}
	return n;
}

NODE(host_share, host_share, [PUNT] = "punt", [HOST] = "host_output");
