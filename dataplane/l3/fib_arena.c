// SPDX-License-Identifier: Apache-2.0
// The range is cut into pages. A page holds blocks of one size; any size may take it again when its last
// block has been freed.
#include "l3/fib_private.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/rcu.h"

#define PAGE_UNITS 1024u // 64 KiB
#define PAGE_BYTES (PAGE_UNITS * FIB_UNIT)
#define MAX_PAGES ((1u << 31) / PAGE_UNITS) // what a word can address
#define RESERVE 32                          // pages that only removals may take
#define BATCH 1000                          // retired blocks that share one grace period

struct page {
	uint32_t prev, next; // in partial[]; free pages: next
	uint32_t free;       // first of the free blocks, each holding the next one's number
	uint16_t fresh;      // units from here on have never been handed out
	uint16_t used;       // blocks
	uint8_t units;       // of a block
};

// Retired blocks wait in batches, so that a change of the FIB costs neither malloc() nor a token of its own.
struct batch {
	unsigned n;
	uint32_t units[BATCH];
};

uint8_t *fib_arena;

static struct page *pages; // page 0 is never used
static uint32_t n_pages;
static uint32_t next_page;  // the first one that was never used
static uint32_t free_pages; // list
static uint32_t n_free;
static uint32_t partial[FIB_MAX_UNITS + 1]; // pages with room, by size of block
static uint64_t used;                       // units
static struct batch *open_batch;
static unsigned waiting; // batches in their grace period

static void partial_link(uint32_t p)
{
	uint32_t *head = &partial[pages[p].units];

	pages[p].prev = 0;
	pages[p].next = *head;
	if (*head != 0)
		pages[*head].prev = p;
	*head = p;
}

static void partial_unlink(uint32_t p)
{
	struct page *page = &pages[p];

	if (page->prev != 0)
		pages[page->prev].next = page->next;
	else
		partial[page->units] = page->next;
	if (page->next != 0)
		pages[page->next].prev = page->prev;
}

static bool page_full(const struct page *page)
{
	return page->free == 0 && page->fresh + page->units > PAGE_UNITS;
}

static uint32_t page_take(unsigned units, bool removal)
{
	uint32_t p = free_pages;

	if (n_free + (n_pages - next_page) <= (removal ? 0 : RESERVE))
		return 0;
	if (p != 0) {
		free_pages = pages[p].next;
		n_free--;
	} else {
		p = next_page++;
	}
	pages[p] = (struct page){.units = (uint8_t)units};
	partial_link(p);
	return p;
}

uint32_t fib_arena_alloc(unsigned units, bool removal)
{
	uint32_t unit, p = partial[units] ? partial[units] : page_take(units, removal);
	struct page *page = &pages[p];

	if (p == 0)
		return 0;
	unit = page->free;
	if (unit != 0) {
		page->free = *(uint32_t *)fib_at(unit);
	} else {
		unit = p * PAGE_UNITS + page->fresh;
		page->fresh += page->units;
	}
	page->used++;
	if (page_full(page))
		partial_unlink(p);
	used += units;
	return unit;
}

void fib_arena_free(uint32_t unit)
{
	uint32_t p = unit / PAGE_UNITS;
	struct page *page = &pages[p];

	if (page_full(page))
		partial_link(p);
	*(uint32_t *)fib_at(unit) = page->free;
	page->free = unit;
	used -= page->units;
	if (--page->used > 0)
		return;
	partial_unlink(p);
	page->next = free_pages;
	free_pages = p;
	n_free++;
}

static void batch_free(void *arg)
{
	struct batch *b = arg;
	unsigned i;

	for (i = 0; i < b->n; i++)
		fib_arena_free(b->units[i]);
	free(b);
	waiting--;
}

void fib_arena_flush(void)
{
	if (open_batch == NULL)
		return;
	waiting++;
	rcu_defer(batch_free, open_batch);
	open_batch = NULL;
}

void fib_arena_retire(uint32_t unit)
{
	if (open_batch == NULL)
		open_batch = calloc(1, sizeof(*open_batch));
	if (open_batch == NULL) { // out of memory: wait for the grace period here
		rcu_synchronize();
		fib_arena_free(unit);
		return;
	}
	open_batch->units[open_batch->n++] = unit;
	if (open_batch->n == BATCH)
		fib_arena_flush();
}

uint64_t fib_arena_used(void)
{
	return used * FIB_UNIT;
}

int fib_init(uint64_t max_bytes)
{
	uint64_t n = max_bytes / PAGE_BYTES;
	uint8_t *p;

	if (fib_arena != NULL)
		return -EALREADY;
	if (n < 2 * RESERVE)
		return -EINVAL;
	n_pages = n < MAX_PAGES ? (uint32_t)n : MAX_PAGES;
	pages = calloc(n_pages, sizeof(*pages));
	if (pages == NULL)
		return -ENOMEM;
	p = mmap(NULL, (size_t)n_pages * PAGE_BYTES, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		int ret = -errno;

		free(pages);
		return ret;
	}
	madvise(p, (size_t)n_pages * PAGE_BYTES, MADV_HUGEPAGE); // best effort: without it lookups have more TLB misses
	*(volatile uint8_t *)p = 0;                              // workers may prefetch unit 0
	fib_arena = p;
	next_page = 1;
	return 0;
}

void fib_fini(void)
{
	unsigned i;

	fib_arena_flush();
	while (waiting > 0) {
		rcu_synchronize();
		rcu_poll();
	}
	if (fib_arena == NULL)
		return;
	munmap(fib_arena, (size_t)n_pages * PAGE_BYTES);
	free(pages);
	fib_arena = NULL;
	free_pages = n_free = 0;
	used = 0;
	for (i = 0; i <= FIB_MAX_UNITS; i++)
		partial[i] = 0;
}
