// SPDX-License-Identifier: Apache-2.0
// Descriptors are watched in the epoll instance, which poll() then sees as one.
#include "base/wake_fd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/system_calls.h"

#define EVENTS 16 // handled at once; with more, the descriptor stays readable

int wake_fd_new(void)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int wake_fd_watch(int wake_fd, int fd, bool edges)
{
	struct epoll_event ev = {.events = EPOLLIN | (edges ? EPOLLET : 0)};

	return epoll_ctl(wake_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

void wake_fd_forget(int wake_fd, int fd)
{
	epoll_ctl(wake_fd, EPOLL_CTL_DEL, fd, NULL);
}

int wake_fd_rest(int wake_fd)
{
	struct epoll_event ev[EVENTS];
	int i, n, ret = 0;

	system_calls++;
	n = epoll_wait(wake_fd, ev, EVENTS, 0);
	for (i = 0; i < n; i++)
		if (ev[i].events & (EPOLLERR | EPOLLHUP))
			ret = -EIO;
	return ret;
}

bool wake_fd_is_eventfd(int fd)
{
	char path[32], target[32] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, target, sizeof(target) - 1) > 0 && strcmp(target, "anon_inode:[eventfd]") == 0;
}
