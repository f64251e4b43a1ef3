// SPDX-License-Identifier: Apache-2.0
#include "port/vhost_call.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/event_signal.h"
#include "base/system_calls.h"

__thread struct vhost_call vhost_call;
static int library_fd = -1; // a file that was opened for reading alone: a write fails at once

int vhost_call_init(void)
{
	int ret = event_signal_init();

	if (ret == 0 && library_fd < 0)
		library_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return ret == 0 && library_fd < 0 ? -errno : ret;
}

void vhost_calls_begin(struct vhost_calls *c)
{
	unsigned i;

	for (i = 0; i < VHOST_SESSION_VRINGS; i++)
		c->fds[i] = -1;
}

static void vhost_call_close(int *fd)
{
	int old = *fd;

	__atomic_store_n(fd, -1, __ATOMIC_RELAXED);
	if (old >= 0)
		close(old);
}

void vhost_calls_end(struct vhost_calls *c)
{
	unsigned i;

	for (i = 0; i < VHOST_SESSION_VRINGS; i++)
		vhost_call_close(&c->fds[i]);
}

static int vhost_call_first(int *fd, int given)
{
	int copy = fcntl(given, F_DUPFD_CLOEXEC, 0);

	if (copy < 0)
		return -errno;
	__atomic_store_n(fd, copy, __ATOMIC_RELEASE);
	return 0;
}

// A worker may have signalled the old file after the front end has looked at it for the last time.
static int vhost_call_replace(int fd, int given)
{
	if (dup3(given, fd, O_CLOEXEC) < 0)
		return -errno;
	event_signal(fd);
	return 0;
}

static unsigned vhost_call_ring(const struct vhost_message *m)
{
	return m->u64 % VHOST_SESSION_VRINGS;
}

int vhost_call_pass(struct vhost_calls *c, struct vhost_message *m)
{
	int *fd = &c->fds[vhost_call_ring(m)], ret;

	if (m->request != VHOST_REQUEST_SET_VRING_CALL || m->n_fds == 0)
		return 0;
	ret = event_signal_prepare(m->fds[0]);
	if (ret == 0)
		ret = *fd < 0 ? vhost_call_first(fd, m->fds[0]) : vhost_call_replace(*fd, m->fds[0]);
	m->fds[0] = library_fd;
	return ret;
}

void vhost_call_passed(struct vhost_calls *c, const struct vhost_message *m)
{
	if (m->request == VHOST_REQUEST_SET_VRING_CALL && m->n_fds == 0)
		vhost_call_close(&c->fds[vhost_call_ring(m)]);
	else if (m->request == VHOST_REQUEST_GET_VRING_BASE) // the library forgets its own, too
		vhost_call_close(&c->fds[m->state.index % VHOST_SESSION_VRINGS]);
}

// The library's own attempt was a system call as well.
void vhost_call_signal(void)
{
	int fd = __atomic_load_n(vhost_call.fd, __ATOMIC_ACQUIRE);

	system_calls++;
	if (fd >= 0 && event_signal(fd) < 0)
		(*vhost_call.lost)++;
}
