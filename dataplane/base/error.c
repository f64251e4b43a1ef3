// SPDX-License-Identifier: Apache-2.0
// Fills a struct error.
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#undef error_set // the macro for the analyzer

static void error_copy(char *dst, size_t size, const char *src)
{
	snprintf(dst, size, "%s", src ? src : "");
}

int error_set(struct error *err, int code, const char *field, const char *value, const char *valid, const char *fmt,
	      ...)
{
	char text[256];
	va_list ap;

	if (err == NULL)
		return -code;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	memset(err, 0, sizeof(*err));
	err->code = code;
	error_copy(err->field, sizeof(err->field), field);
	error_copy(err->value, sizeof(err->value), value);
	error_copy(err->valid, sizeof(err->valid), valid);
	snprintf(err->message, sizeof(err->message), "%s%s%s%s%s%s%s%s", err->field, value ? " '" : "", err->value,
		 value ? "'" : "", field ? ": " : "", text, valid ? "; valid: " : "", err->valid);
	return -code;
}

int error_full(struct error *err, int code, const char *field, const char *value, unsigned most, const char *things)
{
	char valid[128];

	if (code == ENOMEM)
		return error_set(err, code, field, value, NULL, "no memory");
	snprintf(valid, sizeof(valid), "up to %u %s", most, things);
	return error_set(err, code, field, value, valid, "no room for more");
}
