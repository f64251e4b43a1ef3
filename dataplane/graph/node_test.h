// SPDX-License-Identifier: Apache-2.0
// Tests of nodes: a packet goes into a real DPDK graph, and its edge and the packet come out.
//
//	struct rte_mbuf *m = node_test_packet(frame, sizeof(frame));
//	meta(m)->l3 = 14;
//	assert_string_equal(node_test_one("arp_input", m), "port_tx"); // the edge that it left by
//	... look at m ...
//	rte_pktmbuf_free(m);
//
// The nodes that the tested one leads to need not be linked: each of its edges leads to a sink. A test program links
// the node's library, graph_lib, base_lib and node_test_lib, and defines what else the node refers to.
#pragma once

#include <rte_mbuf.h>

#include "graph/meta.h"

#define NODE_TEST_MAX 1024 // packets that come out of one run

struct node_test_out {
	const char *edge;
	struct rte_mbuf *m;
};

extern struct rte_mempool *node_test_pool;
extern struct node_test_out node_test_outs[NODE_TEST_MAX]; // of the last run, in order of arrival

// Starts EAL without hugepages and devices, registers all linked nodes, and starts RCU and the counters of this thread.
// For cmocka's group setup.
int node_test_setup(void **state);
int node_test_teardown(void **state); // -1 when packets have leaked

struct rte_mbuf *node_test_packet(const void *data, size_t len); // port 0, all metadata 0
unsigned node_test_run(const char *node, struct rte_mbuf **pkts,
		       unsigned n);                              // up to 256 in (port_rx: 0); returns how many came out
const char *node_test_one(const char *node, struct rte_mbuf *m); // edge, NULL: it did not come out
const char *node_test_reason(struct rte_mbuf *m);                // why it would be dropped
unsigned node_test_in_use(void);                                 // packets that have not been freed
