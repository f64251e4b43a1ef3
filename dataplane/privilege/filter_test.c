// SPDX-License-Identifier: Apache-2.0
// Each test is a process of its own, because a filter cannot be removed.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/event_signal.h"
#include "base/memory_guard.h"
#include "privilege/filter.h"

static char said[512]; // what the process wrote to its standard error

// The status of a process that runs fn.
static int status_of(void (*fn)(void))
{
	int pair[2], status;
	ssize_t n, got = 0;
	pid_t pid;

	assert_int_equal(pipe(pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(pair[1], STDERR_FILENO);
		close(pair[0]);
		close(pair[1]);
		prctl(PR_SET_DUMPABLE, 0); // leaves no core file
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		fn();
		_exit(0);
	}
	close(pair[1]);
	while ((n = read(pair[0], said + got, sizeof(said) - 1 - (size_t)got)) > 0)
		got += n;
	said[got] = '\0';
	close(pair[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void ends_well(void (*fn)(void))
{
	int status = status_of(fn);

	assert_string_equal(said, "");
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void is_killed(void (*fn)(void), const char *thread, const char *call)
{
	char expected[128];
	int status = status_of(fn);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
	snprintf(expected, sizeof(expected), "corelaned: thread %s made system call ", thread);
	assert_int_equal(strncmp(said, expected, strlen(expected)), 0);
	snprintf(expected, sizeof(expected), "(%s), which its filter does not allow", call);
	assert_non_null(strstr(said, expected));
	assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1); // one line
}

static void need(bool ok)
{
	if (!ok)
		_exit(1);
}

static void *in_worker(void *fn)
{
	need(pthread_setname_np(pthread_self(), "pmd-fwd-0") == 0 && filter_worker() == 0);
	((void (*)(void))fn)();
	return NULL;
}

static void worker(void (*fn)(void))
{
	pthread_t thread;

	need(filter_process(FILTER_KILL) == 0);
	need(pthread_create(&thread, NULL, in_worker, fn) == 0);
	need(pthread_join(thread, NULL) == 0);
}

static int event_fd;

static void forward(void)
{
	uint64_t n = 1;
	void *p;

	need(write(event_fd, &n, sizeof(n)) == sizeof(n) && read(event_fd, &n, sizeof(n)) == sizeof(n));
	need(event_signal(event_fd) == 0 && read(event_fd, &n, sizeof(n)) == sizeof(n)); // a guest's, or a memif peer's
	p = malloc(1 << 22);                                                             // beyond the heap
	need(p != NULL);
	memset(p, 1, 1 << 22);
	free(p);
}

static void good_worker(void)
{
	event_fd = eventfd(0, 0);
	need(event_signal_init() == 0);
	worker(forward);
}

static void open_file(void)
{
	need(open("/etc/passwd", O_RDONLY) >= 0);
}

static void map_code(void)
{
	mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void worker_opens(void)
{
	worker(open_file);
}

static void worker_maps_code(void)
{
	worker(map_code);
}

#define GUARDED 4096
static volatile uint8_t *memory; // two pages, and the first is guarded

static void tell(void)
{
	uint64_t n = 1;

	need(write(event_fd, &n, sizeof(n)) == sizeof(n));
}

static void touch_lost(void)
{
	uint64_t n;

	need(memory[0] == 0);
	need(read(event_fd, &n, sizeof(n)) == sizeof(n) && n == 1);
}

static void touch_other(void)
{
	memory[GUARDED] = 1;
}

static void guard_memory(void)
{
	event_fd = eventfd(0, 0);
	memory = mmap(NULL, 2 * GUARDED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(memory != MAP_FAILED && memory_guard_add((void *)memory, GUARDED, tell) >= 0);
}

static void worker_loses_memory(void)
{
	guard_memory();
	worker(touch_lost);
}

static void worker_crashes(void)
{
	signal(SIGSEGV, SIG_DFL);
	guard_memory();
	worker(touch_other);
}

static void good_process(void)
{
	need(filter_process(FILTER_KILL) == 0);
	open_file();
	need(socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
	need(event_signal_init() == 0 && event_signal(eventfd(0, 0)) == 0);
	map_code();
	need(syscall(SYS_clone3, NULL, 0) < 0 && errno == ENOSYS);
}

static void process_executes(void)
{
	char *none[] = {NULL};

	need(filter_process(FILTER_KILL) == 0);
	pthread_setname_np(pthread_self(), "corelaned");
	execve("/bin/true", none, none);
}

static void process_forks(void)
{
	need(filter_process(FILTER_KILL) == 0);
	pthread_setname_np(pthread_self(), "corelaned");
	fork();
}

static void *wait_for_ever(void *arg)
{
	uint64_t n;

	pthread_setname_np(pthread_self(), "eal-intr");
	need(read(event_fd, &n, sizeof(n)) == sizeof(n));
	syscall(SYS_ptrace, 0, 0, 0, 0);
	return NULL;
}

// A filter of the process is one of threads that exist already.
static void older_thread(void)
{
	pthread_t thread;
	uint64_t n = 1;

	event_fd = eventfd(0, 0);
	need(pthread_create(&thread, NULL, wait_for_ever, NULL) == 0);
	need(filter_process(FILTER_KILL) == 0);
	need(write(event_fd, &n, sizeof(n)) == sizeof(n));
	pthread_join(thread, NULL);
}

static void helper_reads(void)
{
	need(filter_helper() == 0);
	pthread_setname_np(pthread_self(), "h");
}

static void nothing_filtered(void)
{
	need(filter_process(FILTER_OFF) == 0 && filter_worker() == 0);
	need(prctl(PR_GET_SECCOMP) == 0);
}

static void allowed(void **state)
{
	ends_well(good_worker);
	ends_well(worker_loses_memory);
	ends_well(good_process);
	ends_well(nothing_filtered);
}

static void forbidden(void **state)
{
	is_killed(worker_opens, "pmd-fwd-0", "openat");
	is_killed(worker_maps_code, "pmd-fwd-0", "mmap");
	is_killed(process_executes, "corelaned", "execve");
	is_killed(process_forks, "corelaned", "clone");
	is_killed(older_thread, "eal-intr", "ptrace");
	is_killed(helper_reads, "filter_test", "prctl");
}

// A fault that no guest is behind has its own signal.
static void crash(void **state)
{
	int status = status_of(worker_crashes);

	assert_string_equal(said, "");
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(allowed), cmocka_unit_test(forbidden),
					   cmocka_unit_test(crash)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
