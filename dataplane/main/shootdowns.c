// SPDX-License-Identifier: Apache-2.0
#include "main/shootdowns.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#include "base/log.h"
#include "worker/worker.h"

#define TICK_NS 1000000L
#define TICKS 1000 // a second
#define PAGE 4096

static struct {
	pthread_t thread;
	bool running;        // master
	uint32_t per_second; // master: w, svc-debug: r; 0: end
} svc;

// Writing makes the page present again, so that there is something to forget.
static void shoot(volatile char *page)
{
	*page = 1;
	mprotect((void *)page, PAGE, PROT_READ);
	mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE);
}

static void *svc_main(void *arg)
{
	struct timespec next;
	uint64_t owed = 0; // in parts of TICKS
	uint32_t rate;

	pthread_setname_np(pthread_self(), "svc-debug");
	clock_gettime(CLOCK_MONOTONIC, &next);
	while ((rate = __atomic_load_n(&svc.per_second, __ATOMIC_RELAXED)) > 0) {
		for (owed += rate; owed >= TICKS; owed -= TICKS)
			shoot(arg);
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

static int start(struct error *err)
{
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret = page == MAP_FAILED ? errno : pthread_create(&svc.thread, NULL, svc_main, page);

	svc.running = ret == 0;
	if (ret == 0)
		return 0;
	if (page != MAP_FAILED)
		munmap(page, PAGE);
	return error_set(err, ret, NULL, NULL, NULL, "the thread svc-debug cannot be started");
}

void shootdowns_stop(void)
{
	__atomic_store_n(&svc.per_second, 0, __ATOMIC_RELAXED);
	if (svc.running)
		pthread_join(svc.thread, NULL); // takes a tick
	svc.running = false;
}

int shootdowns_set(uint32_t per_second, struct error *err)
{
	char text[16], valid[48];

	snprintf(text, sizeof(text), "%u", per_second);
	snprintf(valid, sizeof(valid), "0 to %d", SHOOTDOWNS_MAX);
	if (!worker_debug_allowed)
		return error_set(err, EPERM, NULL, NULL, "corelaned --allow-debug", "this daemon was started without debugging");
	if (per_second > SHOOTDOWNS_MAX)
		return error_set(err, EINVAL, "per_second", text, valid, "are too many");
	LOG(NOTICE, "%u TLB shootdowns per second on purpose", per_second);
	if (per_second == 0) {
		shootdowns_stop();
		return 0;
	}
	__atomic_store_n(&svc.per_second, per_second, __ATOMIC_RELAXED);
	return svc.running ? 0 : start(err);
}
