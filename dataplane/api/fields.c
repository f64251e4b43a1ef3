// SPDX-License-Identifier: Apache-2.0
#include "api/fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/check.h"

const char *const *api_settable(const ProtobufCMessageDescriptor *type)
{
	const struct message_limits *of;
	unsigned i, j;

	for (i = 0; i < n_api_requests; i++) {
		for (j = 0; j < api_requests[i]->n_fields; j++) {
			of = api_requests[i]->fields[j].of;
			if (of && of->type == type && of->settable)
				return of->settable;
		}
	}
	return NULL;
}

const void *api_field_find(const char *name, const void *rows, size_t n, size_t size)
{
	const uint8_t *row = rows;
	size_t i;

	for (i = 0; i < n; i++, row += size)
		if (strcmp(*(const char *const *)row, name) == 0)
			return row;
	return NULL;
}

const char *api_field_missing(const ProtobufCMessageDescriptor *type, const void *rows, size_t n, size_t size)
{
	const char *const *name = api_settable(type);

	while (*name && api_field_find(*name, rows, n, size))
		name++;
	return *name;
}

void api_field_verify(const ProtobufCMessageDescriptor *type, const void *rows, size_t n, size_t size)
{
	const char *missing = api_field_missing(type, rows, n, size);

	if (missing == NULL)
		return;
	fprintf(stderr, "%s.%s: api/*.proto has this field, but nothing decodes it\n", type->short_name, missing);
	abort();
}
