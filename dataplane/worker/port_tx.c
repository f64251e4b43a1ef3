// SPDX-License-Identifier: Apache-2.0
// port_tx: sends whole frames. What the port's peer does not take as it is (base/offload.h) is cut and completed here,
// and what it takes as a large segment is joined.
// Reads: out_port.  Next: only drop.
#include "base/eth.h"
#include "base/rcu.h"
#include "graph/capture.h"
#include "graph/counters.h"
#include "graph/node.h"
#include "offload/checksum.h"
#include "offload/join.h"
#include "offload/segment.h"
#include "offload/whole.h"
#include "port/registry.h"
#include "worker/worker.h"

DROP_REASON(port_gone, "The port that the packet should leave by has been removed.");
DROP_REASON(port_down,
	    "The port that the packet should leave by is down: its link, its peer or its administrative state. See "
	    "`corelane port show`.");
DROP_REASON(port_tx_full, "The transmit queue was full: the guest or the device does not take packets as fast as they "
			  "come. The guest is slow or has stopped, or its ring is too small for the bursts.");

DROP_REASON(port_tx_segment,
	    "A large segment could not be cut into the packets that the port takes: no packet buffer was "
	    "free, or its headers contradict each other.");

DROP_REASON(port_tx_tagged, "A frame with a VLAN tag, from another port of the bridge, was to leave by a port with "
			    "sub-ports. The tags on that port are those of its sub-ports only.");

#define CWR 0x80
#define JOIN_MEAN 256u // bytes: batches of shorter packets are not searched for what can be joined

// What the peer takes is what is joined.
static_assert((int)JOIN_TCP4 == PORT_TAKES_TCP4 && (int)JOIN_TCP6 == PORT_TAKES_TCP6, "TCP");
static_assert((int)JOIN_UDP4 == PORT_TAKES_UDP4 && (int)JOIN_UDP6 == PORT_TAKES_UDP6, "UDP");
static_assert((int)JOIN_CWR == PORT_TAKES_ECN, "CWR");

static void port_tx_drop(struct rte_mbuf **pkts, unsigned n, const struct drop_reason *reason)
{
	unsigned i;

	for (i = 0; i < n; i++)
		drop_as(pkts[i], reason);
	drop_packets(pkts, n);
}

static uint64_t port_tx_bytes_of(struct rte_mbuf **pkts, unsigned n)
{
	uint64_t bytes = 0;
	unsigned i;

	for (i = 0; i < n; i++)
		bytes += pkts[i]->pkt_len;
	return bytes;
}

static bool port_tx_any_unfinished(struct rte_mbuf **pkts, unsigned n)
{
	uint64_t flags = 0;
	unsigned i;

	for (i = 0; i < n; i++)
		flags |= pkts[i]->ol_flags;
	return (flags & (OFFLOAD_UNFINISHED | OFFLOAD_WHOLE)) != 0;
}

static uint16_t port_tx_transmit(struct port *port, struct rte_mbuf **pkts, uint16_t n)
{
	struct port_queue *q = &port->queues[this_worker->id % port->n_queues];
	uint16_t sent;

	if (likely(!(__atomic_load_n(&port->tx_flags, __ATOMIC_RELAXED) & PORT_TX_SHARED)))
		return port->ops->tx(q, pkts, n);
	rte_spinlock_lock(&q->tx_lock);
	sent = port->ops->tx(q, pkts, n);
	rte_spinlock_unlock(&q->tx_lock);
	return sent;
}

// Drops what the queue did not take. Returns its bytes.
static __rte_noinline uint64_t port_tx_refuse(const struct port *port, struct rte_mbuf **pkts, unsigned n)
{
	uint64_t bytes = port_tx_bytes_of(pkts, n);

	counters->port[port->id].tx_refused += n;
	port_tx_drop(pkts, n, &drop_port_tx_full);
	return bytes;
}

// Drops frames that would reach a sub-port of the port's guest. Returns how many are left.
static __rte_noinline uint16_t port_tx_drop_tagged(struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i, kept = 0;

	for (i = 0; i < n; i++) {
		if (likely(!eth_is_tagged(rte_pktmbuf_mtod(pkts[i], const struct rte_ether_hdr *))))
			pkts[kept++] = pkts[i];
		else
			port_tx_drop(&pkts[i], 1, &drop_port_tx_tagged);
	}
	return kept;
}

static inline void port_tx_send(struct port *port, struct rte_mbuf **pkts, uint16_t n)
{
	struct port_counters *c;
	uint64_t bytes;
	uint16_t sent;

	if (unlikely(__atomic_load_n(&port->tx_flags, __ATOMIC_RELAXED) & PORT_TX_TRUNK))
		n = port_tx_drop_tagged(pkts, n);
	if (unlikely(capture_active))
		capture_batch(CAPTURE_TX, port->id, pkts, n);
	bytes = port_tx_bytes_of(pkts, n); // counted before: sent packets belong to the device
	sent = port_tx_transmit(port, pkts, n);
	if (unlikely(sent < n))
		bytes -= port_tx_refuse(port, pkts + sent, n - sent);
	c = &counters->port[port->id]; // not before: it would have to be kept across the call
	c->tx_packets += sent;
	c->tx_bytes += bytes;
}

// Whether the port's peer takes this unfinished packet.
static bool port_tx_takes(const struct port *port, const struct rte_mbuf *m)
{
	uint16_t takes = __atomic_load_n(&port->takes, __ATOMIC_RELAXED), kind = PORT_TAKES_CHECKSUM;
	bool v6 = (m->ol_flags & RTE_MBUF_F_TX_IPV6) != 0;
	const struct rte_tcp_hdr *tcp;

	if (m->ol_flags & RTE_MBUF_F_TX_TCP_SEG)
		kind = v6 ? PORT_TAKES_TCP6 : PORT_TAKES_TCP4;
	else if (m->ol_flags & RTE_MBUF_F_TX_UDP_SEG)
		kind = v6 ? PORT_TAKES_UDP6 : PORT_TAKES_UDP4;
	if (!(takes & kind) || !(m->ol_flags & RTE_MBUF_F_TX_TCP_SEG) || (takes & PORT_TAKES_ECN))
		return (takes & kind) != 0;
	tcp = rte_pktmbuf_mtod_offset(m, const struct rte_tcp_hdr *, frame_ip(m) + m->l3_len);
	return !(tcp->tcp_flags & CWR);
}

// A frame in one buffer is sent without a look at its mark (memif_tx.c).
static bool port_tx_takes_whole(const struct port *port, const struct rte_mbuf *m)
{
	return (__atomic_load_n(&port->takes, __ATOMIC_RELAXED) & PORT_TAKES_WHOLE) && m->nb_segs > 1;
}

// Writes to out[] what the port takes instead of the packet, up to OFFLOAD_SEGMENTS_MAX packets; returns their number.
static unsigned port_tx_finish(const struct port *port, struct rte_mbuf *m, struct rte_mbuf **out)
{
	int n;

	if (unlikely(offload_is_whole(m)) && !port_tx_takes_whole(port, m)) {
		n = whole_cut(m, frame_ip(m), out);
		if (n < 0)
			port_tx_drop(&m, 1, &drop_port_tx_segment);
		return n < 0 ? 0 : (unsigned)n;
	}
	if (offload_is_unfinished(m) && !port_tx_takes(port, m)) {
		if (offload_is_large(m)) {
			n = segment(m, frame_ip(m), out);
			if (n < 0)
				port_tx_drop(&m, 1, &drop_port_tx_segment);
			return n < 0 ? 0 : (unsigned)n;
		}
		checksum_finish(m, frame_ip(m));
	}
	*out = m;
	return 1;
}

static __rte_noinline void port_tx_unfinished(struct port *port, struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *out[BATCH + OFFLOAD_SEGMENTS_MAX];
	unsigned i, k = 0;

	for (i = 0; i < n; i++) {
		k += port_tx_finish(port, pkts[i], out + k);
		if (k < BATCH && i + 1 < n)
			continue;
		port_tx_send(port, out, (uint16_t)k);
		k = 0;
	}
}

// For a peer that takes large segments: packets of one connection become one.
static __rte_noinline void port_tx_join(struct port *port, struct rte_mbuf **pkts, uint16_t n)
{
	if (port_tx_bytes_of(pkts, n) > n * JOIN_MEAN)
		n = (uint16_t)join(pkts, n, __atomic_load_n(&port->takes, __ATOMIC_RELAXED));
	port_tx_send(port, pkts, n);
}

static void port_tx_send_run(uint16_t out, struct rte_mbuf **pkts, uint16_t n)
{
	struct port *port = rcu_read(port_table[out % PORT_MAX]);

	if (unlikely(port == NULL)) {
		port_tx_drop(pkts, n, &drop_port_gone);
		return;
	}
	if (unlikely(!port->up)) {
		port_tx_drop(pkts, n, &drop_port_down);
		return;
	}
	if (unlikely(__atomic_load_n(&offload_seen, __ATOMIC_RELAXED) && port_tx_any_unfinished(pkts, n)))
		port_tx_unfinished(port, pkts, n);
	else if (unlikely(__atomic_load_n(&port->takes, __ATOMIC_RELAXED) & JOIN_ALL) && n > 1)
		port_tx_join(port, pkts, n);
	else
		port_tx_send(port, pkts, n);
}

static uint16_t port_tx(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **pkts = (struct rte_mbuf **)objs;
	uint16_t i, j, out;

	for (i = 0; i < n; i = j) {
		out = meta(pkts[i])->out_port;
		for (j = i + 1; j < n && meta(pkts[j])->out_port == out; j++)
			;
		port_tx_send_run(out, pkts + i, (uint16_t)(j - i));
	}
	return n;
}

NODE(port_tx, port_tx, );
