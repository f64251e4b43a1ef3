// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/socket_access.h"

static struct socket_access a;
static struct error err;

static int parse(const char *owner, const char *group, const char *mode, const char *fallback)
{
	return socket_access_parse(owner, group, mode, fallback, "port.vhost", &a, &err);
}

static void parsed(void **state)
{
	assert_int_equal(parse("", "", "", NULL), 0);
	assert_int_equal(a.uid, (uid_t)-1);
	assert_int_equal(a.gid, (gid_t)-1);
	assert_int_equal(a.mode, 0660);
	assert_int_equal(parse("root", "root", "0600", "no-such-group"), 0);
	assert_int_equal(a.uid, 0);
	assert_int_equal(a.gid, 0);
	assert_int_equal(a.mode, 0600);
	assert_int_equal(parse("1000", "1001", "777", NULL), 0);
	assert_int_equal(a.uid, 1000);
	assert_int_equal(a.gid, 1001);
	assert_int_equal(a.mode, 0777);
	assert_int_equal(parse("", "", "", "no-such-group"), 0);
	assert_int_equal(a.gid, (gid_t)-1);
}

static void refused(void **state)
{
	assert_int_equal(parse("no-such-user", "", "", NULL), -EINVAL);
	assert_string_equal(err.field, "port.vhost.socket_owner");
	assert_int_equal(parse("", "no-such-group", "", NULL), -EINVAL);
	assert_string_equal(err.field, "port.vhost.socket_group");
	assert_int_equal(parse("4294967295", "", "", NULL), -EINVAL); // would mean "as it is"
	assert_int_equal(parse("", "", "0000", NULL), -EINVAL);
	assert_int_equal(parse("", "", "4755", NULL), -EINVAL);
	assert_string_equal(err.field, "port.vhost.socket_mode");
}

static void of_a_file(void **state)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char dir[] = "/tmp/corelane-access-XXXXXX", link[sizeof(un.sun_path) + 8];
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	mode_t before;
	struct stat st;

	assert_non_null(mkdtemp(dir));
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/s", dir);
	snprintf(link, sizeof(link), "%s/link", dir);
	before = socket_access_lock();
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	socket_access_unlock(before);
	assert_int_equal(stat(un.sun_path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0);
	a = (struct socket_access){(uid_t)-1, (gid_t)-1, 0640};
	if (geteuid() == 0) {
		a.uid = 1234;
		a.gid = 1235;
	}
	assert_int_equal(socket_access_set(un.sun_path, &a), 0);
	assert_int_equal(stat(un.sun_path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(st.st_uid, geteuid() == 0 ? 1234 : geteuid());
	assert_int_equal(st.st_gid, geteuid() == 0 ? 1235 : getegid());
	assert_int_equal(symlink(un.sun_path, link), 0);
	assert_int_equal(socket_access_set(link, &a), -ENOTSOCK); // another file than the one that was bound
	assert_int_equal(socket_access_set("/no/such/file", &a), -ENOENT);
	close(fd);
	unlink(link);
	unlink(un.sun_path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(parsed), cmocka_unit_test(refused),
					   cmocka_unit_test(of_a_file)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
