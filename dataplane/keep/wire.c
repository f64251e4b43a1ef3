// SPDX-License-Identifier: Apache-2.0
#include "keep/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VARINT_MAX 10

enum wire_type { WIRE_VARINT, WIRE_64 = 1, WIRE_LENGTH = 2, WIRE_32 = 5 };

static int wire_varint(struct slice *rest, uint64_t *out)
{
	unsigned i;

	*out = 0;
	for (i = 0; i < rest->n && i < VARINT_MAX; i++) {
		*out |= (uint64_t)(rest->data[i] & 0x7f) << (7 * i);
		if (!(rest->data[i] & 0x80)) {
			*rest = (struct slice){rest->data + i + 1, rest->n - i - 1};
			return 0;
		}
	}
	return -EBADMSG;
}

int wire_next(struct slice *rest, struct wire_field *out)
{
	const uint8_t *begin = rest->data, *value;
	uint64_t tag, n;

	if (rest->n == 0)
		return 0;
	if (wire_varint(rest, &tag) < 0)
		return -EBADMSG;
	value = rest->data;
	switch (tag & 7) {
	case WIRE_VARINT:
		if (wire_varint(rest, &n) < 0)
			return -EBADMSG;
		n = (uint64_t)(rest->data - value);
		*rest = (struct slice){value, rest->n + n};
		break;
	case WIRE_64:
	case WIRE_32:
		n = (tag & 7) == WIRE_64 ? 8 : 4;
		break;
	case WIRE_LENGTH:
		if (wire_varint(rest, &n) < 0)
			return -EBADMSG;
		value = rest->data;
		break;
	default:
		return -EBADMSG;
	}
	if (n > rest->n)
		return -EBADMSG;
	*rest = (struct slice){value + n, rest->n - n};
	out->number = (uint32_t)(tag >> 3);
	out->bytes = (struct slice){value, n};
	out->whole = (struct slice){begin, (size_t)(rest->data - begin)};
	return 1;
}

int bytes_reserve(struct bytes *b, size_t more)
{
	size_t room = 2 * b->room + more + 64;
	uint8_t *data;

	if (b->room - b->n >= more)
		return 0;
	data = realloc(b->data, room);
	if (data == NULL)
		return -ENOMEM;
	b->data = data;
	b->room = room;
	return 0;
}

int bytes_add(struct bytes *b, struct slice s)
{
	if (bytes_reserve(b, s.n) < 0)
		return -ENOMEM;
	if (s.n > 0)
		memcpy(b->data + b->n, s.data, s.n);
	b->n += s.n;
	return 0;
}

static int wire_add_varint(struct bytes *b, uint64_t v)
{
	if (bytes_reserve(b, VARINT_MAX) < 0)
		return -ENOMEM;
	for (; v > 0x7f; v >>= 7)
		b->data[b->n++] = (uint8_t)(v | 0x80);
	b->data[b->n++] = (uint8_t)v;
	return 0;
}

int wire_add(struct bytes *b, uint32_t number, struct slice s)
{
	if (wire_add_varint(b, (uint64_t)number << 3 | WIRE_LENGTH) < 0 || wire_add_varint(b, s.n) < 0)
		return -ENOMEM;
	return bytes_add(b, s);
}
