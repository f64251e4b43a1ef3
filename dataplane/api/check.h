// SPDX-License-Identifier: Apache-2.0
// Checks requests before a method sees them: that texts are UTF-8, and the options of their fields (api/options.proto),
// which are ranges, notations, enums, numbers of items, required fields, and the fields that a Set may name. The method
// checks whether fields contradict each other, and whether the objects that they name exist.
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

// Returns 0, or -EINVAL or -ERANGE with *err filled. Of a message that is no request only the texts are checked, as
// deep as they are. In a request with many objects err->index is the position of the
// refused one, and err->field begins with its noun: "route.prefix".
int api_check(const ProtobufCMessage *request, struct error *err);
