// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_cycles.h>
#include <rte_eal.h>

#include "base/thread.h"
#include "poll.h"
#include "round_trip.h"
#include "testing/wait_until.h"

static struct error err;

static int setup(void **state)
{
	static char *argv[] = {"round_trip_test", "--no-huge", "-m", "64",          "--no-pci", "--no-telemetry",
			       "--no-shconf",     "-l",        "0",  "--log-level", "error"};

	return rte_eal_init(sizeof(argv) / sizeof(*argv), argv) < 0 ? -1 : 0;
}

static void nobody_to_ask(void **state)
{
	assert_int_equal(round_trip_probe(), 0);
}

static void a_cpu_that_is_not_there(void **state)
{
	assert_true(round_trip_start(1000, &err) < 0);
	assert_string_equal(err.field, "--round-trip-cpu");
	assert_int_equal(round_trip_probe(), 0);
}

// A busy machine may leave a probe without an answer.
static void there_and_back(void **state)
{
	uint64_t begin, took;
	unsigned i;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) // without another CPU only the two tests above are possible
		return;
	assert_int_equal(thread_pin(pthread_self(), 0), 0);
	assert_int_equal(round_trip_start(1, &err), 0);
	for (i = 0; i < 20; i++) {
		assert_true(wait_until((begin = rte_rdtsc(), took = round_trip_probe()) > 0));
		assert_true(took >= 20);
		assert_true(rte_rdtsc() - begin > took * 10); // the median of at least 20 rounds
	}
	round_trip_stop();
	assert_int_equal(round_trip_probe(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_to_ask),
		cmocka_unit_test(a_cpu_that_is_not_there),
		cmocka_unit_test(there_and_back),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
