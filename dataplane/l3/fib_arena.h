// SPDX-License-Identifier: Apache-2.0
// FIB: the memory of nodes, one reserved address range. A block is one to FIB_MAX_UNITS units of 64 bytes and is named
// by the number of its first unit; 0 is none. Master thread only, except fib_at().
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FIB_UNIT 64
#define FIB_MAX_UNITS 18 // of the largest node

extern uint8_t *fib_arena; // workers: ro, set once by fib_init()

static inline void *fib_at(uint32_t unit)
{
	return fib_arena + (uint64_t)unit * FIB_UNIT;
}

// 0: no memory. Some is kept for removals (removal = true), so that routes can still be deleted when the range is full.
uint32_t fib_arena_alloc(unsigned units, bool removal);
void fib_arena_free(uint32_t unit);   // at once: a block that no worker has seen
void fib_arena_retire(uint32_t unit); // after a grace period
void fib_arena_flush(void);           // starts the grace period of what was retired up to now
uint64_t fib_arena_used(void);        // bytes handed out, retired ones included
