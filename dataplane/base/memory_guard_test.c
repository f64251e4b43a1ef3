// SPDX-License-Identifier: Apache-2.0
#include "base/memory_guard.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SIZE (64 * 1024)

static unsigned losses;

static void told(void)
{
	losses++;
}

// Shared memory with ones, whose file is in *fd.
static volatile uint8_t *shared(int *fd)
{
	volatile uint8_t *m;
	unsigned i;

	*fd = memfd_create("guarded", MFD_CLOEXEC);
	assert_int_equal(ftruncate(*fd, SIZE), 0);
	m = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	assert_ptr_not_equal(m, MAP_FAILED);
	for (i = 0; i < SIZE; i++)
		m[i] = 1;
	return m;
}

static void drop(volatile uint8_t *m, int fd)
{
	munmap((void *)m, SIZE);
	close(fd);
}

// All of the region is zeroes after the first access, and can be written to. The other region is as it was.
static void is_lost(int fault)
{
	int fd, other_fd, id, other_id;
	volatile uint8_t *m = shared(&fd), *other = shared(&other_fd);

	losses = 0;
	id = memory_guard_add((void *)m, SIZE, told);
	other_id = memory_guard_add((void *)other, SIZE, told);
	assert_in_range(id, 0, INT32_MAX);
	assert_in_range(other_id, 0, INT32_MAX);
	assert_false(memory_guard_lost(id));
	if (fault == SIGBUS)
		assert_int_equal(ftruncate(fd, SIZE / 2), 0);
	else
		assert_int_equal(mprotect((void *)(m + SIZE / 2), SIZE / 2, PROT_NONE), 0);
	assert_int_equal(m[0], 1);
	assert_int_equal(losses, 0);
	assert_int_equal(m[SIZE - 1], 0);
	assert_true(memory_guard_lost(id));
	assert_int_equal(losses, 1);
	m[0]++;
	assert_int_equal(m[0], 1);
	assert_int_equal(other[SIZE - 1], 1);
	assert_false(memory_guard_lost(other_id));
	assert_int_equal(losses, 1);
	memory_guard_remove(id);
	memory_guard_remove(other_id);
	drop(m, fd);
	drop(other, other_fd);
}

static void file_that_shrinks(void **state)
{
	is_lost(SIGBUS);
}

static void access_that_is_not_allowed(void **state)
{
	is_lost(SIGSEGV);
}

static void nobody_is_told(void **state)
{
	int fd, id;
	volatile uint8_t *m = shared(&fd);

	id = memory_guard_add((void *)m, SIZE, NULL);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(m[0], 0);
	assert_true(memory_guard_lost(id));
	memory_guard_remove(id);
	assert_false(memory_guard_lost(-1));
	drop(m, fd);
}

// What such a thread touches outside of guarded regions is replaced page by page, if its file lacks it.
static void pages_of_a_thread(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd;
	volatile uint8_t *m = shared(&fd);

	memory_guard_thread();
	assert_int_equal(ftruncate(fd, (off_t)page), 0);
	assert_int_equal(m[0], 1);
	assert_false(memory_guard_thread_lost());
	assert_int_equal(m[SIZE - 1], 0);
	assert_true(memory_guard_thread_lost());
	assert_false(memory_guard_thread_lost());
	drop(m, fd);
}

enum death { SHRUNK, NOT_ALLOWED, NOT_ALLOWED_TO_A_THREAD, SENT };

static void die(enum death how)
{
	const struct rlimit none = {};
	int fd;
	volatile uint8_t *m = shared(&fd);

	setrlimit(RLIMIT_CORE, &none);
	signal(SIGBUS, SIG_DFL); // of cmocka or a sanitizer
	signal(SIGSEGV, SIG_DFL);
	memory_guard_add((void *)(m + SIZE / 2), SIZE / 2, NULL);
	if (how == NOT_ALLOWED_TO_A_THREAD)
		memory_guard_thread();
	if (how == SHRUNK)
		assert_int_equal(ftruncate(fd, 0), 0);
	else if (how == SENT)
		raise(SIGSEGV);
	else
		mprotect((void *)m, SIZE, PROT_NONE);
	m[0]++;
}

// Faults elsewhere end the process, by their own signal.
static void other_faults(void **state)
{
	static const int signals[] = {
		[SHRUNK] = SIGBUS, [NOT_ALLOWED] = SIGSEGV, [NOT_ALLOWED_TO_A_THREAD] = SIGSEGV, [SENT] = SIGSEGV};
	unsigned how;
	int status;
	pid_t pid;

	for (how = SHRUNK; how <= SENT; how++) {
		fflush(NULL);
		pid = fork();
		if (pid == 0) {
			die(how);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), signals[how]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_faults), // before this thread's pages are replaced
		cmocka_unit_test(file_that_shrinks), cmocka_unit_test(access_that_is_not_allowed),
		cmocka_unit_test(nobody_is_told),    cmocka_unit_test(pages_of_a_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
