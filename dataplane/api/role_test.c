// SPDX-License-Identifier: Apache-2.0
// Which client may call which method.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/api_test.h"
#include "common.pb-c.h"

static struct test_conn t;
static struct error err;

static int setup(void **state)
{
	test_conn_open(&t);
	test_list_given = 0;
	return 0;
}

static int teardown(void **state)
{
	test_conn_close(&t);
	return 0;
}

static void be(enum role role)
{
	t.conn->client = (struct api_client){.uid = 1001, .pid = 42, .role = role};
}

// The gRPC code of the answer; 0: there was no error.
static int32_t code(const struct test_frame *f)
{
	Ttrpc__Response *r = ttrpc__response__unpack(NULL, f->h.length, f->data);
	int32_t c = r->status ? r->status->code : 0;

	ttrpc__response__free_unpacked(r, NULL);
	return c;
}

static void methods_have_roles(void **state)
{
	unsigned i;

	assert_int_equal(role_of_method("corelane.v1.Routes", "Lookup"), ROLE_READ);
	assert_int_equal(role_of_method("corelane.v1.Capture", "Packets"), ROLE_OPERATE);
	assert_int_equal(role_of_method("corelane.v1.Routes", "Add"), ROLE_ADMINISTER);
	assert_int_equal(role_of_method("corelane.v1.Routes", "Unknown"), ROLE_ADMINISTER);
	for (i = 0; i < n_method_roles; i++)
		assert_in_range(method_roles[i].role, ROLE_READ, ROLE_ADMINISTER);
}

static void readers_read(void **state)
{
	Corelane__V1__RouteLookupRequest lookup = CORELANE__V1__ROUTE_LOOKUP_REQUEST__INIT;
	Corelane__V1__RouteListRequest list = CORELANE__V1__ROUTE_LIST_REQUEST__INIT;

	be(ROLE_READ);
	lookup.vrf = "red";
	lookup.address = "10.0.0.1";
	assert_int_equal(test_conn_request(&t, 1, 0, TEST_SERVICE, "Lookup", &lookup.base), 0);
	assert_int_equal(code(test_conn_next(&t)), 0);
	assert_int_equal(test_conn_request(&t, 3, TTRPC_REMOTE_CLOSED, TEST_SERVICE, "List", &list.base), 0);
	assert_int_equal(test_conn_wait(&t)->h.type, TTRPC_DATA);
}

// A client without the role learns that before its request is decoded.
static void others_are_refused(void **state)
{
	static const char garbage[] = "\x0a\x12" TEST_SERVICE "\x12\x03"
				      "Add\x1a\x01\x0a";
	const struct test_frame *f;

	be(ROLE_OPERATE);
	test_conn_frame(&t, 1, TTRPC_REQUEST, 0, garbage, sizeof(garbage) - 1);
	f = test_conn_next(&t);
	assert_int_equal(code(f), 7);
	be(ROLE_ADMINISTER);
	test_conn_frame(&t, 3, TTRPC_REQUEST, 0, garbage, sizeof(garbage) - 1);
	assert_int_equal(code(test_conn_next(&t)), 3);
	be(ROLE_NONE);
	test_conn_frame(&t, 5, TTRPC_REQUEST, TTRPC_REMOTE_CLOSED, "\x0a\x12" TEST_SERVICE "\x12\x04List", 26);
	assert_int_equal(code(test_conn_next(&t)), 7);
	assert_int_equal(test_list_given, 0);
}

static void refusals_say_why(void **state)
{
	const struct api_client c = {.uid = 1001, .role = ROLE_READ};

	assert_int_equal(role_check(&c, ROLE_READ, "Routes", "List", &err), 0);
	assert_int_equal(role_check(&c, ROLE_OPERATE, "Flows", "Flush", &err), -EACCES);
	assert_string_equal(err.message,
			    "Flows.Flush needs role 'operate', which only root has; uid 1001 has role 'read'");
	assert_int_equal(role_set_group(ROLE_OPERATE, "nobody-has-this"), -ENOENT);
	role_check(&c, ROLE_OPERATE, "Flows", "Flush", &err);
	assert_string_equal(err.message,
			    "Flows.Flush needs role 'operate', which only root has, because there is no group "
			    "nobody-has-this; uid 1001 has role 'read'");
	assert_int_equal(role_set_group(ROLE_OPERATE, "daemon"), 0);
	role_check(&c, ROLE_OPERATE, "Flows", "Flush", &err);
	assert_string_equal(err.message, "Flows.Flush needs role 'operate', which root and the members of group daemon "
					 "have; uid 1001 has role 'read'");
}

static void own_user_administers(void **state)
{
	struct api_client c;
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	assert_int_equal(role_of_peer(fd[0], &c), 0);
	assert_true(c.uid == geteuid() && c.pid == getpid() && c.role == ROLE_ADMINISTER);
	close(fd[0]);
	close(fd[1]);
	assert_int_equal(role_of_peer(-1, &c), -EBADF);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(methods_have_roles), TEST(readers_read),
					   TEST(others_are_refused), cmocka_unit_test(refusals_say_why),
					   cmocka_unit_test(own_user_administers)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
