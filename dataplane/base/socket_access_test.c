// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <grp.h>
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
#include <sys/wait.h>
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

// It remembers one name: that of all sockets in a start.
static void remembered_fallback(void **state)
{
	static const struct {
		const char *name;
		gid_t gid;
	} steps[] = {{"root", 0},   {"root", 0}, {"no-such-group", (gid_t)-1}, {"no-such-group", (gid_t)-1},
		     {"daemon", 1}, {"root", 0}};
	unsigned i, on;

	for (on = 0; on < 3; on++) {
		socket_access_remember(on == 1);
		for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
			assert_int_equal(parse("", "", "", steps[i].name), 0);
			assert_int_equal(a.gid, steps[i].gid);
		}
	}
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

#define USER 1234
#define GROUP 1235
#define OTHER_GROUP 1236 // the user is in it, too

// Runs in a child, which must not return to cmocka: it ends with the number of the first check that fails.
static void parse_as_user(void)
{
	static const gid_t groups[] = {OTHER_GROUP};

	if (setgroups(1, groups) < 0 || setresgid(GROUP, GROUP, GROUP) < 0 || setresuid(USER, USER, USER) < 0)
		_exit(1);
	if (parse("1", "", "", NULL) != -EINVAL || strcmp(err.field, "port.vhost.socket_owner") != 0 ||
	    strcmp(err.message, "port.vhost.socket_owner '1': the daemon, without CAP_CHOWN, cannot give a socket to "
				"another user; valid: 1234, the daemon's user") != 0)
		_exit(2);
	if (parse("", "0", "", NULL) != -EINVAL || strcmp(err.field, "port.vhost.socket_group") != 0 ||
	    strcmp(err.message, "port.vhost.socket_group '0': the daemon, without CAP_CHOWN, cannot give a socket to a "
				"group that it is not in; valid: groups of the daemon: 1235 1236") != 0)
		_exit(3);
	if (parse("1234", "1235", "", NULL) != 0 || a.uid != USER || a.gid != GROUP)
		_exit(4);
	if (parse("", "1236", "", NULL) != 0 || a.gid != OTHER_GROUP)
		_exit(5);
	if (parse("", "", "", "root") != 0 || a.gid != (gid_t)-1) // a default that is not possible is not used
		_exit(6);
	if (parse("", "", "", "1236") != 0 || a.gid != OTHER_GROUP)
		_exit(7);
	_exit(0);
}

static void without_the_right_to_give_away(void **state)
{
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		parse_as_user();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(parsed), cmocka_unit_test(remembered_fallback),
					   cmocka_unit_test(refused), cmocka_unit_test(of_a_file),
					   cmocka_unit_test(without_the_right_to_give_away)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
