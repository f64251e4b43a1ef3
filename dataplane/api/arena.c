// SPDX-License-Identifier: Apache-2.0
// A list of chunks, each twice as large as the one before, up to CHUNK_MAX.
#include "api/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_MIN (4 * 1024)
#define CHUNK_MAX (1024 * 1024)
#define CHUNK_KEPT (64 * 1024) // arena_reset() frees larger ones

struct arena_chunk {
	struct arena_chunk *next;
	size_t size, used;
	alignas(max_align_t) uint8_t data[];
};

static struct arena_chunk *chunk_add(struct arena *a, size_t size)
{
	size_t n = a->chunks ? a->chunks->size * 2 : CHUNK_MIN;
	struct arena_chunk *c;

	if (n > CHUNK_MAX)
		n = CHUNK_MAX;
	if (n < size)
		n = size;
	c = malloc(sizeof(*c) + n);
	if (c == NULL)
		return NULL;
	c->size = n;
	c->used = 0;
	c->next = a->chunks;
	a->chunks = c;
	return c;
}

void *arena_alloc(struct arena *a, size_t size)
{
	struct arena_chunk *c = a->chunks;
	void *p;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	if (size == 0)
		size = alignof(max_align_t); // callers take NULL for a failure
	if (a->limit != 0 && (size > a->limit || a->used > a->limit - size)) {
		a->refused = true;
		return NULL;
	}
	if ((c == NULL || c->size - c->used < size) && (c = chunk_add(a, size)) == NULL)
		return NULL;
	p = c->data + c->used;
	c->used += size;
	a->used += size;
	return memset(p, 0, size);
}

void arena_reset(struct arena *a)
{
	struct arena_chunk *c, *next, *kept = NULL;

	for (c = a->chunks; c != NULL; c = next) {
		next = c->next;
		if (kept == NULL && c->size <= CHUNK_KEPT)
			kept = c;
		else
			free(c);
	}
	if (kept != NULL) {
		kept->next = NULL;
		kept->used = 0;
	}
	a->chunks = kept;
	a->used = 0;
}

void arena_free(struct arena *a)
{
	struct arena_chunk *c, *next;

	for (c = a->chunks; c != NULL; c = next) {
		next = c->next;
		free(c);
	}
	*a = (struct arena){0};
}
