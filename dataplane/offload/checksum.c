// SPDX-License-Identifier: Apache-2.0
#include "offload/checksum.h"

#include <netinet/in.h>

// Bytes at an odd offset count for the other half of a word.
static uint64_t swap_if(uint64_t sum, bool odd)
{
	return odd ? rte_bswap16(ip_fold(sum)) : sum;
}

uint64_t checksum_data(const struct rte_mbuf *m, unsigned at, unsigned n)
{
	uint64_t sum = 0;
	bool odd = false;
	unsigned k;

	for (; at >= m->data_len && m->next; m = m->next)
		at -= m->data_len;
	for (; m && n > 0; m = m->next, at = 0, n -= k) {
		k = RTE_MIN(n, m->data_len - at);
		sum += swap_if(checksum_bytes(rte_pktmbuf_mtod_offset(m, const uint8_t *, at), k), odd);
		odd ^= k & 1;
	}
	return sum;
}

void checksum_finish(struct rte_mbuf *m, unsigned l3)
{
	bool tcp = (m->ol_flags & OFFLOAD_UNFINISHED) == RTE_MBUF_F_TX_TCP_CKSUM, v6 = m->ol_flags & RTE_MBUF_F_TX_IPV6;
	unsigned at = l3 + m->l3_len, n = m->pkt_len - at;
	void *l4 = rte_pktmbuf_mtod_offset(m, void *, at);
	uint64_t sum = checksum_pseudo(rte_pktmbuf_mtod_offset(m, void *, l3), v6, tcp ? IPPROTO_TCP : IPPROTO_UDP, n);

	if (tcp)
		((struct rte_tcp_hdr *)l4)->cksum = 0;
	else
		((struct rte_udp_hdr *)l4)->dgram_cksum = 0;
	checksum_write(l4, tcp, sum + checksum_data(m, at, n));
	m->ol_flags &= ~OFFLOAD_FLAGS;
}

void checksum_leave(struct rte_mbuf *m, unsigned l3)
{
	bool tcp = (m->ol_flags & OFFLOAD_UNFINISHED) == RTE_MBUF_F_TX_TCP_CKSUM, v6 = m->ol_flags & RTE_MBUF_F_TX_IPV6;
	unsigned at = l3 + m->l3_len;
	uint16_t sum = ip_fold(checksum_pseudo(rte_pktmbuf_mtod_offset(m, void *, l3), v6,
					       tcp ? IPPROTO_TCP : IPPROTO_UDP, m->pkt_len - at));

	if (tcp)
		rte_pktmbuf_mtod_offset(m, struct rte_tcp_hdr *, at)->cksum = sum;
	else
		rte_pktmbuf_mtod_offset(m, struct rte_udp_hdr *, at)->dgram_cksum = sum;
}
