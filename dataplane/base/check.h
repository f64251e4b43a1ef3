// SPDX-License-Identifier: Apache-2.0
// The only checks of numbers and of notations of text. The values that a field of the API accepts are options of the
// field (api/options.proto); base/field_limits.h has them as numbers, and api/check.h applies them to requests.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/field_limits.h"

struct number_limits {
	uint64_t min, max;
	uint64_t multiple_of; // 0 = any number
	bool power_of_two;
};

struct notation_text {
	const char *valid;      // the accepted texts, in words
	const char *first;      // what the text begins with; NULL: base/ip.h or the field's module parses it
	uint32_t longest;       // bytes, 0 = any length
	uint64_t characters[4]; // a bit for each byte that may follow
};
extern const struct notation_text notation_texts[NOTATIONS];

// Both return 0 or -ERANGE. field is only read when the value is refused.
int check_limits(const char *field, uint64_t value, const struct number_limits *l, struct error *err);
int check_number(const char *field, uint64_t value, uint64_t min, uint64_t max, struct error *err);

// Returns 0 or -EINVAL. field is only read when the text is refused.
int check_text(const char *field, const char *text, enum notation n, struct error *err);
