// SPDX-License-Identifier: Apache-2.0
// The tests run in this order: the first ones have a kernel without asynchronous I/O.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_common.h>
#include <rte_log.h>

#include "base/event_signal.h"
#include "base/log.h"
#include "base/system_calls.h"
#include "testing/wait_until.h"

#define FULL (UINT64_MAX - 1) // as much as can be written

static unsigned setups, refused; // calls of io_setup
static bool no_setup;

long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (number == SYS_io_setup && no_setup) {
		__atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED);
		errno = EAGAIN;
		return -1;
	}
	if (number == SYS_io_setup)
		__atomic_add_fetch(&setups, 1, __ATOMIC_RELAXED);
	return __real_syscall(number, a, b, c, d, e, f);
}

static void *signal_times(void *arg)
{
	int *fd_times = arg, i;

	for (i = 0; i < fd_times[1]; i++)
		assert_int_equal(event_signal(fd_times[0]), 0);
	return NULL;
}

// On a new thread, which has no context yet.
static void signal_from_thread(int fd, int times)
{
	int fd_times[] = {fd, times};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, signal_times, fd_times), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static uint64_t value_of(int fd)
{
	uint64_t n = 0;

	assert_int_equal(eventfd_read(fd, &n), 0);
	return n;
}

static void written_without_asynchronous_io(void **state)
{
	int fd = eventfd(0, 0);

	no_setup = true;
	assert_int_equal(event_signal_init(), 0);
	assert_int_equal(event_signal_init(), 0);
	assert_int_equal(event_signal_prepare(-1), -EBADF);
	assert_int_equal(event_signal_prepare(fd), 0);
	signal_from_thread(fd, 3);
	assert_int_equal(value_of(fd), 3);
	assert_int_equal(eventfd_write(fd, FULL), 0);
	signal_from_thread(fd, 3); // the peer has a signal to read already
	assert_true(value_of(fd) == FULL);
	assert_int_equal(event_signal(-1), -EBADF);
	assert_int_equal(setups, 0);
	assert_int_equal(refused, 5); // by two inits and three threads
	close(fd);
}

// Threads get no context of their own any more, because other programs have them all.
static void shared_context(void **state)
{
	enum { THREADS = 4, TIMES = 5000 };
	int fds[THREADS][2], full = eventfd(0, 0);
	pthread_t threads[THREADS];
	unsigned i;

	no_setup = false;
	assert_int_equal(event_signal_init(), 0);
	assert_int_equal(setups, 1);
	no_setup = true;
	assert_int_equal(event_signal_prepare(full), 0);
	assert_int_equal(fcntl(full, F_GETFL) & O_NONBLOCK, 0);
	assert_int_equal(eventfd_write(full, FULL), 0);
	signal_from_thread(full, 3);
	assert_true(value_of(full) == UINT64_MAX);
	close(full);
	for (i = 0; i < THREADS; i++) {
		fds[i][0] = eventfd(0, 0);
		fds[i][1] = TIMES;
		assert_int_equal(pthread_create(&threads[i], NULL, signal_times, fds[i]), 0);
	}
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(value_of(fds[i][0]), TIMES);
		close(fds[i][0]);
	}
	assert_int_equal(setups, 1);
}

static void own_context(void **state)
{
	int fd = eventfd(0, 0);

	no_setup = false;
	setups = 0;
	signal_from_thread(fd, 1000); // more than a context has requests
	assert_int_equal(value_of(fd), 1000);
	assert_int_equal(setups, 1);
	close(fd);
}

// The counter stays at its maximum, and the signals after the peer has read it arrive.
static void full_and_blocking(void **state)
{
	int fd = eventfd(0, 0);

	assert_int_equal(eventfd_write(fd, FULL), 0);
	signal_from_thread(fd, 100);
	assert_true(value_of(fd) == UINT64_MAX);
	signal_from_thread(fd, 2);
	assert_int_equal(value_of(fd), 2);
	close(fd);
}

static void counts_system_calls(void **state)
{
	int fd = eventfd(0, 0);
	uint64_t before = system_calls;

	assert_int_equal(event_signal(fd), 0);
	assert_int_equal(system_calls, before + 1);
	close(fd);
}

static void not_an_eventfd(void **state)
{
	int pipes[2];

	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(event_signal(-1), -EBADF);
	assert_int_equal(event_signal(pipes[1]), -EINVAL);
	close(pipes[0]);
	close(pipes[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(written_without_asynchronous_io),
					   cmocka_unit_test(shared_context),
					   cmocka_unit_test(own_context),
					   cmocka_unit_test(full_and_blocking),
					   cmocka_unit_test(counts_system_calls),
					   cmocka_unit_test(not_an_eventfd)};

	rte_log_set_level((uint32_t)corelane_logtype, RTE_LOG_EMERG);
	alarm(PATIENCE_MS / 1000); // a signal that waits would wait for ever
	return cmocka_run_group_tests(tests, NULL, NULL);
}
