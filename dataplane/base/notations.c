// SPDX-License-Identifier: Apache-2.0
// Made by `make api` from the options in api/*.proto. Change them there.
// clang-format off
#include "base/check.h"

const struct notation_text notation_texts[NOTATIONS] = {
	[NOTATION_NAME] = {.valid = NOTATION_NAME_VALID, .first = "", .longest = 31,
		.characters = {0x3ff600000000000, 0x7fffffe87fffffe, 0x0, 0x0}},
	[NOTATION_INTERFACE] = {.valid = NOTATION_INTERFACE_VALID, .first = "", .longest = 15,
		.characters = {0xfbff7fde00000000, 0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff}},
	[NOTATION_SECRET] = {.valid = NOTATION_SECRET_VALID, .first = "", .longest = 23,
		.characters = {0xfffffffffffffbff, 0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff}},
	[NOTATION_PATH] = {.valid = NOTATION_PATH_VALID, .first = "/", .longest = 107,
		.characters = {0xfffffffffffffbff, 0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff}},
	[NOTATION_LINE] = {.valid = NOTATION_LINE_VALID, .first = "", .longest = 0,
		.characters = {0xfffffffffffffbff, 0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff}},
	[NOTATION_WORKER] = {.valid = NOTATION_WORKER_VALID},
	[NOTATION_POLLER] = {.valid = NOTATION_POLLER_VALID},
	[NOTATION_WEIGHT] = {.valid = NOTATION_WEIGHT_VALID},
	[NOTATION_MAC] = {.valid = NOTATION_MAC_VALID},
	[NOTATION_ADDRESS] = {.valid = NOTATION_ADDRESS_VALID},
	[NOTATION_HOST] = {.valid = NOTATION_HOST_VALID},
	[NOTATION_INTERFACE_ADDRESS] = {.valid = NOTATION_INTERFACE_ADDRESS_VALID},
	[NOTATION_PREFIX] = {.valid = NOTATION_PREFIX_VALID},
	[NOTATION_HOST_OR_PREFIX] = {.valid = NOTATION_HOST_OR_PREFIX_VALID},
	[NOTATION_PREFIX_OR_ANY] = {.valid = NOTATION_PREFIX_OR_ANY_VALID},
	[NOTATION_PROTOCOL] = {.valid = NOTATION_PROTOCOL_VALID},
	[NOTATION_PORT_RANGE] = {.valid = NOTATION_PORT_RANGE_VALID},
	[NOTATION_ICMP_RANGE] = {.valid = NOTATION_ICMP_RANGE_VALID},
	[NOTATION_MODE] = {.valid = NOTATION_MODE_VALID, .first = "", .longest = 4,
		.characters = {0xff000000000000, 0x0, 0x0, 0x0}},
	[NOTATION_ROUTE] = {.valid = NOTATION_ROUTE_VALID},
	[NOTATION_DOMAIN] = {.valid = NOTATION_DOMAIN_VALID},
};
