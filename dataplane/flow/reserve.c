// SPDX-License-Identifier: Apache-2.0
#include "flow/reserve.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#include <rte_common.h>

#include "base/memory_left.h"

#define PAGE (2ull << 20)

static uint64_t round_up(uint64_t bytes)
{
	return RTE_ALIGN_CEIL(bytes, PAGE);
}

void *reserve_range(uint64_t bytes)
{
	uint64_t size = round_up(bytes);
	uint8_t *p = mmap(NULL, size + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), *start;

	if (p == MAP_FAILED)
		return NULL;
	start = RTE_PTR_ALIGN_CEIL(p, PAGE);
	if (start > p)
		munmap(p, (size_t)(start - p));
	munmap(start + size, (size_t)(p + PAGE - start));
	return start;
}

// Allocating more than there is would not fail: the kernel would kill a process, perhaps this one.
bool reserve_available(uint64_t bytes)
{
	return bytes < memory_left("");
}

// Populates the range at once, so that missing memory is an error here and not a fault in a worker.
static int reserve_populate(uint8_t *at, uint64_t bytes)
{
	if (!reserve_available(bytes))
		return -ENOMEM;
	if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) ==
	    MAP_FAILED)
		return -ENOMEM;
	madvise(at, bytes, MADV_HUGEPAGE); // best effort: without it lookups have more TLB misses
	if (madvise(at, bytes, MADV_POPULATE_WRITE) == 0)
		return 0;
	mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	return -ENOMEM;
}

int reserve_fill(void *range, uint64_t from, uint64_t to)
{
	from = round_up(from);
	to = round_up(to);
	return from < to ? reserve_populate((uint8_t *)range + from, to - from) : 0;
}

void reserve_release(void *range, uint64_t bytes)
{
	munmap(range, round_up(bytes));
}
