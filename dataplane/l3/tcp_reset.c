// SPDX-License-Identifier: Apache-2.0
#include "l3/tcp_reset.h"

#include <rte_byteorder.h>

bool tcp_reset(const struct rte_mbuf *m, unsigned l4, uint32_t len, struct rte_tcp_hdr *out)
{
	const struct rte_tcp_hdr *in = rte_pktmbuf_mtod_offset(m, const struct rte_tcp_hdr *, l4);
	unsigned hlen;

	if (m->data_len < l4 + sizeof(*in) || (in->tcp_flags & RTE_TCP_RST_FLAG))
		return false;
	hlen = (in->data_off >> 4) * 4u;
	if (hlen < sizeof(*in) || hlen > len)
		return false;
	*out = (struct rte_tcp_hdr){.src_port = in->dst_port,
				    .dst_port = in->src_port,
				    .data_off = sizeof(*out) / 4 << 4,
				    .tcp_flags = RTE_TCP_RST_FLAG};
	if (in->tcp_flags & RTE_TCP_ACK_FLAG) {
		out->sent_seq = in->recv_ack;
		return true;
	}
	len -= hlen; // SYN and FIN have a sequence number each
	len += !!(in->tcp_flags & RTE_TCP_SYN_FLAG) + !!(in->tcp_flags & RTE_TCP_FIN_FLAG);
	out->tcp_flags |= RTE_TCP_ACK_FLAG;
	out->recv_ack = rte_cpu_to_be_32(rte_be_to_cpu_32(in->sent_seq) + len);
	return true;
}
