// SPDX-License-Identifier: Apache-2.0
// The virtio-net header of a guest's frame, in chained buffers: 10 bytes of header, the size of the buffers behind the
// first one in units of 16 bytes, that of the first one (0: the same), and the frame. What is accepted can be cut into
// packets, or its checksum can be computed, and the header that is written for it is accepted again.
#include "base/eth.h"
#include "fuzz_frame.h"
#include "offload/checksum.h"
#include "offload/segment.h"
#include "port/vnet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	FUZZ_ASSERT(node_test_setup(NULL) == 0);
	return 0;
}

static struct rte_mbuf *chain(const uint8_t *data, size_t size, size_t first, size_t other)
{
	struct rte_mbuf *m = fuzz_frame(data, RTE_MIN(size, first), 0);
	size_t at;

	for (at = first; at < size; at += other)
		FUZZ_ASSERT(rte_pktmbuf_chain(m, fuzz_frame(data + at, RTE_MIN(size - at, other), 0)) == 0);
	return m;
}

static void check_segments(struct rte_mbuf *m)
{
	unsigned l3 = frame_ip(m), want = offload_segments(m, l3), longest = l3 + offload_ip_size(m, l3);
	struct rte_mbuf *out[OFFLOAD_SEGMENTS_MAX];
	int n = segment(m, l3, out), i;

	FUZZ_ASSERT(n == (int)want && n > 1);
	for (i = 0; i < n; i++)
		FUZZ_ASSERT(out[i]->pkt_len <= longest && !offload_is_unfinished(out[i]));
	rte_pktmbuf_free_bulk(out, (unsigned)n);
}

static void check_accepted(struct rte_mbuf *m)
{
	struct virtio_net_hdr again;
	uint64_t flags = m->ol_flags, lengths = m->tx_offload;

	if (!offload_is_unfinished(m))
		return;
	vnet_write(m, &again);
	FUZZ_ASSERT(vnet_read(m, &again) == NULL && m->ol_flags == flags);
	m->l2_len = 0;
	FUZZ_ASSERT(m->tx_offload == lengths);
	if (!offload_is_large(m))
		checksum_finish(m, frame_ip(m));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct virtio_net_hdr h;
	struct rte_mbuf *m;
	size_t other, first;

	if (size < sizeof(h) + 2 + 1 || size > 66000)
		return 0;
	memcpy(&h, data, sizeof(h));
	other = data[sizeof(h)] * 16u + 16;
	first = data[sizeof(h) + 1] ? data[sizeof(h) + 1] * 16u : other;
	data += sizeof(h) + 2;
	size -= sizeof(h) + 2;
	if (size / other >= RTE_MBUF_MAX_NB_SEGS / 64)
		return 0;
	m = chain(data, size, first, other);
	if (vnet_read(m, &h) == NULL) {
		check_accepted(m);
		if (offload_is_large(m)) {
			check_segments(m); // frees it
			m = NULL;
		}
	}
	rte_pktmbuf_free(m);
	return 0;
}
