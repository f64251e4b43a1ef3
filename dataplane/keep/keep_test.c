// SPDX-License-Identifier: Apache-2.0
// The kept state: what its file withstands, what a start repeats, and when it leaves out a change. A "daemon" of this
// test is a child process, which ends without a word, as one that was killed.
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "api/api.h"
#include "api/ttrpc.h"
#include "base/event.h"
#include "keep/keep_testlib.h"
#include "route.pb-c.h"
#include "vrf.pb-c.h"

static void nothing_between(void)
{
}

static void ignore(void *arg, const void *data, size_t n)
{
}

// A client of the daemon makes one change.
static void call_method(struct api_conn *c, uint32_t id, const char *method, const ProtobufCMessage *req)
{
	uint8_t frame[512], *p = frame + TTRPC_HEADER, payload[128];
	size_t n = protobuf_c_message_pack(req, payload);
	const char *service = "corelane.v1.Vrfs";
	struct ttrpc_header h = {.stream = id, .type = TTRPC_REQUEST};

	*p++ = 1 << 3 | 2;
	*p++ = (uint8_t)strlen(service);
	p = (uint8_t *)stpcpy((char *)p, service);
	*p++ = 2 << 3 | 2;
	*p++ = (uint8_t)strlen(method);
	p = (uint8_t *)stpcpy((char *)p, method);
	*p++ = 3 << 3 | 2;
	*p++ = (uint8_t)n;
	memcpy(p, payload, n);
	p += n;
	h.length = (uint32_t)(p - frame - TTRPC_HEADER);
	ttrpc_header_write(frame, &h);
	assert_int_equal(api_conn_input(c, frame, (size_t)(p - frame)), 0);
	while (api_conn_input(c, "", 0) == 0 && n-- > 0)
		;
}

static void add(struct api_conn *c, uint32_t id, const char *name)
{
	Corelane__V1__Vrf vrf = CORELANE__V1__VRF__INIT;
	Corelane__V1__VrfAddRequest req = CORELANE__V1__VRF_ADD_REQUEST__INIT;

	vrf.name = (char *)(uintptr_t)name;
	req.vrf = &vrf;
	call_method(c, id, "Add", &req.base);
}

static bool has_event(const char *kind)
{
	const struct event_record *e;
	uint64_t n = 0;

	while ((e = event_after(n)) != NULL) {
		n = e->number;
		if (strcmp(e->kind->name, kind) == 0)
			return true;
	}
	return false;
}

// Runs a daemon in a child. Changes: names of VRFs to add, "-" deletes one. Returns what the daemon then has, and
// "!KIND" for each event of these kinds.
enum end { KILLED, STOPPED, HEALTHY, SQUEEZED };

static const char *daemon_run(const char *const *changes, enum end end)
{
	static const char *const kinds[] = {"state_restored", "state_partly_restored", "state_unreadable",
					    "state_change_left_out", "state_not_kept"};
	static char text[512];
	int pipes[2], status;
	size_t got;
	ssize_t n;
	unsigned i;

	assert_int_equal(pipe(pipes), 0);
	if (fork() == 0) {
		struct error err = {0};
		struct api_conn *c;

		if (keep_start(keep_test_dir, &err) < 0)
			_exit(1);
		assert_int_equal(keep_restore(nothing_between, &err), 0);
		c = api_conn_test(ignore, NULL);
		if (end == SQUEEZED)
			keep_poll(); // the thread begins before the changes
		for (i = 0; changes[i]; i++) {
			if (strcmp(changes[i], "-") == 0) {
				Corelane__V1__VrfDelRequest req = CORELANE__V1__VRF_DEL_REQUEST__INIT;

				req.name = (char *)(uintptr_t) "x";
				call_method(c, 2 * i + 1, "Del", &req.base);
			} else {
				add(c, 2 * i + 1, changes[i]);
			}
		}
		for (i = 0; end == HEALTHY && i < KEEP_HEALTHY; i++)
			keep_poll();
		if (end == STOPPED || end == SQUEEZED)
			keep_stop(); // waits for the thread
		dprintf(pipes[1], "%s", keep_test_made);
		for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
			if (has_event(kinds[i]))
				dprintf(pipes[1], "!%s", kinds[i]);
		_exit(0);
	}
	close(pipes[1]);
	for (got = 0; (n = read(pipes[0], text + got, sizeof(text) - 1 - got)) > 0;)
		got += (size_t)n;
	text[got] = '\0';
	close(pipes[0]);
	wait(&status);
	assert_int_equal(status, 0);
	return text;
}

#define RUN(end, ...) daemon_run((const char *const[]){"", ##__VA_ARGS__, NULL} + 1, end)

static size_t file_size(const char *name)
{
	struct stat st;

	return stat(keep_test_path(name), &st) == 0 ? (size_t)st.st_size : 0;
}

// What was accepted comes back in order, with the ids that the daemon had chosen. What was refused does not.
static void test_restored(void **state)
{
	assert_string_equal(RUN(KILLED, "red", "refused", "blue"), "api/red/1 api/blue/2 ");
	assert_string_equal(RUN(KILLED, "green", "-"), "api/red/1 api/blue/2 api/green/1 deleted !state_restored");
	assert_string_equal(RUN(STOPPED), "api/red/1 api/blue/2 api/green/1 !state_restored");
	assert_string_equal(RUN(KILLED), "api/red/1 api/blue/2 api/green/1 !state_restored");
}

// A record that was being written when the process ended was never accepted.
static void test_torn(void **state)
{
	size_t whole;

	RUN(KILLED, "red");
	whole = file_size("state");
	RUN(KILLED, "blue");
	assert_int_equal(truncate(keep_test_path("state"), (off_t)file_size("state") - 1), 0);
	assert_string_equal(RUN(KILLED), "api/red/1 !state_restored");
	assert_int_equal(file_size("state"), whole);
}

static void overwrite(off_t at, const char *bytes)
{
	int fd = open(keep_test_path("state"), O_WRONLY);

	assert_int_equal(pwrite(fd, bytes, strlen(bytes), at), strlen(bytes));
	close(fd);
}

// A file that is damaged or foreign is set aside, whole.
static void test_damaged(void **state)
{
	size_t size;

	RUN(KILLED, "red", "blue");
	size = file_size("state");
	overwrite(40, "?");
	assert_string_equal(RUN(KILLED, "green"), "api/green/1 !state_unreadable");
	assert_int_equal(file_size("state.bad"), size);
	assert_string_equal(RUN(KILLED), "api/green/1 !state_restored");
	overwrite(0, "corelane state 2");
	assert_string_equal(RUN(KILLED), "!state_unreadable");
	overwrite(sizeof(KEEP_MAGIC) - 1, "\xff\xff\xff\xff\xff\xff\xff\xff"); // a length that is no length
	assert_string_equal(RUN(KILLED), "!state_unreadable");
}

// Three crashes with one state: the next start leaves out the last change. Less than that, a stop, a while without a
// crash or a new change do not.
static void test_crashes(void **state)
{
	RUN(KILLED, "red", "blue"); // the first crash with this state
	RUN(KILLED);
	assert_string_equal(RUN(STOPPED), "api/red/1 api/blue/2 !state_restored");
	RUN(KILLED);
	RUN(KILLED);
	assert_string_equal(RUN(HEALTHY), "api/red/1 api/blue/2 !state_restored");
	RUN(KILLED);
	RUN(KILLED, "bad"); // that crash is the first one with this change
	RUN(KILLED);
	assert_string_equal(RUN(KILLED), "api/red/1 api/blue/2 api/bad/1 !state_restored");
	assert_string_equal(RUN(KILLED), "api/red/1 api/blue/2 !state_restored!state_change_left_out");
	assert_string_equal(RUN(KILLED), "api/red/1 api/blue/2 !state_restored");
}

// Changes that are refused now are named, and the others are keep_test_made.
static void test_refused(void **state)
{
	struct keep_image image;
	Keep__Change change = KEEP__CHANGE__INIT;
	uint64_t end;
	char why[KEEP_WHY];
	int fd;

	RUN(STOPPED, "red");
	assert_int_equal(keep_file_read(keep_test_path("state"), SIZE_MAX, &image, why), 0);
	assert_int_equal(image.count, 1);
	end = image.end;
	keep_file_free(&image);
	change.owner = change.service = change.method = (char *)(uintptr_t) "agent";
	fd = open(keep_test_path("state"), O_WRONLY);
	assert_int_equal(keep_file_append(fd, &end, &change), 0);
	close(fd);
	assert_string_equal(RUN(KILLED, "blue"), "api/red/1 api/blue/1 !state_partly_restored");
}

// Two daemons do not write to one file.
static void test_locked(void **state)
{
	struct error err = {0};
	int status;

	assert_int_equal(keep_start(keep_test_dir, &err), 0);
	if (fork() == 0) {
		keep_stop(); // the parent's
		_exit(keep_start(keep_test_dir, &err) == -EBUSY && strstr(err.message, "another corelaned") ? 0 : 1);
	}
	wait(&status);
	assert_int_equal(status, 0);
}

// Without a directory that can be used the daemon runs, and says what is not kept.
static void test_unusable(void **state)
{
	snprintf(keep_test_dir + strlen(keep_test_dir), 8, "/a/b");
	assert_string_equal(RUN(KILLED, "red"), "api/red/1 !state_not_kept");
	*strstr(keep_test_dir, "/a/b") = '\0';
}

// What others may have written is not repeated with the rights of an administrator.
static void test_of_others(void **state)
{
	RUN(KILLED, "red");
	assert_int_equal(chmod(keep_test_dir, 0770), 0);
	assert_string_equal(RUN(KILLED, "blue"), "api/blue/1 !state_not_kept");
	assert_int_equal(chmod(keep_test_dir, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(keep_test_dir, 65534, 0), 0);
		assert_string_equal(RUN(KILLED, "blue"), "api/blue/1 !state_not_kept");
		assert_int_equal(chown(keep_test_dir, 0, 0), 0);
	}
	assert_string_equal(RUN(STOPPED), "api/red/1 !state_restored");
	assert_int_equal(chmod(keep_test_path("state"), 0602), 0);
	assert_string_equal(RUN(STOPPED, "blue"), "api/blue/1 !state_unreadable");
	assert_string_equal(RUN(STOPPED), "api/blue/1 !state_restored");
}

// What names an object that comes later is tried again.
static void test_order(void **state)
{
	struct bytes f = keep_test_file();
	int fd;

	keep_test_append_vrf(&f, "Vrfs.Add", "later");
	keep_test_append_vrf(&f, "Vrfs.Add", "blue");
	fd = open(keep_test_path("state"), O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, f.data, f.n), f.n);
	close(fd);
	free(f.data);
	assert_string_equal(RUN(KILLED), "api/blue/1 api/later/2 !state_restored");
}

// Runs a successor in a child: what the file had comes before the predecessor stops, and then what was appended.
// other: another file has taken its place. Returns 0 if that is what happened.
static int successor(bool other)
{
	size_t magic = sizeof(KEEP_MAGIC) - 1;
	struct bytes f = keep_test_file();
	struct error err = {0};
	ssize_t n;
	int fd, ret;

	if (keep_warm(keep_test_dir, nothing_between, &err) < 0 || strcmp(keep_test_made, "api/red/1 ") != 0)
		return 1;
	keep_test_append_vrf(&f, "Vrfs.Add", "blue");
	if (other)
		unlink(keep_test_path("state"));
	fd = open(keep_test_path("state"), O_WRONLY | O_CREAT | O_APPEND, 0600);
	n = other ? write(fd, f.data, f.n) : write(fd, f.data + magic, f.n - magic);
	close(fd);
	free(f.data);
	if (n <= 0 || keep_start(keep_test_dir, &err) < 0)
		return 2;
	ret = keep_restore(nothing_between, &err);
	if (other)
		return ret == -ESTALE && strcmp(keep_test_made, "api/red/1 ") == 0 ? 0 : 3;
	return ret == 0 && strcmp(keep_test_made, "api/red/1 api/blue/1 ") == 0 ? 0 : 4;
}

static void test_takeover(void **state)
{
	int status, other;

	for (other = 0; other < 2; other++) {
		unlink(keep_test_path("state"));
		RUN(STOPPED, "red");
		if (fork() == 0)
			_exit(successor(other));
		wait(&status);
		assert_int_equal(status, 0);
		assert_string_equal(RUN(STOPPED),
				    other ? "api/blue/1 !state_restored" : "api/red/1 api/blue/1 !state_restored");
	}
}

// The file of a running daemon is replaced, and what is accepted meanwhile is in the new one.
static void test_squeezed(void **state)
{
	struct bytes f = keep_test_file();
	size_t whole;
	unsigned i;
	int fd;

	for (i = 0; i < 1000; i++)
		keep_test_append_routes(&f, i % 2 ? "Routes.Del" : "Routes.Add", LIST("10.1.0.0/16"), 1);
	fd = open(keep_test_path("state"), O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, f.data, f.n), f.n);
	close(fd);
	whole = f.n;
	free(f.data);
	keep_squeeze_bytes = 4096;
	assert_string_equal(RUN(SQUEEZED, "red", "blue"), "api/red/1 api/blue/2 ");
	assert_true(file_size("state") < whole / 100);
	assert_string_equal(RUN(KILLED), "api/red/1 api/blue/2 !state_restored");
	keep_squeeze_bytes = 1u << 20;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_restored, keep_test_setup, keep_test_teardown),
		cmocka_unit_test_setup_teardown(test_torn, keep_test_setup, keep_test_teardown),
		cmocka_unit_test_setup_teardown(test_damaged, keep_test_setup, keep_test_teardown),
		cmocka_unit_test_setup_teardown(test_crashes, keep_test_setup, keep_test_teardown),
		cmocka_unit_test_setup_teardown(test_refused, keep_test_setup, keep_test_teardown),
		cmocka_unit_test_setup_teardown(test_order, keep_test_setup, keep_test_teardown),
		cmocka_unit_test_setup_teardown(test_takeover, keep_test_setup, keep_test_teardown),
		cmocka_unit_test_setup_teardown(test_squeezed, keep_test_setup, keep_test_teardown),
		cmocka_unit_test_setup_teardown(test_unusable, keep_test_setup, keep_test_teardown),
		cmocka_unit_test_setup_teardown(test_of_others, keep_test_setup, keep_test_teardown),
		cmocka_unit_test_setup_teardown(test_locked, keep_test_setup,
						keep_test_teardown), // leaves the lock to this process
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
