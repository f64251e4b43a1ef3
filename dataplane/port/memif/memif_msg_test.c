// SPDX-License-Identifier: Apache-2.0
// Raw sockets as clients: false control messages, garbage and silence.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "port/memif/memif_testlib.h"

static int raw_connect(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, test_path("raw"));
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void raw_send(int fd, const void *data, size_t size, int pass)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {.iov_base = (void *)data, .iov_len = size};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

	if (pass >= 0) {
		mh.msg_control = control;
		mh.msg_controllen = sizeof(control);
		*CMSG_FIRSTHDR(&mh) = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&mh)), &pass, sizeof(pass));
	}
	assert_int_equal(sendmsg(fd, &mh, MSG_NOSIGNAL), size);
}

// The next message that is neither HELLO nor ACK; type 0 when the connection has been closed.
static struct memif_msg raw_answer(int fd)
{
	struct memif_msg msg = {0};
	unsigned tries;
	ssize_t n;

	for (tries = 0; tries < 1000; tries++) {
		n = recv(fd, &msg, sizeof(msg), MSG_DONTWAIT);
		if (n == 0)
			return (struct memif_msg){0};
		if (n == sizeof(msg) && msg.type != MEMIF_HELLO && msg.type != MEMIF_ACK)
			return msg;
		test_pump(1);
	}
	fail_msg("no answer");
	return msg;
}

static int sealed_memfd(uint64_t size, int seals)
{
	int fd = memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

enum raw_fd { NO_FD, GOOD_MEMFD, UNSEALED_MEMFD, READ_ONLY_MEMFD, EVENTFD, PIPE, DEV_ZERO, DISK_FILE };

static int raw_fd(enum raw_fd kind)
{
	char path[] = "/tmp/memif_hostile.XXXXXX";
	int fds[2];

	switch (kind) {
	case GOOD_MEMFD:
		return sealed_memfd(65536, F_SEAL_SHRINK);
	case UNSEALED_MEMFD:
		return sealed_memfd(65536, F_SEAL_GROW);
	case READ_ONLY_MEMFD:
		return sealed_memfd(65536, F_SEAL_SHRINK | F_SEAL_WRITE);
	case EVENTFD:
		return eventfd(0, 0);
	case PIPE:
		assert_int_equal(pipe(fds), 0);
		close(fds[0]);
		return fds[1];
	case DEV_ZERO:
		return open("/dev/zero", O_RDWR);
	case DISK_FILE:
		fds[0] = mkstemp(path);
		unlink(path);
		assert_int_equal(ftruncate(fds[0], 65536), 0);
		return fds[0];
	default:
		return -1;
	}
}

#define INIT                                                                                    \
	{                                                                                       \
		.type = MEMIF_INIT, .init = {.version = MEMIF_VERSION, .id = 5, .secret = "s" } \
	}
#define REGION(i, bytes)                                                             \
	{                                                                            \
		.type = MEMIF_ADD_REGION, .add_region = {.index = i, .size = bytes } \
	}
#define RING_MSG(i, r, o, l)                          \
	{                                             \
		.type = MEMIF_ADD_RING, .add_ring = { \
			.flags = 1,                   \
			.index = i,                   \
			.region = r,                  \
			.offset = o,                  \
			.log2_size = l                \
		}                                     \
	}

static const struct {
	struct memif_msg msg[4];
	enum raw_fd fd[4];
	const char *reason;
} scripts[] = {
	{{{.type = MEMIF_ACK}}, {0}, "unexpected message 1"},
	{{{.type = MEMIF_HELLO}}, {0}, "unexpected message 2"},
	{{{.type = MEMIF_CONNECT}}, {0}, "unexpected message 6"},
	{{{.type = 0xffff}}, {0}, "unexpected message 65535"},
	{{REGION(0, 65536)}, {GOOD_MEMFD}, "unexpected message 4"},
	{{{.type = MEMIF_INIT, .init = {.version = 0x0100, .id = 5}}}, {0}, "version"},
	{{{.type = MEMIF_INIT, .init = {.version = MEMIF_VERSION, .id = 6}}}, {0}, "no interface with id 6"},
	{{{.type = MEMIF_INIT, .init = {.version = MEMIF_VERSION, .id = 5}}}, {0}, "wrong secret"},
	{{{.type = MEMIF_INIT, .init = {.version = MEMIF_VERSION, .id = 5, .mode = 1, .secret = "s"}}},
	 {0},
	 "only Ethernet"},
	{{INIT, INIT}, {0}, "unexpected message 3"},
	{{INIT, {.type = MEMIF_CONNECT}}, {0}, "no rings"},
	{{INIT, {.type = MEMIF_CONNECTED}}, {0}, "unexpected message 7"},
	{{INIT, REGION(0, 65536)}, {0}, "without file descriptor"},
	{{INIT, REGION(1, 65536)}, {NO_FD, GOOD_MEMFD}, "out of order"},
	{{INIT, REGION(0, 65537)}, {NO_FD, GOOD_MEMFD}, "Invalid argument"},
	{{INIT, REGION(0, UINT64_MAX)}, {NO_FD, GOOD_MEMFD}, "Invalid argument"},
	{{INIT, REGION(0, 0)}, {NO_FD, GOOD_MEMFD}, "Invalid argument"},
	{{INIT, REGION(0, 65536)}, {NO_FD, UNSEALED_MEMFD}, "sealed"},
	{{INIT, REGION(0, 65536)}, {NO_FD, READ_ONLY_MEMFD}, "writable"},
	{{INIT, REGION(0, 65536)}, {NO_FD, EVENTFD}, "sealed"},
	{{INIT, REGION(0, 65536)}, {NO_FD, PIPE}, "sealed"},
	{{INIT, REGION(0, 65536)}, {NO_FD, DEV_ZERO}, "sealed"},
	{{INIT, REGION(0, 65536)}, {NO_FD, DISK_FILE}, "sealed"},
	{{INIT, REGION(0, 65536), RING_MSG(0, 0, 0, 5)}, {NO_FD, GOOD_MEMFD}, "without eventfd"},
	{{INIT, REGION(0, 65536), RING_MSG(0, 0, 0, 5)}, {NO_FD, GOOD_MEMFD, EVENTFD}, "Protocol error"}, // no cookie
	{{INIT, REGION(0, 65536), RING_MSG(1, 0, 0, 5)}, {NO_FD, GOOD_MEMFD, EVENTFD}, "at most 1 rings"},
	{{INIT, REGION(0, 65536), RING_MSG(0, 1, 0, 5)}, {NO_FD, GOOD_MEMFD, EVENTFD}, "Invalid argument"},
	{{INIT, REGION(0, 65536), RING_MSG(0, 0xffff, 0, 5)}, {NO_FD, GOOD_MEMFD, EVENTFD}, "Invalid argument"},
	{{INIT, REGION(0, 65536), RING_MSG(0, 0, 65536, 5)}, {NO_FD, GOOD_MEMFD, EVENTFD}, "Invalid argument"},
	{{INIT, REGION(0, 65536), RING_MSG(0, 0, 0xfffffff0, 5)}, {NO_FD, GOOD_MEMFD, EVENTFD}, "Invalid argument"},
	{{INIT, REGION(0, 65536), RING_MSG(0, 0, 1, 5)}, {NO_FD, GOOD_MEMFD, EVENTFD}, "Invalid argument"},
	{{INIT, REGION(0, 65536), RING_MSG(0, 0, 65536 - 16384, 10)}, {NO_FD, GOOD_MEMFD, EVENTFD}, "Invalid argument"},
	{{INIT, REGION(0, 65536), RING_MSG(0, 0, 0, 11)}, {NO_FD, GOOD_MEMFD, EVENTFD}, "at most 1024 slots"},
	{{INIT, REGION(0, 65536), RING_MSG(0, 0, 0, 255)}, {NO_FD, GOOD_MEMFD, EVENTFD}, "at most 1024 slots"},
	{{INIT, {.type = MEMIF_DISCONNECT}}, {0}, NULL},
};

static void lying_messages(void **state)
{
	struct port_config cfg = test_config("raw", false, "raw");
	unsigned i, k, fds;
	struct port *port;

	cfg.memif_id = 5;
	strcpy(cfg.secret, "s");
	port = test_open(&cfg);
	fds = test_fds();
	for (i = 0; i < RTE_DIM(scripts); i++) {
		int fd = raw_connect(), pass;
		struct memif_msg answer;

		for (k = 0; k < 4 && scripts[i].msg[k].type != 0; k++) {
			pass = raw_fd(scripts[i].fd[k]);
			raw_send(fd, &scripts[i].msg[k], sizeof(scripts[i].msg[k]), pass);
			if (pass >= 0)
				close(pass);
			test_pump(1);
		}
		answer = raw_answer(fd);
		if (scripts[i].reason == NULL)
			assert_int_equal(answer.type, 0);
		else if (answer.type != MEMIF_DISCONNECT || strstr(answer.disconnect.reason, scripts[i].reason) == NULL)
			fail_msg("script %u: '%s' where '%s' was expected", i, answer.disconnect.reason,
				 scripts[i].reason);
		close(fd);
		test_pump(1);
		assert_int_equal(test_fds(), fds);
	}
	test_close(port);
}

static void garbage_and_silence(void **state)
{
	struct port_config cfg = test_config("raw", false, "raw");
	struct port *port = test_open(&cfg);
	uint8_t junk[300] = {3};
	int fds[MEMIF_MAX_PENDING + 20], fd;
	unsigned i;

	for (i = 1; i <= sizeof(junk); i++) { // every length but the right one
		if (i == sizeof(struct memif_msg))
			continue;
		fd = raw_connect();
		raw_send(fd, junk, i, -1);
		assert_int_equal(raw_answer(fd).type, MEMIF_DISCONNECT);
		close(fd);
	}
	for (i = 0; i < RTE_DIM(fds); i++) { // more than MEMIF_MAX_PENDING: the last ones are refused
		fds[i] = raw_connect();
		test_pump(1);
	}
	assert_int_equal(raw_answer(fds[RTE_DIM(fds) - 1]).type, 0);
	for (i = 0; i < RTE_DIM(fds); i++)
		close(fds[i]);
	fd = raw_connect(); // says nothing
	test_pump(MEMIF_HANDSHAKE_MS + 500);
	assert_true(strstr(raw_answer(fd).disconnect.reason, "5000 ms") != NULL);
	close(fd);
	test_close(port);
}

// Descriptors that come with a message are closed whatever is wrong with the message, also if it has no bytes: then it
// looks as if the peer had closed the connection.
static void descriptors_of_bad_messages(void **state)
{
	static const size_t sizes[] = {0, 1, sizeof(struct memif_msg) - 1, sizeof(struct memif_msg) + 1};
	struct port_config cfg = test_config("raw", false, "raw");
	struct port *port = test_open(&cfg);
	unsigned fds = test_fds(), i;
	uint8_t junk[256] = {0};

	for (i = 0; i < RTE_DIM(sizes); i++) {
		int fd = raw_connect(), pass = raw_fd(EVENTFD);

		raw_send(fd, junk, sizes[i], pass);
		close(pass);
		assert_int_equal(raw_answer(fd).type, sizes[i] > 0 ? MEMIF_DISCONNECT : 0);
		close(fd);
		test_pump(1);
		assert_int_equal(test_fds(), fds);
	}
	test_close(port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(lying_messages), cmocka_unit_test(garbage_and_silence),
					   cmocka_unit_test(descriptors_of_bad_messages)};

	return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
