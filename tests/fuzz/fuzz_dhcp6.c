// SPDX-License-Identifier: Apache-2.0
// DHCPv6 messages of guests. The input is the message. For any input, what was found lies within the message, and the
// addresses of each association do so as well.
#include <stdlib.h>
#include <string.h>

#include "boot/dhcp6_message.h"
#include "fuzz_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool within(const uint8_t *at, size_t len, const uint8_t *message, size_t size)
{
	return at == NULL ? len == 0 : at >= message && at + len <= message + size;
}

static void check_ia(const struct dhcp6_ia *ia, const uint8_t *message, size_t size)
{
	const uint8_t *address = NULL;
	unsigned at = 0, before = 0;

	FUZZ_ASSERT(within(ia->options, ia->len, message, size));
	while (dhcp6_next_address(ia, &at, &address)) {
		FUZZ_ASSERT(at > before && within(address, 24, ia->options, ia->len));
		before = at;
	}
}

static void check(const uint8_t *message, size_t size)
{
	struct dhcp6_request r;
	unsigned i, code;

	if (!dhcp6_parse(message, size, &r))
		return;
	FUZZ_ASSERT(r.header->type >= DHCP6_SOLICIT && r.header->type <= DHCP6_INFORMATION);
	FUZZ_ASSERT(within(r.client, r.client_len, message, size) && r.client_len <= DHCP6_DUID_LONGEST);
	FUZZ_ASSERT(within(r.server, r.server_len, message, size) && r.server_len <= DHCP6_DUID_LONGEST);
	FUZZ_ASSERT(within(r.wanted, r.wanted_len, message, size) && r.n_ias <= DHCP6_MAX_IAS);
	for (code = DHCP6_CLIENT; code <= DHCP6_BOOT_FILE; code++)
		FUZZ_ASSERT(dhcp6_wants(&r, (enum dhcp6_option)code) || r.wanted);
	for (i = 0; i < r.n_ias; i++)
		check_ia(&r.ias[i], message, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy; // as long as the message, so that the sanitizer sees what lies behind it

	if (size > 1500)
		return 0;
	copy = malloc(size ? size : 1);
	FUZZ_ASSERT(copy);
	memcpy(copy, data, size);
	check(copy, size);
	free(copy);
	return 0;
}
