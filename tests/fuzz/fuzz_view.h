// SPDX-License-Identifier: Apache-2.0
// A parser of frames that is independent of the router's, and the checksums that a fuzzer would hardly guess.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct view {
	bool tunnel, erspan; // ERSPAN is only sent
	uint32_t id;         // label or VNI
	unsigned ip, inner;  // where the headers begin, 0 = none
};

struct view view(const uint8_t *data, size_t size);

// The VLAN tags in front of a frame that name a sub-port: one of 802.1Q, or one of 802.1ad and one of 802.1Q. len:
// bytes of the tags, with those of a tag in front of them that has only a priority; 0 = the frame has none.
struct view_tags {
	uint16_t outer, id;
	unsigned len;
};

struct view_tags view_tags(const uint8_t *data, size_t size);

enum { FIX_IP = 1, FIX_INNER = 2, FIX_ICMP = 4 };
void fix(uint8_t *frame, size_t size, uint8_t how);
