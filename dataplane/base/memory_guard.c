// SPDX-License-Identifier: Apache-2.0
#include "base/memory_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#define GUARDS 8192 // a vhost-user guest has up to 9 regions

// Under `lock`, addr is written last. The signal handler reads it first and sets lost.
static struct guard {
	uint8_t *addr; // NULL = free
	uint64_t size;
	void (*told)(void); // may be NULL
	int lost;
} guards[GUARDS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const int faults[] = {SIGBUS, SIGSEGV};
static struct sigaction previous[2]; // of faults
static __thread bool any_page, page_lost;

static bool memory_guard_replace(uint8_t *addr, uint64_t size)
{
	return mmap(addr, size, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		    0) != MAP_FAILED;
}

static bool memory_guard_replace_page(uint8_t *at)
{
	static const uint64_t sizes[] = {4096, 2 << 20, 1 << 30}; // a part of a huge page cannot be replaced
	unsigned i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (memory_guard_replace(at - (uintptr_t)at % sizes[i], sizes[i]))
			return true;
	return false;
}

static bool memory_guard_end(uint8_t *at)
{
	void (*told)(void);
	unsigned i;

	for (i = 0; i < GUARDS; i++) {
		uint8_t *addr = __atomic_load_n(&guards[i].addr, __ATOMIC_ACQUIRE);

		if (addr == NULL || at < addr || at >= addr + guards[i].size)
			continue;
		if (!memory_guard_replace(addr, guards[i].size))
			return false;
		told = guards[i].told;
		__atomic_store_n(&guards[i].lost, 1, __ATOMIC_RELEASE);
		if (told != NULL)
			told();
		return true;
	}
	return false;
}

// Not for SIGSEGV: a pointer to nowhere is an error of this process.
static bool memory_guard_end_page(int sig, uint8_t *at)
{
	if (sig != SIGBUS || !any_page || !memory_guard_replace_page(at))
		return false;
	page_lost = true;
	return true;
}

// The access is repeated under the previous handler. If a process has sent the signal, there was none: this one, which
// is no memory of a guest, ends the process likewise. Workers may not send signals.
static void memory_guard_pass_on(int sig, bool sent)
{
	static volatile int *volatile nowhere;

	sigaction(sig, &previous[sig == SIGSEGV], NULL);
	if (sent)
		*nowhere = 0; // analyzer: core.NullDereference: it is meant to be
}

static void memory_guard_on_fault(int sig, siginfo_t *info, void *context)
{
	bool sent = info->si_code <= 0;
	int saved = errno;

	if (sent || (!memory_guard_end(info->si_addr) && !memory_guard_end_page(sig, info->si_addr)))
		memory_guard_pass_on(sig, sent);
	errno = saved;
}

static int memory_guard_catch(unsigned fault)
{
	struct sigaction sa = {.sa_sigaction = memory_guard_on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER}, now;

	if (sigaction(faults[fault], NULL, &now) < 0)
		return -errno;
	if (now.sa_sigaction == memory_guard_on_fault)
		return 0;
	previous[fault] = now;
	return sigaction(faults[fault], &sa, NULL) < 0 ? -errno : 0;
}

// Called for every region, because a library may have installed its own handler meanwhile.
static int memory_guard_install(void)
{
	int ret = memory_guard_catch(0);

	return ret < 0 ? ret : memory_guard_catch(1);
}

static int memory_guard_enter(uint8_t *addr, uint64_t size, void (*told)(void))
{
	int i;

	for (i = 0; i < GUARDS && guards[i].addr != NULL; i++)
		;
	if (i == GUARDS)
		return -ENOSPC;
	guards[i].size = size;
	guards[i].told = told;
	guards[i].lost = 0;
	__atomic_store_n(&guards[i].addr, addr, __ATOMIC_RELEASE);
	return i;
}

int memory_guard_add(void *addr, uint64_t size, void (*told)(void))
{
	int ret;

	pthread_mutex_lock(&lock);
	ret = memory_guard_install();
	if (ret == 0)
		ret = memory_guard_enter(addr, size, told);
	pthread_mutex_unlock(&lock);
	return ret;
}

bool memory_guard_lost(int id)
{
	return id >= 0 && __atomic_load_n(&guards[id].lost, __ATOMIC_ACQUIRE);
}

void memory_guard_remove(int id)
{
	if (id >= 0)
		__atomic_store_n(&guards[id].addr, NULL, __ATOMIC_RELEASE);
}

void memory_guard_thread(void)
{
	pthread_mutex_lock(&lock);
	any_page = memory_guard_install() == 0;
	pthread_mutex_unlock(&lock);
}

bool memory_guard_thread_lost(void)
{
	bool lost = page_lost;

	page_lost = false;
	return lost;
}
