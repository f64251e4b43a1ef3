// SPDX-License-Identifier: Apache-2.0
// Service managers accept notifications from the processes that they know: the one that was started tells them about
// the daemon. The daemon is no child of it: the service manager becomes its parent at once, so that it notices its end.
#include "main/detach.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

#define DETACH_BARRIER_US 5000000 // for the service manager to read what it was told
#define DETACH_PATIENCE_S 60
#define DETACH_WATCHDOG_US "2000000" // timeout, if none is known: four notifications in this time

enum { DETACH_MAIN = 'M', DETACH_DONE = 'D' };

static int channel = -1; // to the process that was started
static bool alone;       // the service manager is told nothing

static int detach_refuse(int code, struct error *err)
{
	return error_set(err, code, "--detach", NULL, "the same without this option", "is not possible: %s",
			 strerror(code));
}

// Returns false if the other end is gone.
static bool detach_read(int fd, char *what)
{
	ssize_t n;

	do {
		n = read(fd, what, 1);
	} while (n < 0 && errno == EINTR);
	return n == 1;
}

static bool detach_write(int fd, char what)
{
	return send(fd, &what, 1, MSG_NOSIGNAL) == 1;
}

// While one daemon ends and the other one restores its state, neither may notify the watchdog in time. After a minute a
// takeover has failed.
static void detach_watch(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	unsigned i;

	for (i = 0; i < DETACH_PATIENCE_S && poll(&p, 1, 1000) == 0; i++)
		sd_notify(0, "WATCHDOG=1");
}

static _Noreturn void detach_attend(int fd, pid_t daemon)
{
	bool asked = false;
	char what;

	for (;;) {
		if (asked)
			detach_watch(fd);
		if (!detach_read(fd, &what))
			break;
		if (what == DETACH_DONE)
			_exit(0);
		sd_notifyf(0, "MAINPID=%d\nWATCHDOG=1", (int)daemon);
		sd_notify_barrier(0, DETACH_BARRIER_US);
		if (!detach_write(fd, what))
			break;
		asked = true;
	}
	_exit(1);
}

// Forks twice. Returns 0 in the daemon, its process id in the process that was started, or -errno.
static pid_t detach_fork(const int fds[2])
{
	pid_t middle = fork(), daemon = 0;

	if (middle < 0)
		return -errno;
	if (middle == 0) {
		daemon = fork();
		if (daemon == 0) {
			close(fds[0]);
			return 0;
		}
		_exit(write(fds[1], &daemon, sizeof(daemon)) == sizeof(daemon) ? 0 : 1);
	}
	close(fds[1]);
	waitpid(middle, NULL, 0);
	return read(fds[0], &daemon, sizeof(daemon)) == sizeof(daemon) && daemon > 0 ? daemon : -EAGAIN;
}

int detach_begin(bool standby, struct error *err)
{
	int fds[2];
	pid_t daemon;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return detach_refuse(errno, err);
	daemon = detach_fork(fds);
	if (daemon < 0)
		return detach_refuse(-daemon, err);
	if (daemon > 0)
		detach_attend(fds[0], daemon);
	channel = fds[1];
	alone = standby;
	if (standby)
		unsetenv("NOTIFY_SOCKET"); // the service ends, and knows nothing of this process
	setsid();
	unsetenv("WATCHDOG_PID"); // names the process that was started
	// systemd tells its timeout only to a process that it starts as the service. More notifications do no harm.
	setenv("WATCHDOG_USEC", DETACH_WATCHDOG_US, 0);
	return 0;
}

int detach_main(struct error *err)
{
	char what;

	if (channel < 0 || alone || (detach_write(channel, DETACH_MAIN) && detach_read(channel, &what)))
		return 0;
	return detach_refuse(EPIPE, err);
}

void detach_end(void)
{
	if (channel < 0)
		return;
	detach_write(channel, DETACH_DONE);
	close(channel);
	channel = -1;
}
