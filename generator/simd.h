// SPDX-License-Identifier: Apache-2.0
// Wide moves, and functions that are compiled twice: for any x86-64, and for AVX2. The loader selects one at start.
#pragma once

#include <stdint.h>
#include <string.h>

#include <rte_common.h>

#include "base/prefetch.h"

// Not with the address sanitizer, as the selection would run before its run-time is ready, and not with clang, whose
// clones other files cannot call.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define WITH_AVX2 __attribute__((target_clones("avx2", "default")))
#else
#define WITH_AVX2
#endif

typedef uint8_t wide __attribute__((vector_size(32), aligned(1), may_alias));
typedef uint8_t wide_aligned __attribute__((vector_size(32), may_alias));

static __rte_always_inline void move64(uint8_t *dst, const uint8_t *src) // both aligned
{
	((wide_aligned *)dst)[0] = ((const wide_aligned *)src)[0];
	((wide_aligned *)dst)[1] = ((const wide_aligned *)src)[1];
}
