// SPDX-License-Identifier: Apache-2.0
// Checks requests against the options of their fields (api/options.proto) before a method sees them: ranges, notations,
// enums, numbers of items, required fields, and the fields that a Set may name. The method checks whether fields
// contradict each other, and whether the objects that they name exist.
#pragma once

#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "base/check.h"
#include "base/error.h"

#define LIMIT_KEY 1u
#define LIMIT_REQUIRED 2u
#define LIMIT_POWER_OF_TWO 4u
#define LIMIT_DISTINCT 8u
#define LIMIT_PARTIAL 16u

struct field_limits {
	uint16_t field; // index in the message's descriptor
	uint16_t flags;
	uint8_t notation;     // enum notation, of text
	uint32_t items;       // of a list, 0 = any number
	uint64_t min, max;    // of numbers and of numbers of bytes, max 0 = any; of text: max bytes
	uint64_t multiple_of; // 0 = any
	const struct message_limits *of;
};

struct choice_limits { // a required oneof
	const char *name;
	uint16_t field; // index of its first member
};

struct message_limits {
	const ProtobufCMessageDescriptor *type;
	const struct field_limits *fields;
	unsigned n_fields;
	const struct choice_limits *choices;
	unsigned n_choices;
	const char *const *settable; // fields that a Set may name, up to a NULL; NULL: there is no Set
};

extern const struct message_limits *const api_requests[];
extern const unsigned n_api_requests;

// Returns 0, or -EINVAL or -ERANGE with *err filled. In a request with many objects err->index is the position of the
// refused one, and err->field begins with its noun: "route.prefix".
int api_check(const ProtobufCMessage *request, struct error *err);

// Returns the fields of a message that a Set may name, up to a NULL; NULL: there is no Set of this message.
const char *const *api_settable(const ProtobufCMessageDescriptor *type);

// Tables of what decodes the fields that a Set may name: n rows of `size` bytes that begin with a field's name.
const void *api_field_find(const char *name, const void *rows, size_t n, size_t size); // NULL: there is no such row
// Returns the first field that a Set may name and that has no row; NULL: there is none.
const char *api_field_missing(const ProtobufCMessageDescriptor *type, const void *rows, size_t n, size_t size);
void api_field_verify(const ProtobufCMessageDescriptor *type, const void *rows, size_t n, size_t size); // or abort()

#define API_FIELD_ROWS(rows) (rows), sizeof(rows) / sizeof((rows)[0]), sizeof((rows)[0])
#define API_FIELD_FIND(rows, name) ((typeof(&(rows)[0]))api_field_find(name, API_FIELD_ROWS(rows)))

// Checks a table before main(), so that no request meets a field of the API that nothing decodes.
#define API_FIELDS(type, rows)                                                               \
	__attribute__((constructor)) static void rows##_verify(void)                         \
	{                                                                                    \
		api_field_verify(&corelane__v1__##type##__descriptor, API_FIELD_ROWS(rows)); \
	}
