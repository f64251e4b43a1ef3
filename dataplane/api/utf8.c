// SPDX-License-Identifier: Apache-2.0
#include "api/utf8.h"

#include <stddef.h>
#include <stdint.h>

// Length of the character at s, 0 when it is not one (RFC 3629: shortest form, no surrogates, up to U+10FFFF).
static unsigned utf8_char(const uint8_t *s)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned i, n = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf8 ? 4 : 0;
	uint32_t c;

	if (n < 2)
		return n;
	c = s[0] & (0x7fu >> n);
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	return c < least[n] || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ? 0 : n;
}

bool utf8_valid(const char *s)
{
	const uint8_t *p = (const uint8_t *)s;
	unsigned n;

	for (; *p; p += n) {
		n = utf8_char(p);
		if (n == 0)
			return false;
	}
	return true;
}

char *utf8_repair(char *s)
{
	uint8_t *p = (uint8_t *)s;
	unsigned n;

	for (; *p; p += n) {
		n = utf8_char(p);
		if (n == 0) {
			*p = '?';
			n = 1;
		}
	}
	return s;
}

// One value of a text or message field.
static const char *value_invalid(const ProtobufCFieldDescriptor *f, const void *value, const char **field)
{
	if (value == NULL)
		return NULL;
	if (f->type == PROTOBUF_C_TYPE_MESSAGE)
		return utf8_invalid_field(value, field);
	*field = f->name;
	return utf8_valid(value) ? NULL : value;
}

static const char *field_invalid(const ProtobufCMessage *msg, const ProtobufCFieldDescriptor *f, const char **field)
{
	const uint8_t *base = (const uint8_t *)msg;
	const void *const *values = (const void *const *)(base + f->offset);
	const char *bad = NULL;
	size_t i, n = 1;

	if (f->label == PROTOBUF_C_LABEL_REPEATED) {
		n = *(const size_t *)(base + f->quantifier_offset);
		values = *values;
	} else if ((f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) &&
		   *(const uint32_t *)(base + f->quantifier_offset) != f->id) {
		n = 0; // the oneof holds another member
	}
	for (i = 0; i < n && bad == NULL; i++)
		bad = value_invalid(f, values[i], field);
	return bad;
}

const char *utf8_invalid_field(const ProtobufCMessage *msg, const char **field)
{
	const char *bad = NULL;
	unsigned i;

	for (i = 0; i < msg->descriptor->n_fields && bad == NULL; i++) {
		const ProtobufCFieldDescriptor *f = &msg->descriptor->fields[i];

		if (f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_MESSAGE)
			bad = field_invalid(msg, f, field);
	}
	return bad;
}
