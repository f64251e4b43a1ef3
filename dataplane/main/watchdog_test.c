// SPDX-License-Identifier: Apache-2.0
// Plays systemd: a datagram socket receives the notifications.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "main/watchdog.h"
#include "threads/worker_watch.h"

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static char dir[] = "/tmp/watchdog-XXXXXX";
static bool hangs;
static int sock;

bool worker_watch_hangs(void)
{
	return hangs;
}

static void pass_us(uint64_t us)
{
	clock_stopped_ns += us * 1000;
}

// Begins as under a systemd with WatchdogSec=.
static void watchdog_begin(const char *timeout_us)
{
	setenv("WATCHDOG_USEC", timeout_us, 1);
	watchdog_init();
	hangs = false;
}

// Returns how many notifications have come, each of which must be a sign of life.
static unsigned received(void)
{
	char text[64];
	ssize_t len;
	unsigned n;

	for (n = 0; (len = recv(sock, text, sizeof(text) - 1, MSG_DONTWAIT)) > 0; n++) {
		text[len] = '\0';
		assert_string_equal(text, "WATCHDOG=1");
	}
	return n;
}

static void one_per_interval(void **state)
{
	watchdog_begin("40000"); // each 10 ms
	watchdog_poll();
	assert_int_equal(received(), 1);
	pass_us(9999);
	watchdog_poll();
	assert_int_equal(received(), 0);
	pass_us(1);
	watchdog_poll();
	watchdog_poll();
	assert_int_equal(received(), 1);
	pass_us(35000); // late: the missed ones do not follow
	watchdog_poll();
	watchdog_poll();
	assert_int_equal(received(), 1);
}

static void none_while_a_worker_hangs(void **state)
{
	watchdog_begin("4");
	watchdog_poll();
	assert_int_equal(received(), 1);
	pass_us(1);
	hangs = true;
	watchdog_poll();
	watchdog_poll();
	assert_int_equal(received(), 0);
	hangs = false;
	watchdog_poll();
	assert_int_equal(received(), 1);
}

static void none_that_nobody_expects(void **state)
{
	char other[16];

	watchdog_begin("0");
	watchdog_poll();
	assert_int_equal(received(), 0);
	snprintf(other, sizeof(other), "%d", (int)getppid()); // the variables of another process, inherited
	setenv("WATCHDOG_PID", other, 1);
	watchdog_begin("1");
	unsetenv("WATCHDOG_PID");
	watchdog_poll();
	assert_int_equal(received(), 0);
	unsetenv("WATCHDOG_USEC");
	watchdog_init();
	watchdog_poll();
	assert_int_equal(received(), 0);
}

static int setup(void **state)
{
	clock_stopped_ns = 1000000000;
	sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (mkdtemp(dir) == NULL || sock < 0)
		return -1;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", dir);
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
	return bind(sock, (struct sockaddr *)&address, sizeof(address));
}

static int teardown(void **state)
{
	close(sock);
	unlink(address.sun_path);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(one_per_interval),
					   cmocka_unit_test(none_while_a_worker_hangs),
					   cmocka_unit_test(none_that_nobody_expects)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
