// SPDX-License-Identifier: Apache-2.0
// Runs threads_look() over copies of /proc/self/task. A fake sched_setaffinity() moves their threads.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/event.h"
#include "base/log.h"
#include "threads/threads.h"

#define SECOND 1000000000ull

static char root[64];
static struct threads threads;
static struct thread_plan plan;
static uint64_t now, event;
static unsigned worker_cpu;    // of worker 3, thread 104
static struct cpu_list denied; // CPUs that the kernel denies
static unsigned moves;

__attribute__((format(printf, 2, 3))) static void write_file(const char *path, const char *fmt, ...)
{
	char name[256];
	va_list ap;
	FILE *f;

	snprintf(name, sizeof(name), "%s%s", root, path);
	f = fopen(name, "w");
	assert_non_null(f);
	va_start(ap, fmt);
	vfprintf(f, fmt, ap);
	va_end(ap);
	fclose(f);
}

static void make(const char *path)
{
	char name[256];

	snprintf(name, sizeof(name), "%s%s", root, path);
	assert_true(mkdir(name, 0700) == 0 || errno == EEXIST);
}

// The format of Linux 6.18, shortened to the lines around those that are read.
static void write_status(int tid, const char *name, const char *cpus)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d", tid);
	make(path);
	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	write_file(
		path,
		"Name:\t%s\nUmask:\t0022\nState:\tS "
		"(sleeping)\nTgid:\t100\nNgid:\t0\nPid:\t%d\nPPid:\t1\nThreads:\t5\nSigQ:\t0/15592\n"
		"Seccomp:\t0\nSpeculation_Store_Bypass:\tvulnerable\nCpus_allowed:\tff\nCpus_allowed_list:\t%s\nMems_"
		"allowed:"
		"\t00000000,00000001\n"
		"Mems_allowed_list:\t0\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n",
		name, tid, cpus);
}

static const char *affinity_of(int tid)
{
	static char text[CPU_LIST_TEXT];
	struct task t;

	assert_int_equal(task_read_status(root, tid, &t), 0);
	return cpu_list_format(&t.affinity, text, sizeof(text));
}

static int fake_move(int tid, const struct cpu_list *cpus)
{
	struct cpu_list given = cpu_list_without(cpus, &denied);
	char text[CPU_LIST_TEXT];
	struct task t;

	moves++;
	if (task_read_status(root, tid, &t) < 0)
		return -ESRCH;
	if (cpu_list_empty(&given))
		return -EINVAL;
	write_status(tid, t.name, cpu_list_format(&given, text, sizeof(text)));
	return 0;
}

static int fake_worker(int tid, unsigned *cpu)
{
	*cpu = worker_cpu;
	return tid == 104 ? 3 : -1;
}

static void look(void)
{
	now += SECOND;
	moves = 0;
	threads_look(&threads, &plan, now);
}

static const struct thread *thread(int tid)
{
	unsigned i;

	for (i = 0; i < threads.n; i++)
		if (threads.list[i].task.tid == tid)
			return &threads.list[i];
	return NULL;
}

// Returns the text of the next event, NULL if it is another one or there is none.
static const char *next_event(const char *kind, const char *subject)
{
	const struct event_record *e = event_after(event);

	if (e == NULL)
		return NULL;
	event = e->number;
	assert_string_equal(e->kind->name, kind);
	assert_string_equal(e->subject, subject);
	return e->text;
}

static int setup(void **state)
{
	snprintf(root, sizeof(root), "/tmp/threads_testXXXXXX");
	assert_non_null(mkdtemp(root));
	make("/proc");
	make("/proc/self");
	make("/proc/self/task");
	make("/sys");
	make("/sys/devices");
	make("/sys/devices/system");
	make("/sys/devices/system/cpu");
	write_file("/sys/devices/system/cpu/online", "0-7\n");
	threads.n = 0;
	plan = (struct thread_plan){.root = root, .master = 100, .worker = fake_worker, .move = fake_move};
	cpu_list_parse("0-1", &plan.service);
	cpu_list_parse("2", &plan.control);
	memset(&denied, 0, sizeof(denied));
	worker_cpu = 7;
	event = event_last();
	write_status(100, "corelaned", "2");
	write_status(101, "eal-intr-thread", "2");
	write_status(102, "telemetry-v2", "2");
	write_status(103, "svc-rules", "2");
	write_status(104, "pmd-fwd-3", "7");
	write_status(105, "vhost-events", "2");
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

// DPDK starts all of them on the control CPUs, which does not make them strays.
static void first_look(void **state)
{
	look();
	assert_int_equal(threads.n, 6);
	assert_string_equal(affinity_of(100), "0-1");
	assert_string_equal(affinity_of(101), "2");
	assert_string_equal(affinity_of(102), "2");
	assert_string_equal(affinity_of(103), "0-1");
	assert_string_equal(affinity_of(104), "7");
	assert_string_equal(affinity_of(105), "0-1");
	assert_int_equal(thread(100)->role, THREAD_SERVICE);
	assert_int_equal(thread(102)->role, THREAD_CONTROL);
	assert_int_equal(thread(104)->role, THREAD_FORWARDING);
	assert_int_equal(thread(104)->worker, 3);
	assert_int_equal(thread(105)->role, THREAD_SERVICE);
	assert_true(thread(105)->task.voluntary == 150 && thread(105)->task.involuntary == 545);
	assert_null(next_event("", ""));
	look();
	assert_int_equal(moves, 0);
}

static void taskset(void **state)
{
	look();
	write_status(104, "pmd-fwd-3", "0-7");
	write_status(101, "eal-intr-thread", "7");
	look();
	assert_string_equal(affinity_of(104), "7");
	assert_string_equal(affinity_of(101), "2");
	assert_int_equal(thread(104)->moved_back, 1);
	assert_int_equal(thread(101)->moved_back, 1);
	assert_true(event_last() == event + 2);
	while (event_after(event)) { // in the order of the directory
		const struct event_record *e = event_after(event);

		event = e->number;
		assert_string_equal(e->kind->name, "thread_stray");
		assert_string_equal(
			e->text,
			strcmp(e->subject, "worker 3") == 0
				? "thread pmd-fwd-3 (104) could run on CPUs 0-7 and belongs to 7; moved back"
				: "thread eal-intr-thread (101) could run on CPUs 7 and belongs to 2; moved back");
	}
	look();
	assert_int_equal(moves, 0);
	write_status(104, "pmd-fwd-3", "6");
	look();
	assert_int_equal(thread(104)->moved_back, 2);
}

// A tool moves a thread repeatedly.
static void stubborn(void **state)
{
	unsigned i;

	look();
	for (i = 0; i < 100; i++) {
		write_status(104, "pmd-fwd-3", "0-7");
		look();
		assert_string_equal(affinity_of(104), "7");
	}
	assert_int_equal(thread(104)->moved_back, 100);
	assert_true(event_last() == event + 8 + 3); // and the 16th, 32nd, 64th
}

// A new thread of a library is moved silently from CPUs of another role, and is a stray on a worker's.
static void new_threads(void **state)
{
	look();
	write_status(106, "rte_mp_handle", "0-1");
	look();
	assert_string_equal(affinity_of(106), "2");
	assert_int_equal(thread(106)->moved_back, 0);
	assert_null(next_event("", ""));
	write_status(107, "libfoo", "0-7");
	look();
	assert_string_equal(affinity_of(107), "2");
	assert_int_equal(thread(107)->moved_back, 1);
	assert_non_null(next_event("thread_stray", "libfoo"));
	assert_int_equal(threads.n, 8);
}

static void gone(void **state)
{
	char command[128];

	look();
	snprintf(command, sizeof(command), "rm -r %s/proc/self/task/103", root);
	assert_int_equal(system(command), 0);
	look();
	assert_null(thread(103));
	assert_int_equal(threads.n, 5);
	write_file("/proc/self/task/105/status", "Name:\tvhost-events\n"); // incomplete
	look();
	assert_int_equal(threads.n, 4);
}

// Threads are not strays after `corelane worker set --cpu`, nor when sets follow the workers.
static void the_plan_changes(void **state)
{
	look();
	worker_cpu = 6;
	write_status(104, "pmd-fwd-3", "6");
	look();
	assert_int_equal(moves, 0);
	cpu_list_parse("1", &plan.service);
	look();
	assert_string_equal(affinity_of(100), "1");
	assert_string_equal(affinity_of(105), "1");
	assert_int_equal(thread(100)->moved_back, 0);
	assert_null(next_event("", ""));
}

static void offline(void **state)
{
	look();
	write_file("/sys/devices/system/cpu/online", "0-6\n");
	cpu_list_parse("7", &denied);
	write_status(104, "pmd-fwd-3", "0-6"); // where the kernel put it
	look();
	assert_string_equal(next_event("thread_displaced", "worker 3"),
			    "thread pmd-fwd-3 (104) may run on CPUs 0-6 and belongs to 7, but CPU 7 is offline");
	assert_true(thread(104)->displaced != 0);
	look();
	look();
	assert_int_equal(moves, 1);      // it tries again
	assert_null(next_event("", "")); // and reports it once
	write_file("/sys/devices/system/cpu/online", "0-7\n");
	memset(&denied, 0, sizeof(denied));
	look();
	assert_string_equal(next_event("thread_returned", "worker 3"),
			    "thread pmd-fwd-3 (104) has its CPUs 7 again, after 3.0 s");
	assert_string_equal(affinity_of(104), "7");
	assert_true(thread(104)->displaced == 0 && thread(104)->moved_back == 0);
}

static void cpuset(void **state)
{
	look();
	cpu_list_parse("1,7", &denied);
	write_status(100, "corelaned", "0");
	write_status(104, "pmd-fwd-3", "0");
	look();
	assert_true(thread(100)->displaced && thread(104)->displaced);
	assert_true(event_last() == event + 2);
	assert_non_null(strstr(event_after(event)->text, "but the cpuset does not allow it"));
	event = event_last();
	memset(&denied, 0, sizeof(denied));
	worker_cpu = 6; // meanwhile the worker has been given another CPU
	write_status(104, "pmd-fwd-3", "6");
	look();
	assert_true(event_last() == event + 2);
	assert_true(thread(100)->displaced == 0 && thread(104)->displaced == 0);
	assert_string_equal(affinity_of(100), "0-1");
}

static void roles_by_name(void **state)
{
	static const struct {
		const char *name;
		enum thread_role role;
	} names[] = {
		{"pmd-fwd-0", THREAD_FORWARDING},   {"pmd-rx-12", THREAD_ISOLATED_RX},
		{"pmd-host-1", THREAD_HOST_PATH},   {"svc-rules", THREAD_SERVICE},
		{"vhost-events", THREAD_SERVICE},   {"vhost_reconn", THREAD_SERVICE},
		{"dpdk-vhost-evt", THREAD_SERVICE}, {"vhost-4711", THREAD_SERVICE},
		{"dpdk-intr", THREAD_CONTROL},      {"rte_mp_handle", THREAD_CONTROL},
		{"telemetry-v2", THREAD_CONTROL},   {"memif-control", THREAD_CONTROL},
		{"corelaned", THREAD_CONTROL}, // a library's thread that has no name yet
	};
	unsigned i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_int_equal(thread_role(names[i].name, false), names[i].role);
	assert_int_equal(thread_role("corelaned", true), THREAD_SERVICE);
}

// A name may contain anything, and there may be more than 1,024 CPUs.
static void odd_files(void **state)
{
	struct task t = {0};

	write_file("/proc/self/task/104/stat",
		   "104 (x) R 9 9) S 1 100 100 0 -1 4194304 100 0 0 0 7 8 0 0 20 0 5 0 4217888 3133440 366 "
		   "18446744073709551615 1 1 0 0 0 0 0 0 0 0 "
		   "0 0 17 1500 0 0 0 0 0 1 1 1 1 1 1 1 0\n");
	write_file("/proc/self/task/104/schedstat", "123456789 987654321 42\n");
	assert_int_equal(task_read_sched(root, 104, &t), 0);
	assert_int_equal(t.state, 'S');
	assert_int_equal(t.cpu, 1500);
	assert_true(t.run_ns == 123456789 && t.wait_ns == 987654321);
	write_file("/proc/self/task/104/stat", "104 (x) S 1 2");
	assert_int_equal(task_read_sched(root, 104, &t), -EINVAL);
	assert_int_equal(task_read_sched(root, 999, &t), -ENOENT);
	write_status(104, "pmd-fwd-3", "1024-1030,2047");
	assert_string_equal(affinity_of(104), "1024-1030,2047");
	worker_cpu = 2047;
	look();
	assert_string_equal(affinity_of(104), "2047");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(first_look, setup, teardown),
		cmocka_unit_test_setup_teardown(taskset, setup, teardown),
		cmocka_unit_test_setup_teardown(stubborn, setup, teardown),
		cmocka_unit_test_setup_teardown(new_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(gone, setup, teardown),
		cmocka_unit_test_setup_teardown(the_plan_changes, setup, teardown),
		cmocka_unit_test_setup_teardown(offline, setup, teardown),
		cmocka_unit_test_setup_teardown(cpuset, setup, teardown),
		cmocka_unit_test(roles_by_name),
		cmocka_unit_test_setup_teardown(odd_files, setup, teardown),
	};

	rte_log_set_level((uint32_t)corelane_logtype, RTE_LOG_EMERG);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
