// SPDX-License-Identifier: Apache-2.0
// Memory of one request, or of one item of a stream, which is freed all at once.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena_chunk;

// All zero is an empty arena without a limit.
struct arena {
	struct arena_chunk *chunks;
	size_t used;  // bytes given out
	size_t limit; // most that arena_alloc() gives out; 0 = no limit
	bool refused; // the limit was hit
};

void *arena_alloc(struct arena *a, size_t size); // zeroed; NULL: over the limit, or out of memory
void arena_reset(struct arena *a);               // keeps one chunk for the next use
void arena_free(struct arena *a);
