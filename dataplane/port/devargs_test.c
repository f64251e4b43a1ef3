// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "port/devargs.h"

static void memif(void **state)
{
	struct port_config c = {0};
	struct error err;

	assert_int_equal(devargs_memif("net_memif0,role=client,id=3,socket=/run/"
				       "x.sock,secret=abc,rsize=11,bsize=4096,socket-abstract=no",
				       &c, &err),
			 1);
	assert_string_equal(c.kind, "memif");
	assert_true(c.client);
	assert_int_equal(c.memif_id, 3);
	assert_string_equal(c.socket, "/run/x.sock");
	assert_string_equal(c.secret, "abc");
	assert_int_equal(c.ring_size, 2048);
	assert_int_equal(c.buffer_size, 4096);
	c = (struct port_config){0};
	assert_int_equal(devargs_memif("net_memif", &c, &err), 1);
	assert_false(c.client);
	assert_int_equal(devargs_memif("net_memif7,role=server,socket=/s,id=4294967295", &c, &err), 1);
	assert_int_equal(c.memif_id, UINT32_MAX);
	assert_int_equal(devargs_memif("net_memif0,rsize=5,bsize=128", &c, &err), 1);
	assert_int_equal(c.ring_size, 32);
	assert_int_equal(c.buffer_size, 128);
	assert_int_equal(devargs_memif("net_memif0,rsize=14,bsize=32768", &c, &err), 1);
	assert_int_equal(c.ring_size, 16384);
	assert_int_equal(c.buffer_size, 32768);
}

static void others(void **state)
{
	struct port_config c = {0};
	struct error err;

	assert_int_equal(devargs_memif("net_af_packet0,iface=eth0", &c, &err), 0);
	assert_int_equal(devargs_memif("0000:01:00.0", &c, &err), 0);
	assert_int_equal(devargs_memif("", &c, &err), 0);
	assert_null(c.kind);
}

static void refused(void **state)
{
	static const char *const bad[] = {
		"net_memif0,role=master",
		"net_memif0,role=",
		"net_memif0,role",
		"net_memif0,id=-1",
		"net_memif0,id=4294967296",
		"net_memif0,id=0x10",
		"net_memif0,id=",
		"net_memif0,rsize=4",
		"net_memif0,rsize=15",
		"net_memif0,rsize=32",
		"net_memif0,bsize=64",
		"net_memif0,bsize=2000",
		"net_memif0,bsize=32832",
		"net_memif0,bsize=65536",
		"net_memif0,zero-copy=yes",
		"net_memif0,owner-uid=0",
		"net_memif0,socket-abstract=yes",
		"net_memif0,secret=0123456789012345678901234",
		"net_memif0,id=99999999999999999999",
	};
	char long_path[256] = "net_memif0,socket=/";
	struct port_config c = {0};
	struct error err;
	unsigned i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(devargs_memif(bad[i], &c, &err), -EINVAL);
		assert_string_equal(err.field, "port.dpdk.devargs");
		assert_non_null(strstr(err.valid, "rsize=5..14 (log2),bsize=128..32768 (a multiple of 64)"));
	}
	memset(long_path + strlen(long_path), 'x', 120);
	assert_int_equal(devargs_memif(long_path, &c, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(memif), cmocka_unit_test(others),
					   cmocka_unit_test(refused)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
