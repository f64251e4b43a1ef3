// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rte_common.h>

static __rte_always_inline void prefetch_write(const void *p)
{
#ifdef __x86_64__ // the builtin does not emit it for the CPU baseline that DPDK is built for
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}
