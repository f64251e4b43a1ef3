// SPDX-License-Identifier: Apache-2.0
// Joining packets and cutting large segments. The first byte says which of both the input is for, and for cutting how
// many buffers are free: with its other bits 0 to 126, or all.
//
// Joining: the rest is packets. Each begins with a byte of enum how: either it follows the packet before, or a length
// and a frame come. Whatever comes in, cutting what was joined gives the same packets, and none is lost.
// Cutting: marks of a large segment, as a port would have checked them or not, and a frame.
#include <netinet/in.h>

#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "base/eth.h"
#include "fuzz_frame.h"
#include "graph/node_test.h"
#include "offload/join.h"
#include "offload/segment.h"

#define MOST 64      // packets of an input
#define LONGEST 9000 // frame to cut, so that a piece may need several buffers

enum how { FOLLOWS = 1 << 0, RIGHT_SUMS = 1 << 1, CHANGED = 1 << 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	FUZZ_ASSERT(node_test_setup(NULL) == 0);
	return 0;
}

struct packet {
	uint8_t bytes[2048];
	unsigned len;
};

static unsigned l3_of(struct packet *p)
{
	struct rte_mbuf *m = fuzz_frame(p->bytes, p->len, 0);
	unsigned l3 = frame_ip(m);

	rte_pktmbuf_free(m);
	return l3;
}

// Writes right checksums to a TCP or UDP packet whose lengths allow it, and lets it follow the one before, if `next`.
static void repair(struct packet *p, bool next)
{
	unsigned l3 = l3_of(p), l4, n;
	uint8_t *ip = p->bytes + l3, *h, protocol;
	bool v6 = *ip >> 4 == 6, tcp;
	struct rte_ipv4_hdr *ip4 = (struct rte_ipv4_hdr *)ip;

	l4 = l3 + (v6 ? 40 : 20);
	if (l3 == 0 || p->len < l4 + 20)
		return;
	h = p->bytes + l4;
	protocol = v6 ? ip[6] : ip[9];
	tcp = protocol == IPPROTO_TCP;
	if (!tcp && protocol != IPPROTO_UDP)
		return;
	n = l4 + (tcp ? (h[12] >> 4) * 4u : 8u);
	if (next && !v6)
		ip4->packet_id = rte_cpu_to_be_16((uint16_t)(rte_be_to_cpu_16(ip4->packet_id) + 1));
	if (next && tcp && n < p->len)
		((struct rte_tcp_hdr *)h)->sent_seq =
			rte_cpu_to_be_32(rte_be_to_cpu_32(((struct rte_tcp_hdr *)h)->sent_seq) + p->len - n);
	if (v6)
		((struct rte_ipv6_hdr *)ip)->payload_len = rte_cpu_to_be_16((uint16_t)(p->len - l4));
	else
		ip4->total_length = rte_cpu_to_be_16((uint16_t)(p->len - l3));
	ip4->hdr_checksum = v6 ? ip4->hdr_checksum : 0;
	ip4->hdr_checksum = v6 ? ip4->hdr_checksum : rte_ipv4_cksum(ip4);
	*(uint16_t *)(h + (tcp ? 16 : 6)) = 0;
	if (!tcp)
		((struct rte_udp_hdr *)h)->dgram_len = rte_cpu_to_be_16((uint16_t)(p->len - l4));
	*(uint16_t *)(h + (tcp ? 16 : 6)) =
		v6 ? rte_ipv6_udptcp_cksum((struct rte_ipv6_hdr *)ip, h) : rte_ipv4_udptcp_cksum(ip4, h);
}

// Reads the next packet over the one before. Returns the bytes that it took, 0 at the end.
static size_t next_packet(const uint8_t *data, size_t size, struct packet *p)
{
	size_t used = 1;
	unsigned len;

	if (size < 3)
		return 0;
	if (!(data[0] & FOLLOWS)) {
		len = (unsigned)(data[1] << 8 | data[2]) % sizeof(p->bytes);
		if (size < 3u + len || len < 14)
			return 0;
		memcpy(p->bytes, data + 3, len);
		p->len = len;
		used += 2 + len;
	}
	if (p->len == 0)
		return 0;
	if ((data[0] & CHANGED) && size >= used + 2) {
		p->bytes[data[used] % p->len] ^= data[used + 1];
		used += 2;
	}
	if (data[0] & RIGHT_SUMS)
		repair(p, data[0] & FOLLOWS);
	return used;
}

static bool same(const struct rte_mbuf *m, const struct packet *p)
{
	static uint8_t flat[2048];

	return m->pkt_len == p->len && memcmp(rte_pktmbuf_read(m, 0, p->len, flat), p->bytes, p->len) == 0;
}

static void check_join(const uint8_t *data, size_t size)
{
	static struct packet in[MOST], p;
	struct rte_mbuf *pkts[MOST], *out[OFFLOAD_SEGMENTS_MAX];
	bool seen[MOST] = {0};
	unsigned n = 0, left, i, k, cut = 0;
	size_t used;
	int parts;

	for (p.len = 0; n < MOST && (used = next_packet(data, size, &p)) > 0; data += used, size -= used) {
		in[n] = p;
		pkts[n++] = fuzz_frame(p.bytes, p.len, 0);
	}
	left = join(pkts, n, JOIN_ALL);
	for (i = 0; i < left; i++) {
		out[0] = pkts[i];
		parts = offload_is_large(pkts[i]) ? segment(pkts[i], frame_ip(pkts[i]), out) : 1;
		FUZZ_ASSERT(parts > 0);
		for (k = 0; k < (unsigned)parts; k++, cut++) {
			unsigned j = 0;

			while (j < n && (seen[j] || !same(out[k], &in[j])))
				j++;
			FUZZ_ASSERT(j < n);
			seen[j] = true;
		}
		rte_pktmbuf_free_bulk(out, (unsigned)parts);
	}
	FUZZ_ASSERT(cut == n);
}

// few: buffers that are free while the segment is cut, 0 = all.
static void check_cut(const uint8_t *data, size_t size, unsigned few)
{
	static void *taken[NODE_TEST_MAX * 8];
	struct rte_mbuf *m, *out[OFFLOAD_SEGMENTS_MAX];
	unsigned l3, i, k;
	int n;

	if (size < 6 || size > LONGEST)
		return;
	m = fuzz_frame(data + 6, size - 6, 0);
	l3 = data[0] % 32;
	m->ol_flags |= data[1] & 1 ? RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_TCP_CKSUM
				   : RTE_MBUF_F_TX_UDP_SEG | RTE_MBUF_F_TX_UDP_CKSUM;
	m->ol_flags |= data[1] & 2 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4;
	m->l3_len = data[2];
	m->l4_len = data[3];
	m->tso_segsz = (uint16_t)(data[4] << 8 | data[5]);
	k = few ? rte_mempool_avail_count(node_test_pool) - (few - 1) : 0;
	FUZZ_ASSERT(k <= RTE_DIM(taken));
	if (k > 0 && rte_mempool_get_bulk(node_test_pool, taken, k) < 0)
		abort();
	n = segment(m, l3, out);
	if (k > 0)
		rte_mempool_put_bulk(node_test_pool, taken, k);
	FUZZ_ASSERT(n != 0 && n <= OFFLOAD_SEGMENTS_MAX);
	if (n < 0) {
		rte_pktmbuf_free(m);
		return;
	}
	for (i = 0; i < (unsigned)n; i++)
		FUZZ_ASSERT(rte_mbuf_check(out[i], 1, &(const char *){NULL}) == 0 && !offload_is_unfinished(out[i]));
	rte_pktmbuf_free_bulk(out, (unsigned)n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] & 1)
		check_join(data + 1, size - 1);
	else
		check_cut(data + 1, size - 1, data[0] >> 1);
	FUZZ_ASSERT(node_test_in_use() == 0);
	return 0;
}
