// SPDX-License-Identifier: Apache-2.0
// The MSS clamp: the first two bytes are the limit, the rest is a TCP header. For any input, only an MSS above
// the limit changes, and a checksum stays correct or wrong.
#include "fuzz_frame.h"
#include "l3/mss.h"
#include "testing/router_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	FUZZ_ASSERT(router_setup(NULL) == 0);
	return 0;
}

static void check(const uint8_t *before, const uint8_t *after, size_t n, uint16_t limit)
{
	unsigned changed = 0, first = 0, i;

	for (i = 0; i < n; i++) {
		if (before[i] == after[i] || i == 16 || i == 17) // the checksum
			continue;
		first = changed++ ? first : i;
	}
	if (changed == 0) {
		FUZZ_ASSERT(memcmp(before, after, n) == 0);
		return;
	}
	FUZZ_ASSERT(changed <= 2 && first >= 22 && (before[13] & 2)); // in the options of a SYN
	// Ones' complement zero has two forms.
	FUZZ_ASSERT((router_sum(before, (unsigned)n, 0) + 0u) % 0xffff ==
		    (router_sum(after, (unsigned)n, 0) + 0u) % 0xffff);
	// One byte of the value may be unchanged.
	FUZZ_ASSERT((first + 1 < n && (after[first] << 8 | after[first + 1]) == limit) ||
		    (after[first - 1] << 8 | after[first]) == limit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rte_mbuf *m;
	uint16_t limit;

	if (size < 2 || size > 1500)
		return 0;
	limit = (uint16_t)(data[0] << 8 | data[1]);
	m = fuzz_frame(data + 2, size - 2, 0);
	mss_clamp(m, 0, limit);
	check(data + 2, rte_pktmbuf_mtod(m, const uint8_t *), size - 2, limit);
	rte_pktmbuf_free(m);
	return 0;
}
