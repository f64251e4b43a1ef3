// SPDX-License-Identifier: Apache-2.0
// The daemon's side of the helper.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "privilege/helper.h"

static int helper = -1;

static int helper_ask(const struct helper_request *r, const int *fd, int fds[PORT_MAX_QUEUES], unsigned wanted,
		      struct error *err)
{
	struct helper_answer a = {0};
	unsigned n = 0;
	int ret = helper_send(helper, r, sizeof(*r), fd, fd ? 1 : 0);

	if (ret > 0)
		ret = helper_receive(helper, &a, sizeof(a), fds, &n);
	if (ret == sizeof(a) && a.ret == 0 && n == wanted)
		return 0;
	while (n > 0)
		close(fds[--n]);
	if (ret != sizeof(a) || a.ret >= 0)
		return error_set(err, EPIPE, "port.kind", "tap", "a restart of corelaned",
				 "the helper process, which makes taps, has ended");
	if (err)
		*err = a.err;
	return a.ret;
}

static int create_by_helper(const struct tap_request *t, int fds[PORT_MAX_QUEUES], struct error *err)
{
	struct helper_request r = {.what = HELPER_CREATE, .tap = *t};

	return helper_ask(&r, NULL, fds, t->queues, err);
}

static int set_mtu_by_helper(int fd, uint16_t mtu, struct error *err)
{
	struct helper_request r = {.what = HELPER_SET_MTU, .tap.mtu = mtu};
	int fds[PORT_MAX_QUEUES];

	return helper_ask(&r, &fd, fds, 0, err);
}

// Signals for the daemon's process group are not for the helper: it ends when its socket is closed.
static void __attribute__((noreturn))
helper_main(int sock, pid_t daemon, int (*begin)(void *arg, struct error *err), void *arg)
{
	int own_netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	struct error err = {};
	int ret = own_netns < 0 ? -errno : 0;

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	prctl(PR_SET_NAME, "corelane-helper");
	prctl(PR_SET_DUMPABLE, 0);
	if (ret == 0)
		ret = begin(arg, &err);
	if (ret == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		ret = -errno;
	if (ret == 0 && getppid() != daemon)
		ret = error_set(&err, ESRCH, NULL, NULL, NULL, "corelaned has ended meanwhile");
	if (ret < 0) {
		fprintf(stderr, "corelaned: the helper process cannot start: %s\n",
			err.code ? err.message : strerror(-ret));
		_exit(1);
	}
	helper_serve(sock, own_netns);
}

int helper_start(int (*begin)(void *arg, struct error *err), void *arg, struct error *err)
{
	pid_t self = getpid(), pid;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return error_set(err, errno, NULL, NULL, NULL, "no socket for the helper process: %s", strerror(errno));
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		helper_main(pair[1], self, begin, arg);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return error_set(err, errno, NULL, NULL, NULL, "no helper process: %s", strerror(errno));
	}
	helper = pair[0];
	port_rights.tap_create = create_by_helper;
	port_rights.tap_set_mtu = set_mtu_by_helper;
	return 0;
}
