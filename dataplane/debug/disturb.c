// SPDX-License-Identifier: Apache-2.0
#include "debug/disturb.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <time.h>

#include "base/log.h"
#include "debug/debug.h"

#define TICK_NS 1000000L
#define TICKS 1000 // per second
#define PAGE 4096

static struct {
	pthread_t thread;
	bool running;        // master
	uint32_t per_second; // written by the master, read by svc-debug; 0 ends it
	uint32_t what;       // enum disturbance; written by the master, read by svc-debug
} svc;

// Writes first, so that the page is present and TLBs have an entry to flush.
static void disturb_shoot(volatile char *page)
{
	*page = 1;
	mprotect((void *)page, PAGE, PROT_READ);
	mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE);
}

// Text pages are unchanged pages of a file: the next access reads them again, usually from the page cache.
static int give_back_text(struct dl_phdr_info *info, size_t size, void *arg)
{
	const uintptr_t mask = PAGE - 1;
	unsigned i;

	(void)size, (void)arg;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + p->p_vaddr, to = from + p->p_memsz;

		if (p->p_type == PT_LOAD && (p->p_flags & (PF_X | PF_W)) == PF_X)
			madvise((void *)(from & ~mask), ((to + mask) & ~mask) - (from & ~mask),
				MADV_DONTNEED); // fails for the vdso, which does not matter
	}
	return 0;
}

static void disturb_once(volatile char *page)
{
	if (__atomic_load_n(&svc.what, __ATOMIC_RELAXED) == DISTURB_FAULTS)
		dl_iterate_phdr(give_back_text, NULL);
	else
		disturb_shoot(page);
}

static void *disturb_svc_main(void *arg)
{
	struct timespec next;
	uint64_t owed = 0; // in units of 1 / TICKS
	uint32_t rate;

	pthread_setname_np(pthread_self(), "svc-debug");
	clock_gettime(CLOCK_MONOTONIC, &next);
	while ((rate = __atomic_load_n(&svc.per_second, __ATOMIC_RELAXED)) > 0) {
		for (owed += rate; owed >= TICKS; owed -= TICKS)
			disturb_once(arg);
		next.tv_nsec += TICK_NS;
		if (next.tv_nsec >= TICKS * TICK_NS) {
			next.tv_nsec -= TICKS * TICK_NS;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	munmap(arg, PAGE);
	return NULL;
}

static int disturb_start(struct error *err)
{
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret = page == MAP_FAILED ? errno : pthread_create(&svc.thread, NULL, disturb_svc_main, page);

	svc.running = ret == 0;
	if (ret == 0)
		return 0;
	if (page != MAP_FAILED)
		munmap(page, PAGE);
	return error_set(err, ret, NULL, NULL, NULL, "the thread svc-debug cannot be started");
}

void disturb_stop(void)
{
	__atomic_store_n(&svc.per_second, 0, __ATOMIC_RELAXED);
	if (svc.running)
		pthread_join(svc.thread, NULL); // takes up to a tick
	svc.running = false;
}

int disturb_set(enum disturbance what, uint32_t per_second, struct error *err)
{
	int ret = debug_check_allowed(err);

	if (ret < 0)
		return ret;
	LOG(NOTICE, "injecting %u %s per second", per_second,
	    what == DISTURB_FAULTS ? "losses of the program's pages" : "TLB shootdowns");
	if (per_second == 0) {
		disturb_stop();
		return 0;
	}
	__atomic_store_n(&svc.what, what, __ATOMIC_RELAXED);
	__atomic_store_n(&svc.per_second, per_second, __ATOMIC_RELAXED);
	return svc.running ? 0 : disturb_start(err);
}
