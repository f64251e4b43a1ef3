// SPDX-License-Identifier: Apache-2.0
// Reads and writes fields of packed protobuf messages without unpacking them: a kept state has hundreds of thousands of
// objects, and most of them are only copied.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slice {
	const uint8_t *data;
	size_t n;
};

struct wire_field {
	uint32_t number;
	struct slice whole; // with its tag
	struct slice bytes; // of a text, message or list; of a number its varint or its 4 or 8 bytes
};

// Moves `rest` past its first field. Returns 1, 0 at the end, -EBADMSG.
int wire_next(struct slice *rest, struct wire_field *out);

struct bytes { // a buffer that grows
	uint8_t *data;
	size_t n, room;
};

int bytes_reserve(struct bytes *b, size_t more); // 0 or -ENOMEM
int bytes_add(struct bytes *b, struct slice s);
int wire_add(struct bytes *b, uint32_t number, struct slice s); // a field with a length
