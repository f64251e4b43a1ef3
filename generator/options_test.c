// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "options.h"

static struct options o;
static struct error err;

// The arguments, separated by one blank.
static int parse(const char *line)
{
	static char copy[4096];
	char *argv[32] = {(char *)"corelane-gen"}, *word, *rest;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	optind = 0; // begins anew
	return options_parse(argc, argv, &o, &err);
}

static void assert_refused(const char *line, const char *field)
{
	assert_true(parse(line) < 0);
	assert_string_equal(err.field, field);
	assert_true(strchr(err.message, '\n') == NULL);
}

static void all_given(void **state)
{
	assert_int_equal(parse("--socket /tmp/x --cpu 0 --memory 256"), 0);
	assert_string_equal(o.socket, "/tmp/x");
	assert_int_equal(o.cpu, 0);
	assert_int_equal(o.round_trip_cpu, -1);
	assert_int_equal(o.memory_mb, 256);
}

static void refused(void **state)
{
	char line[300], text[32];

	assert_refused("", "--socket");
	assert_refused("--socket /tmp/x", "--cpu");
	assert_refused("--cpu 0", "--socket");
	assert_refused("--socket /tmp/x --cpu 0 --round-trip-cpu 0", "--round-trip-cpu");
	assert_refused("--socket /tmp/x --cpu -1", "--cpu");
	assert_refused("--socket /tmp/x --cpu 0x", "--cpu");
	assert_refused("--socket /tmp/x --cpu 0 --memory 63", "--memory");
	assert_refused("--socket /tmp/x --cpu 0 --what", "option");
	assert_refused("--socket /tmp/x --cpu 0 what", "argument");
	snprintf(text, sizeof(text), "%ld", sysconf(_SC_NPROCESSORS_CONF));
	snprintf(line, sizeof(line), "--socket /tmp/x --cpu %s", text);
	assert_refused(line, "--cpu");
	snprintf(line, sizeof(line), "--socket /tmp/x --cpu 0 --round-trip-cpu %s", text);
	assert_refused(line, "--round-trip-cpu");
	snprintf(line, sizeof(line), "--cpu 0 --socket /%0120d", 0);
	assert_refused(line, "--socket");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all_given), cmocka_unit_test(refused)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
