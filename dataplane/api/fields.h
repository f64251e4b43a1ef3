// SPDX-License-Identifier: Apache-2.0
// The fields that a Set may name (api/options.proto), and tables of what decodes them.
#pragma once

#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

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
