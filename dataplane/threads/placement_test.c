// SPDX-License-Identifier: Apache-2.0
// The machines of these tests are plain sets of CPUs.
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

#include "threads/placement.h"

static struct placement p;
static struct machine m;
static struct cpu_list overlap;
static struct error err;

static void list(struct cpu_list *l, const char *text)
{
	memset(l, 0, sizeof(*l));
	if (text)
		assert_int_equal(cpu_list_parse(text, l), 0);
}

static void is(const struct cpu_list *l, const char *text)
{
	static char got[1024];

	assert_string_equal(cpu_list_format(l, got, sizeof(got)), text);
}

static void machine(const char *possible, const char *online)
{
	list(&m.possible, possible);
	list(&m.online, online);
	m.allowed = m.started = m.online;
}

// NULL: not given.
static int place(const char *workers, const char *service, const char *control, bool allow)
{
	memset(&p, 0, sizeof(p));
	memset(&err, 0, sizeof(err));
	if (workers)
		assert_int_equal(cpu_list_order(workers, p.worker_cpus, WORKER_MAX, &p.n_workers), 0);
	list(&p.service, service);
	list(&p.control, control);
	p.allow_overlap = allow;
	placement_fill(&p, &m);
	return placement_check(&p, &m, &overlap, &err);
}

static void refused(int ret, const char *field, const char *value, const char *valid)
{
	assert_int_equal(ret, -EINVAL);
	assert_string_equal(err.field, field);
	assert_string_equal(err.value, value);
	assert_non_null(strstr(err.valid, valid));
}

static void one_cpu(void **state)
{
	machine("0", "0");
	assert_int_equal(place(NULL, NULL, NULL, false), 0); // works without a flag, and reports the overlap
	assert_int_equal(p.n_workers, 1);
	assert_int_equal(p.worker_cpus[0], 0);
	is(&p.service, "0");
	is(&p.control, "0");
	is(&overlap, "0");
	assert_int_equal(place("0", NULL, "0", false), 0); // there is no other CPU
	is(&overlap, "0");
	refused(place("1", NULL, NULL, false), "--worker-cpus", "1", "CPUs 0");
}

static void two_cpus(void **state)
{
	machine("0-1", "0-1");
	assert_int_equal(place(NULL, NULL, NULL, false), 0);
	assert_int_equal(p.worker_cpus[0], 1);
	is(&p.service, "0");
	is(&p.control, "0");
	is(&overlap, "none");
	assert_int_equal(place(NULL, "1", NULL, false), 0); // the worker takes the other CPU
	assert_int_equal(p.worker_cpus[0], 0);
	is(&p.control, "1");
	assert_int_equal(place(NULL, NULL, "1", false), 0); // service threads follow --control-cpus
	is(&p.service, "1");
	refused(place("1", "0-1", NULL, false), "--service-cpus", "1", "CPUs 0, or --allow-overlap");
	refused(place("1", "0", "1", false), "--control-cpus", "1", "CPUs 0, or --allow-overlap");
	refused(place(NULL, "0-1", NULL, false), "--service-cpus", "1", "--allow-overlap");
	refused(place("0-1", NULL, NULL, false), "--worker-cpus", "", "fewer CPUs, or --allow-overlap");
	assert_int_equal(place("0-1", NULL, NULL, true), 0);
	is(&overlap, "0-1");
	assert_int_equal(place("1", "0-1", "1", true), 0);
	is(&overlap, "1");
	list(&m.started, "1"); // taskset: as on a machine with one CPU
	assert_int_equal(place(NULL, NULL, NULL, false), 0);
	assert_int_equal(p.worker_cpus[0], 1);
	is(&overlap, "1");
}

// 4 sockets of 48 cores and their siblings, numbered as by a BIOS.
static void four_sockets(void **state)
{
	machine("0-383", "0-383");
	assert_int_equal(place("1-15,49,97,145", "0,192", "16", false), 0);
	assert_int_equal(p.n_workers, 18);
	assert_int_equal(p.worker_cpus[17], 145);
	is(&p.service, "0,192");
	is(&p.control, "16");
	is(&overlap, "none");
	assert_int_equal(place("1-15,49,97,145", NULL, NULL, false), 0);
	is(&p.service, "0,16-48,50-96,98-144,146-383");
	assert_true(cpu_list_eq(&p.service, &p.control));
	refused(place("1-15", "0x8001", NULL, false), "--service-cpus", "15", "or --allow-overlap");
	refused(place("383,384", NULL, NULL, false), "--worker-cpus", "384", "CPUs 0-383");
}

static void more_than_1024(void **state)
{
	machine("0-2047", "0-2047");
	assert_int_equal(place("1024-1030,2047", "1023", "1031-1040", false), 0);
	is(&p.control, "1031-1040");
	refused(place("1500", "1400-1600", NULL, false), "--service-cpus", "1500", "CPUs 0-1499,1501-2047");
	assert_int_equal(place(NULL, NULL, NULL, false), 0);
	assert_int_equal(p.worker_cpus[0], 2047);
	refused(place("2048", NULL, NULL, false), "--worker-cpus", "2048", "CPUs 0-2047");
}

// Numbers with holes (firmware that counts by socket), CPUs that are off, and a cpuset.
static void holes(void **state)
{
	machine("0-3,128-131,4096-4099", "0-3,128-129,131,4096-4098");
	assert_int_equal(place(NULL, NULL, NULL, false), 0);
	assert_int_equal(p.worker_cpus[0], 4098);
	is(&p.service, "0-3,128-129,131,4096-4097");
	refused(place("64", NULL, NULL, false), "--worker-cpus", "64", "CPUs 0-3,128-129,131,4096-4098");
	assert_non_null(strstr(err.message, "does not exist"));
	refused(place("130", NULL, NULL, false), "--worker-cpus", "130", "CPUs 0-3,128-129");
	assert_non_null(strstr(err.message, "offline"));
	refused(place("1", "0,4099", NULL, false), "--service-cpus", "4099", "CPUs 0-3");
	list(&m.allowed, "0-3");
	m.started = m.allowed;
	refused(place("1", NULL, "129", false), "--control-cpus", "129", "CPUs 0-3");
	assert_non_null(strstr(err.message, "cpuset"));
	list(&m.started, "0-1"); // taskset does not restrict explicit CPUs, it only determines the defaults
	assert_int_equal(place("3", NULL, NULL, false), 0);
	is(&p.service, "0-1");
}

static void write_file(const char *root, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/%s", root, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void reads_the_machine(void **state)
{
	char root[] = "/tmp/placement_testXXXXXX", path[256];
	static const char *const dirs[] = {"/sys", "/sys/devices", "/sys/devices/system", "/sys/devices/system/cpu"};
	unsigned i;

	assert_non_null(mkdtemp(root));
	for (i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s%s", root, dirs[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	machine_read(root, &m); // without files the C library gives the CPUs
	assert_int_equal(cpu_list_count(&m.possible), sysconf(_SC_NPROCESSORS_CONF));
	write_file(root, "possible", "0-8191\n");
	write_file(root, "online", "0-63,8191\n");
	machine_read(root, &m);
	is(&m.possible, "0-8191");
	is(&m.online, "0-63,8191");
	snprintf(path, sizeof(path), "rm -r %s", root);
	assert_int_equal(system(path), 0);
	machine_read("", &m); // the machine that the test runs on
	machine_read_process(&m);
	assert_true(cpu_list_within(&m.started, &m.allowed) && cpu_list_within(&m.allowed, &m.possible));
	assert_int_equal(place(NULL, NULL, NULL, false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(one_cpu),      cmocka_unit_test(two_cpus),
					   cmocka_unit_test(four_sockets), cmocka_unit_test(more_than_1024),
					   cmocka_unit_test(holes),        cmocka_unit_test(reads_the_machine)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
