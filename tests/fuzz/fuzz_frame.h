// SPDX-License-Identifier: Apache-2.0
// A packet in memory of its own, so that the address sanitizer sees each byte that is read behind its end.
#pragma once

#include <stdlib.h>
#include <string.h>

#include <rte_debug.h>
#include <rte_mbuf.h>

#include "graph/meta.h"
#include "graph/node_test.h"

#define FUZZ_HEADROOM 128

struct fuzz_buffer {
	struct rte_mbuf_ext_shared_info shared;
	void *memory;
};

static void fuzz_free(void *addr, void *opaque)
{
	struct fuzz_buffer *b = opaque;

	free(b->memory);
	free(b);
}

// tailroom: bytes behind the packet that a node may use.
static inline struct rte_mbuf *fuzz_frame(const void *data, size_t len, unsigned tailroom)
{
	size_t size = FUZZ_HEADROOM + len + tailroom;
	struct fuzz_buffer *b = calloc(1, sizeof(*b));
	struct rte_mbuf *m = node_test_packet(data, 0);

	b->memory = malloc(size);
	b->shared.free_cb = fuzz_free;
	b->shared.fcb_opaque = b;
	rte_mbuf_ext_refcnt_set(&b->shared, 1);
	rte_pktmbuf_attach_extbuf(m, b->memory, RTE_BAD_IOVA, (uint16_t)size, &b->shared);
	m->data_off = FUZZ_HEADROOM;
	m->data_len = (uint16_t)len;
	m->pkt_len = (uint32_t)len;
	memcpy(rte_pktmbuf_mtod(m, void *), data, len);
	return m;
}

#define FUZZ_ASSERT(what)        \
	do {                     \
		if (!(what))     \
			abort(); \
	} while (0)
