// SPDX-License-Identifier: Apache-2.0
#include "main/takeover.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define TAKEOVER_NAP_NS 500000
#define TAKEOVER_NAPS 60000 // half a minute

static int takeover_refuse(const char *path, int ret, const char *what, struct error *err)
{
	return error_set(err, -ret, "--takeover", path, "the same without this option", "%s: %s", what, strerror(-ret));
}

// A service manager names the process that it knows as the service (MAINPID, systemd.exec(5)). To take over from
// another one would end that one, and leave the service's own running.
static int takeover_check(const char *path, int pid, struct error *err)
{
	const char *known = getenv("MAINPID");

	if (known == NULL || atoi(known) == pid)
		return 0;
	return error_set(err, EBUSY, "--takeover", path, "the socket of the service's main process",
			 "process %d answers there, and the service manager knows process %s as the service", pid,
			 known);
}

int takeover_find(const char *path, int *pid, struct error *err)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), ret = 0;
	struct ucred peer = {};
	socklen_t n = sizeof(peer);

	if (fd < 0)
		return takeover_refuse(path, -errno, "no socket", err);
	if (snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path) >= (int)sizeof(addr.sun_path))
		ret = -ENAMETOOLONG;
	else if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
		 getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
		ret = -errno;
	close(fd);
	if (ret < 0)
		return takeover_refuse(path, ret, "no corelaned answers there", err);
	if (peer.pid <= 1 || syscall(SYS_tgkill, peer.pid, peer.pid, 0) < 0)
		return takeover_refuse(path, -errno, "the corelaned there cannot be asked to stop", err);
	*pid = peer.pid;
	return takeover_check(path, peer.pid, err);
}

void takeover_ask(int pid)
{
	syscall(SYS_tgkill, pid, pid, SIGTERM); // if it has ended since, it has stopped, too
}

int takeover_wait(int lock)
{
	static const struct timespec nap = {.tv_nsec = TAKEOVER_NAP_NS};
	unsigned i;

	for (i = 0; i < TAKEOVER_NAPS; i++) {
		if (flock(lock, LOCK_EX | LOCK_NB) == 0)
			return 0;
		nanosleep(&nap, NULL);
	}
	return -ETIMEDOUT;
}
