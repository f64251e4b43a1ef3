// SPDX-License-Identifier: Apache-2.0
// The one checker of numbers and of notations of text. What a field of the API takes is an option of it (api/options.proto);
// base/field_limits.h has the numbers, and api/check.h applies them to requests.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/field_limits.h"

struct notation_text {
	const char *valid;      // in words
	const char *first;      // what the text begins with; NULL: base/ip.h, or the module that has the field, reads it
	uint32_t longest;       // bytes, 0 = any number
	uint64_t characters[4]; // a bit for each byte that may follow
};
extern const struct notation_text notation_texts[NOTATIONS];

// 0, or -ERANGE when value is not from min to max.
int check_number(const char *field, uint64_t value, uint64_t min, uint64_t max, struct error *err);

// 0, or -EINVAL. field is only read when the text is refused.
int check_text(const char *field, const char *text, enum notation n, struct error *err);
