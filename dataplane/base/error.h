// SPDX-License-Identifier: Apache-2.0
// A refused request: which field, what was given, what is valid.
//
// Control functions take a struct error, fill it with error_set() and return its negative errno. They change nothing
// when they refuse.
#pragma once

#include <stdint.h>

struct error {
	int code;          // positive errno, 0 = none
	uint32_t index;    // position in a repeated request
	char field[64];    // "port.queues", empty when no field is to blame
	char value[128];   // what was given
	char valid[256];   // what would have been accepted
	char message[768]; // the whole sentence
};

// Fills *err (may be NULL) and returns -code. The message reads "FIELD 'VALUE': TEXT"; valid may be NULL.
int error_set(struct error *err, int code, const char *field, const char *value, const char *valid, const char *fmt,
	      ...) __attribute__((format(printf, 6, 7)));
#ifdef __clang_analyzer__ // it sees one source file at a time
static inline int error_set_negative(int ret)
{
	if (ret >= 0)
		__builtin_unreachable();
	return ret;
}
#define error_set(...) error_set_negative(error_set(__VA_ARGS__))
#endif

// For a table that is full, or ENOMEM: "FIELD 'VALUE': no room for more; valid: up to MOST THINGS".
int error_full(struct error *err, int code, const char *field, const char *value, unsigned most, const char *things);
