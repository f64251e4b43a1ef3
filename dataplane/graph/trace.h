// SPDX-License-Identifier: Apache-2.0
// Traces packets node by node: a filter marks packets as they are received (META_TRACED), and node_pass() records each
// decision about a marked packet. There is one session at a time.
#pragma once

#include <pcap/pcap.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "base/error.h"
#include "graph/meta.h"

#define TRACE_BYTES 128
#define TRACE_RING 4096

struct trace {
	// Master: wo, workers: ro.
	uint16_t port;             // 0 = all
	struct bpf_program filter; // bf_insns NULL: everything
	struct rte_ring *ring;     // of mbufs whose data is a struct trace_record
	bool only_ours;            // follows only packets that the session injects
	// Master only: called some time after trace_end(), when no worker uses the session any more.
	void (*gone)(struct trace *t);
	// Workers: rw.
	int32_t wanted; // packets still to be marked
	uint32_t marked;
};

struct trace_record {
	struct pkt_meta meta; // as the node left it; its next hop pointer must not be dereferenced
	uint64_t tsc;
	uint32_t packet;  // number within the session
	uint32_t nexthop; // id, 0 = none. l3/ fills it in
	uint16_t worker, edge, port, length;
	char node[32];
	uint8_t data[TRACE_BYTES]; // the packet's first bytes when the node was done with it
};

// Modules that know more about a packet than the graph does fill in their fields of a record. Called by workers.
struct trace_listener {
	void (*record)(struct trace_record *r, const struct pkt_meta *md);
	struct trace_listener *next;
};
void trace_listen(struct trace_listener *l);

void trace_start(struct rte_mbuf **pkts, unsigned n); // worker: marks those that the filter matches

// Master thread only.
int trace_begin(struct trace *t, struct error *err); // t must stay valid until gone() is called
void trace_end(struct trace *t);
void trace_mark(struct rte_mbuf *m, uint32_t packet);
