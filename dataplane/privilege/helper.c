// SPDX-License-Identifier: Apache-2.0
// The helper's side. It trusts the daemon no more than a stranger: each request is checked here.
#include "privilege/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

int helper_send(int sock, const void *message, size_t size, const int *fds, unsigned n)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int) * PORT_MAX_QUEUES)];
	} control = {};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)message, .iov_len = size};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t ret;

	if (n > 0) {
		control.head = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(sizeof(int) * n), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.head), fds, sizeof(int) * n);
		m.msg_control = control.bytes;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * n);
	}
	do
		ret = sendmsg(sock, &m, MSG_NOSIGNAL);
	while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : (int)ret;
}

int helper_receive(int sock, void *message, size_t size, int fds[PORT_MAX_QUEUES], unsigned *n)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int) * PORT_MAX_QUEUES)];
	} control;
	struct iovec iov = {.iov_base = message, .iov_len = size};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	const struct cmsghdr *c;
	ssize_t ret;

	*n = 0;
	do
		ret = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	while (ret < 0 && errno == EINTR);
	if (ret < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&m);
	if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		*n = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(c), sizeof(int) * *n);
	}
	return (int)ret;
}

static int check_request(const struct helper_request *r, unsigned n_fds, struct error *err)
{
	const struct tap_request *t = &r->tap;
	int ret = check_number("port.mtu", t->mtu, LIMIT_PORT_MTU_MIN, LIMIT_PORT_MTU_MAX, err);

	if (ret < 0)
		return ret;
	if (r->what == HELPER_SET_MTU && n_fds == 1)
		return 0;
	if (r->what != HELPER_CREATE || n_fds != 0 || memchr(t->ifname, '\0', sizeof(t->ifname)) == NULL ||
	    memchr(t->netns, '\0', sizeof(t->netns)) == NULL)
		return error_set(err, EINVAL, NULL, NULL, NULL, "the helper does not know this request");
	ret = check_text("tap.ifname", t->ifname, NOTATION_INTERFACE, err);
	return ret < 0 ? ret : check_number("port.queues", t->queues, 1, PORT_MAX_QUEUES, err);
}

static int helper_enter_netns(int netns, const char *name, struct error *err)
{
	return setns(netns, CLONE_NEWNET) == 0 ? 0
					       : error_set(err, errno, "tap.netns", name, "a network namespace",
							   "cannot be entered: %s", strerror(errno));
}

static int helper_create_tap(const struct tap_request *t, int fds[PORT_MAX_QUEUES], struct error *err)
{
	int netns, ret;

	if (t->netns[0] == '\0')
		return tap_device_create(t, fds, err);
	netns = tap_netns_open(t->netns, err);
	if (netns < 0)
		return netns;
	ret = helper_enter_netns(netns, t->netns, err);
	if (ret == 0)
		ret = tap_device_create(t, fds, err);
	close(netns);
	return ret;
}

static int set_mtu(int fd, uint16_t mtu, struct error *err)
{
	int netns = tap_device_netns(fd, err), ret;

	if (netns < 0)
		return netns;
	ret = helper_enter_netns(netns, NULL, err);
	if (ret == 0)
		ret = tap_device_set_mtu(fd, mtu, err);
	close(netns);
	return ret;
}

static void serve_one(int sock, const struct helper_request *r, int fds[PORT_MAX_QUEUES], unsigned n)
{
	struct helper_answer a = {};

	a.ret = check_request(r, n, &a.err);
	if (a.ret == 0)
		a.ret = r->what == HELPER_CREATE ? helper_create_tap(&r->tap, fds, &a.err)
						 : set_mtu(fds[0], r->tap.mtu, &a.err);
	if (a.ret == 0 && r->what == HELPER_CREATE)
		a.n_fds = n = r->tap.queues;
	helper_send(sock, &a, sizeof(a), fds, a.n_fds);
	while (n > 0)
		close(fds[--n]);
}

void helper_serve(int sock, int own_netns)
{
	int fds[PORT_MAX_QUEUES];
	struct helper_request r;
	unsigned n;

	for (;;) {
		if (helper_receive(sock, &r, sizeof(r), fds, &n) != sizeof(r))
			_exit(0); // the daemon has gone
		// analyzer: core.CallAndMessage: helper_receive() has set fds and n
		serve_one(sock, &r, fds, n);
		if (setns(own_netns, CLONE_NEWNET) < 0)
			_exit(1);
	}
}
