// SPDX-License-Identifier: Apache-2.0
#include "l3/mss.h"

#include <rte_tcp.h>

#define OPT_END 0
#define OPT_NOP 1
#define OPT_MSS 2

// Returns the offset of the MSS option's value within the TCP header, 0: there is none.
static unsigned find_mss(const uint8_t *tcp, unsigned hlen)
{
	unsigned i = sizeof(struct rte_tcp_hdr);

	while (i + 4 <= hlen && tcp[i] != OPT_END) {
		if (tcp[i] == OPT_NOP) {
			i++;
			continue;
		}
		if (tcp[i] == OPT_MSS && tcp[i + 1] == 4)
			return i + 2;
		if (tcp[i + 1] < 2)
			return 0;
		i += tcp[i + 1];
	}
	return 0;
}

void mss_clamp(struct rte_mbuf *m, unsigned l4, uint16_t limit)
{
	struct rte_tcp_hdr *tcp = rte_pktmbuf_mtod_offset(m, struct rte_tcp_hdr *, l4);
	uint8_t *bytes = (uint8_t *)tcp;
	unsigned hlen, at;
	uint16_t mss;
	uint32_t sum;

	if (m->data_len < l4 + sizeof(*tcp) || !(tcp->tcp_flags & RTE_TCP_SYN_FLAG))
		return;
	hlen = (tcp->data_off >> 4) * 4u;
	if (hlen < sizeof(*tcp) || m->data_len < l4 + hlen)
		return;
	at = find_mss(bytes, hlen);
	if (at == 0)
		return;
	mss = (uint16_t)(bytes[at] << 8 | bytes[at + 1]);
	if (mss <= limit)
		return;
	// RFC 1624: HC' = ~(~HC + ~m + m'). An option at an odd offset changes the bytes of two words, which sums to
	// the same when swapped.
	sum = (uint16_t)~rte_be_to_cpu_16(tcp->cksum);
	if (at & 1)
		sum += (uint16_t)~rte_bswap16(mss) + (uint32_t)rte_bswap16(limit);
	else
		sum += (uint16_t)~mss + (uint32_t)limit;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	tcp->cksum = rte_cpu_to_be_16((uint16_t)~sum);
	bytes[at] = (uint8_t)(limit >> 8);
	bytes[at + 1] = (uint8_t)limit;
}
