// SPDX-License-Identifier: Apache-2.0
// DHCPv4 messages of guests. The input is the message, which is parsed as it is and with its fixed fields corrected,
// because a fuzzer would hardly guess them. For any input, what was found lies within the message.
#include <stdlib.h>
#include <string.h>

#include "boot/dhcp4_message.h"
#include "fuzz_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const uint8_t *message, size_t size)
{
	struct dhcp4_request r;

	if (!dhcp4_parse(message, size, &r))
		return;
	FUZZ_ASSERT(r.type >= DHCP4_DISCOVER && r.type <= DHCP4_INFORM && r.max_size >= DHCP4_IP_SIZE);
	FUZZ_ASSERT(r.relay == NULL || (r.relay > message && r.relay + r.relay_len <= message + size));
	if (r.client == NULL)
		return;
	FUZZ_ASSERT(r.client > message && r.client + r.client_len <= message + size && r.client_len >= 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy; // as long as the message, so that the sanitizer sees what lies behind it
	struct dhcp4_header *h;

	if (size > 1500)
		return 0;
	copy = malloc(size ? size : 1);
	FUZZ_ASSERT(copy);
	memcpy(copy, data, size);
	check(copy, size);
	h = (struct dhcp4_header *)copy;
	if (size >= sizeof(*h)) {
		h->op = h->htype = 1;
		h->hlen = RTE_ETHER_ADDR_LEN;
		h->cookie = DHCP4_COOKIE;
		check(copy, size);
	}
	free(copy);
	return 0;
}
