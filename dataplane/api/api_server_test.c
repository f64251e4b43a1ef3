// SPDX-License-Identifier: Apache-2.0
// The listening socket, and tests that need a real one: back-pressure, clients that do not read, limits.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/api_test.h"
#include "testing/wait_until.h"

static struct event_base *base;
static char dir[] = "/tmp/corelane-api-XXXXXX", path[64];
static struct error err;
static struct api_limits default_limits;

static int setup(void **state)
{
	base = event_base_new();
	test_list_given = 0;
	assert_int_equal(api_server_start(base, path, &err), 0);
	return 0;
}

static int teardown(void **state)
{
	api_server_stop();
	event_base_loop(base, EVLOOP_NONBLOCK); // bufferevents are freed by the loop
	event_base_free(base);
	assert_int_equal(api_conn_count(), 0);
	assert_int_equal(test_streams_open, 0);
	api_limits = default_limits;
	return access(path, F_OK) == 0 ? -1 : 0;
}

#define HOUR_MS 3600000
#define PASSES 200 // of the loop, more than there are steps in what a test waits for

// Runs the loop until all is done that needs no time to pass: clients and server are in one thread.
static void run(void)
{
	const struct timeval now = {};
	unsigned i;

	for (i = 0; i < PASSES; i++) {
		event_base_loopexit(base, &now); // after one pass, also if it leaves something to do
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
}

#define run_until(condition) assert_true(wait_until((run(), (condition))))

static int connect_to(const char *to)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", to);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void request(int fd, uint32_t id, const char *method, const ProtobufCMessage *req, uint8_t flags)
{
	uint8_t bytes[1024];
	size_t n = test_pack_request(bytes, id, flags, TEST_SERVICE, method, req);

	assert_int_equal(write(fd, bytes, n), n);
}

// Reads the available bytes and returns their number; *end: the server has closed the connection.
static size_t drain(int fd, bool *end)
{
	static char buf[1 << 20];
	size_t sum = 0;
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		sum += (size_t)n;
	*end = n == 0 || errno != EAGAIN;
	return sum;
}

static bool ended(int fd)
{
	bool end;

	drain(fd, &end);
	return end;
}

static void back_pressure(void **state)
{
	Corelane__V1__RouteListRequest req = CORELANE__V1__ROUTE_LIST_REQUEST__INIT;
	Corelane__V1__RouteLookupRequest lookup = CORELANE__V1__ROUTE_LOOKUP_REQUEST__INIT;
	int slow, other;
	unsigned given, i;
	bool end;

	test_list_items = UINT32_MAX;
	api_limits.stall_ms = HOUR_MS;
	slow = connect_to(path);
	other = connect_to(path);
	request(slow, 1, "List", &req.base, TTRPC_REMOTE_CLOSED);
	run_until(test_list_given >= 1000);
	given = test_list_given;
	// A route is at least 30 bytes. Only API_BUFFER and the kernel's buffer are filled, however long it takes.
	assert_in_range(given, 1000, (API_BUFFER + 512 * 1024) / 30);
	run();
	assert_int_equal(test_list_given, given);
	request(other, 1, "Lookup", &lookup.base, 0);
	run();
	assert_true(drain(other, &end) > 0);
	assert_false(end);
	for (i = 0; i < 4; i++) { // the stream continues when the client reads
		assert_true(drain(slow, &end) > 0);
		assert_false(end);
		run();
	}
	run_until(!ended(slow) && test_list_given > given);
	close(slow);
	close(other);
	run();
	assert_int_equal(test_streams_open, 0);
	assert_int_equal(api_conn_count(), 0);
}

// A client that reads nothing for long is disconnected, one to which nothing was sent is not.
static void stalled(void **state)
{
	Corelane__V1__RouteListRequest req = CORELANE__V1__ROUTE_LIST_REQUEST__INIT;
	int slow, other;

	test_list_items = UINT32_MAX;
	api_limits.stall_ms = 100;
	other = connect_to(path);
	run();
	slow = connect_to(path);
	request(slow, 1, "List", &req.base, TTRPC_REMOTE_CLOSED);
	run_until(test_list_given >= 1000);
	run_until(test_streams_open == 0 && api_conn_count() == 1); // disconnected
	assert_true(ended(slow));
	assert_false(ended(other));
	close(slow);
	close(other);
	run();
	assert_int_equal(api_conn_count(), 0);
}

// The server reads no requests of a client that does not read the answers.
static void unread_answers(void **state)
{
	Corelane__V1__RouteLookupRequest req = CORELANE__V1__ROUTE_LOOKUP_REQUEST__INIT;
	uint8_t bytes[1024];
	char vrf[257];
	int fd = connect_to(path);
	size_t n, sent = 0;
	uint32_t id;

	memset(vrf, 'v', sizeof(vrf) - 1);
	vrf[256] = '\0';
	req.vrf = vrf;
	for (id = 1; id < 200000; id += 2) {
		n = test_pack_request(bytes, id, 0, TEST_SERVICE, "Lookup", &req.base);
		if (write(fd, bytes, n) < (ssize_t)n) {
			run();
			if (write(fd, bytes, n) < 0)
				break; // the buffers of both sides are full and stay full
		}
		sent += n;
	}
	assert_in_range(sent, API_BUFFER, 2 * 1024 * 1024);
	close(fd);
}

static void client_dies(void **state)
{
	Corelane__V1__RouteListRequest req = CORELANE__V1__ROUTE_LIST_REQUEST__INIT;
	unsigned i;
	int fd;

	test_list_items = UINT32_MAX;
	for (i = 0; i < 20; i++) {
		req.vrf = i % 2 ? "wait" : "";
		fd = connect_to(path);
		request(fd, 1, "List", &req.base, TTRPC_REMOTE_CLOSED);
		run();
		assert_int_equal(test_streams_open, 1);
		close(fd);
		run();
		assert_int_equal(test_streams_open, 0);
		assert_int_equal(api_conn_count(), 0);
	}
}

static void too_many(void **state)
{
	int fds[4];
	unsigned i;
	bool end;

	api_limits.connections = 3;
	api_limits.reserved = 0;
	for (i = 0; i < 4; i++) {
		fds[i] = connect_to(path);
		run();
		drain(fds[i], &end);
		assert_int_equal(end, i == 3);
	}
	for (i = 0; i < 4; i++)
		close(fds[i]);
	run();
	fds[0] = connect_to(path);
	run();
	drain(fds[0], &end);
	assert_false(end);
	close(fds[0]);
}

static void too_many_of_one_user(void **state)
{
	uint64_t refused = api_limit_reached(LIMIT_USER_CONNECTIONS);
	int fds[3];
	unsigned i;
	bool end;

	api_limits.user_connections = 2;
	for (i = 0; i < 3; i++) {
		fds[i] = connect_to(path);
		run();
		drain(fds[i], &end);
		assert_int_equal(end, i == 2);
	}
	assert_int_equal(api_limit_reached(LIMIT_USER_CONNECTIONS), refused + 1);
	for (i = 0; i < 3; i++)
		close(fds[i]);
	run();
}

// Streams of all connections of a user count together.
static void too_many_streams(void **state)
{
	Corelane__V1__RouteListRequest req = CORELANE__V1__ROUTE_LIST_REQUEST__INIT;
	int a = connect_to(path), b = connect_to(path);
	bool end;

	api_limits.user_streams = 2;
	req.vrf = "wait";
	request(a, 1, "List", &req.base, TTRPC_REMOTE_CLOSED);
	request(b, 1, "List", &req.base, TTRPC_REMOTE_CLOSED);
	run();
	assert_int_equal(drain(b, &end), 0);
	request(b, 3, "List", &req.base, TTRPC_REMOTE_CLOSED);
	run();
	assert_true(drain(b, &end) > 0); // refused
	assert_int_equal(test_streams_open, 2);
	close(a);
	run();
	request(b, 5, "List", &req.base, TTRPC_REMOTE_CLOSED);
	run();
	assert_int_equal(test_streams_open, 2);
	close(b);
	run();
}

// A client that sends nothing, and one that stops within a message, are disconnected. One that waits between two
// messages is not.
static void half_messages(void **state)
{
	Corelane__V1__RouteLookupRequest req = CORELANE__V1__ROUTE_LOOKUP_REQUEST__INIT;
	int silent = connect_to(path), half = connect_to(path), idle = connect_to(path);
	uint64_t counted = api_limit_reached(LIMIT_HALF_MESSAGE);
	bool end;

	request(half, 1, "Lookup", &req.base, 0);
	request(idle, 1, "Lookup", &req.base, 0);
	run();
	assert_int_equal(write(half, "\0\0\1", 3), 3);
	run_until(ended(silent) && ended(half));
	assert_true(drain(idle, &end) > 0);
	assert_false(end);
	assert_int_equal(api_limit_reached(LIMIT_HALF_MESSAGE), counted + 2);
	close(silent);
	close(half);
	close(idle);
	run();
}

static int setup_impatient(void **state)
{
	api_limits.message_ms = 200; // before the server starts, which looks four times in this interval
	return setup(state);
}

static void set_flag(evutil_socket_t fd, short what, void *arg)
{
	*(bool *)arg = true;
}

// accept() fails without free descriptors: the loop must not spin on that, and must accept later.
static void no_descriptors(void **state)
{
	Corelane__V1__RouteLookupRequest req = CORELANE__V1__ROUTE_LOOKUP_REQUEST__INIT;
	const struct timeval half_a_second = {.tv_usec = 500000};
	int fd = connect_to(path);
	struct rlimit old, none;
	unsigned passes = 0;
	bool passed = false;

	getrlimit(RLIMIT_NOFILE, &old);
	none = (struct rlimit){.rlim_cur = (rlim_t)fd + 1, .rlim_max = old.rlim_max};
	setrlimit(RLIMIT_NOFILE, &none);
	event_base_once(base, -1, EV_TIMEOUT, set_flag, &passed, &half_a_second);
	while (!passed) {
		event_base_loop(base, EVLOOP_ONCE);
		passes++;
	}
	assert_in_range(passes, 1, 100); // one for each time at which it looks
	assert_int_equal(api_conn_count(), 0);
	setrlimit(RLIMIT_NOFILE, &old);
	request(fd, 1, "Lookup", &req.base, 0);
	run_until(api_conn_count() == 1);
	run();
	assert_false(ended(fd));
	close(fd);
}

static void mode(void **state)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
}

static int listen_at(const char *at)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", at);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static void alive(void **state)
{
	char want[64];
	int fd;

	assert_int_equal(api_server_start(base, path, &err), -EALREADY);
	api_server_stop();
	fd = listen_at(path);
	assert_int_equal(api_server_start(base, path, &err), -EADDRINUSE);
	snprintf(want, sizeof(want), "process %d answers there", (int)getpid());
	assert_non_null(strstr(err.message, want));
	assert_string_equal(err.field, "socket");
	close(connect_to(path)); // its queue is full now
	assert_int_equal(api_server_start(base, path, &err), -EADDRINUSE);
	api_server_stop();
	assert_int_equal(unlink(path), 0); // still there
	close(fd);
}

static void paths(void **state)
{
	char p[256], sub[128];
	struct stat st;
	FILE *f;

	base = event_base_new();
	close(listen_at(path)); // stale
	assert_int_equal(api_server_start(base, path, &err), 0);
	close(connect_to(path));
	api_server_stop();
	assert_int_equal(access(path, F_OK), -1);

	f = fopen(path, "w");
	fclose(f);
	assert_int_equal(api_server_start(base, path, &err), -EEXIST);
	assert_non_null(strstr(err.message, "is not a socket"));
	api_server_stop();
	assert_int_equal(unlink(path), 0); // untouched

	memset(p, 'x', sizeof(p) - 1);
	p[sizeof(p) - 1] = '\0';
	assert_int_equal(api_server_start(base, p, &err), -EINVAL);
	assert_string_equal(err.valid, "1 to 107 characters");
	assert_int_equal(api_server_start(base, "", &err), -EINVAL);
	assert_int_equal(api_server_start(base, "/nowhere/at/all", &err), -ENOENT);

	snprintf(sub, sizeof(sub), "%s/run", dir);
	snprintf(p, sizeof(p), "%s/s", sub);
	assert_int_equal(api_server_start(base, p, &err), 0);
	assert_int_equal(stat(sub, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0711); // members of the roles' groups pass
	api_server_stop();
	assert_int_equal(rmdir(sub), 0);
	event_base_free(base);
}

static int group_setup(void **state)
{
	assert_non_null(mkdtemp(dir));
	default_limits = api_limits;
	snprintf(path, sizeof(path), "%s/api.sock", dir);
	return 0;
}

static int group_teardown(void **state)
{
	return rmdir(dir);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(back_pressure),
					   TEST(stalled),
					   TEST(unread_answers),
					   TEST(client_dies),
					   TEST(too_many),
					   TEST(too_many_of_one_user),
					   TEST(too_many_streams),
					   cmocka_unit_test_setup_teardown(half_messages, setup_impatient, teardown),
					   TEST(no_descriptors),
					   TEST(mode),
					   TEST(alive),
					   cmocka_unit_test(paths)};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
