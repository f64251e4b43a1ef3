// SPDX-License-Identifier: Apache-2.0
// IGMP and MLD of guests. The first byte says of which family the packet is, and whether its checksum counts; the rest
// is the packet. For any input, each group that a report names is one that is snooped, and there are no more of them
// than the packet has room for.
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>

#include "fuzz_frame.h"
#include "l2/snoop_message.h"

enum { SIX = 1, UNCHECKED = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const uint8_t *packet, size_t size, uint8_t how)
{
	struct snoop_message s;
	struct snoop_record r;
	size_t n = 0;

	snoop_message_read(packet, (unsigned)size,
			   how & SIX ? RTE_BE16(RTE_ETHER_TYPE_IPV6) : RTE_BE16(RTE_ETHER_TYPE_IPV4), how & UNCHECKED,
			   &s);
	FUZZ_ASSERT(s.kind <= SNOOP_DAMAGED && s.family == (how & SIX ? IPV6 : IPV4));
	FUZZ_ASSERT(!s.elects || s.kind == SNOOP_QUERY);
	if (s.kind != SNOOP_REPORT)
		return;
	while (snoop_message_next(&s, &r)) {
		FUZZ_ASSERT(snoop_is_group(&r.group) && r.group.family == s.family);
		n++;
	}
	FUZZ_ASSERT(n * ip_bytes(s.family) <= size && s.n == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy; // as long as the packet, so that the sanitizer sees what lies behind it

	if (size < 1 || size > 2049)
		return 0;
	copy = malloc(size > 1 ? size - 1 : 1);
	FUZZ_ASSERT(copy);
	memcpy(copy, data + 1, size - 1);
	check(copy, size - 1, data[0]);
	free(copy);
	return 0;
}
