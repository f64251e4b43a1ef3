// SPDX-License-Identifier: Apache-2.0
// Tables of objects by id: an array of pointers, where NULL is a free id. Master thread only.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Returns the object with the lowest id from `from` on, or NULL.
static inline void *id_table_next(const void *table, unsigned size, unsigned from)
{
	void *const *t = table;

	while (from < size && t[from] == NULL)
		from++;
	return from < size ? t[from] : NULL;
}

// Returns the object that has this name in its array of characters at offset `at`, or NULL.
static inline void *id_table_find(const void *table, unsigned size, size_t at, const char *name)
{
	void *const *t = table;
	unsigned i;

	for (i = 0; i < size; i++)
		if (t[i] && strcmp((const char *)t[i] + at, name) == 0)
			return t[i];
	return NULL;
}

static inline unsigned id_table_count(const void *table, unsigned size)
{
	void *const *t = table;
	unsigned i, n = 0;

	for (i = 0; i < size; i++)
		n += t[i] != NULL;
	return n;
}

// Returns the lowest free id from `from` on, or size.
static inline unsigned id_table_free(const void *table, unsigned size, unsigned from)
{
	void *const *t = table;

	while (from < size && t[from])
		from++;
	return from;
}

// Returns the free id that follows *last, or 0. Ids from 1 on are used in turn, so that each is reused as late as
// possible.
static inline uint16_t id_table_in_turn(const void *table, unsigned size, uint16_t *last)
{
	void *const *t = table;
	unsigned tries;

	for (tries = 1; tries < size; tries++) {
		*last = (uint16_t)(*last % (size - 1) + 1);
		if (t[*last] == NULL)
			return *last;
	}
	return 0;
}
