// SPDX-License-Identifier: Apache-2.0
#include "port/vhost_wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// What does not fit, the kernel closes on this thread, which must not wait for that (vhost_closer.h).
#define FDS_BYTES (VHOST_WIRE_MOST * sizeof(int))

union vhost_wire_control {
	char bytes[CMSG_SPACE(FDS_BYTES)];
	struct cmsghdr head;
};

void vhost_wire_begin(struct vhost_wire *w, int fd, bool library)
{
	w->fd = fd;
	w->library = library;
	w->have = w->n_refused = 0;
	memset(&w->m, 0, sizeof(w->m));
}

void vhost_wire_next(struct vhost_wire *w)
{
	unsigned i;

	for (i = 0; i < w->m.n_fds; i++)
		close(w->m.fds[i]);
	vhost_wire_begin(w, w->fd, w->library);
}

unsigned vhost_wire_end(struct vhost_wire *w, int fds[VHOST_WIRE_FDS])
{
	unsigned n = 0, i;

	if (w->fd >= 0)
		fds[n++] = w->fd;
	for (i = 0; i < w->m.n_fds; i++)
		fds[n++] = w->m.fds[i];
	for (i = 0; i < w->n_refused; i++)
		fds[n++] = w->refused[i];
	vhost_wire_begin(w, -1, w->library);
	return n;
}

// Keeps the descriptors of one piece. After some that are too many, nothing is read any more.
static bool vhost_wire_keep(struct vhost_wire *w, const struct cmsghdr *c)
{
	unsigned n = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int)), i;
	int fd;

	for (i = 0; i < n; i++) {
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
		if (w->m.n_fds < VHOST_MESSAGE_FDS)
			w->m.fds[w->m.n_fds++] = fd;
		else
			w->refused[w->n_refused++] = fd;
	}
	return w->n_refused == 0;
}

static bool vhost_wire_keep_all(struct vhost_wire *w, struct msghdr *h)
{
	bool fits = (h->msg_flags & MSG_CTRUNC) == 0;
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(h); c != NULL; c = CMSG_NXTHDR(h, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			fits = vhost_wire_keep(w, c) && fits;
	return fits;
}

// Returns 1 when there are `want` bytes of the message.
static int vhost_wire_piece(struct vhost_wire *w, unsigned want, const char **why)
{
	struct iovec iov = {.iov_base = (char *)&w->m + w->have, .iov_len = want - w->have};
	union vhost_wire_control control;
	struct msghdr h = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(w->fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -ECONNRESET;
	if (!vhost_wire_keep_all(w, &h)) {
		*why = "more descriptors than a message may have";
		return -EPROTO;
	}
	if (n == 0)
		return -ECONNRESET;
	w->have += (unsigned)n;
	return w->have == want;
}

static int vhost_wire_check(const struct vhost_wire *w, const char **why)
{
	if (w->library)
		return w->m.size <= VHOST_MESSAGE_PAYLOAD ? 1 : -EPROTO;
	return vhost_message_check_header(&w->m, why) < 0 ? -EPROTO : 1;
}

int vhost_wire_read(struct vhost_wire *w, const char **why)
{
	int ret = 1;

	if (w->have < VHOST_MESSAGE_HEADER) {
		ret = vhost_wire_piece(w, VHOST_MESSAGE_HEADER, why);
		if (ret == 1)
			ret = vhost_wire_check(w, why);
	}
	if (ret == 1 && w->have < VHOST_MESSAGE_HEADER + w->m.size)
		ret = vhost_wire_piece(w, VHOST_MESSAGE_HEADER + w->m.size, why);
	return ret;
}

int vhost_wire_send(const struct vhost_wire *w, const struct vhost_message *m)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)m, .iov_len = VHOST_MESSAGE_HEADER + m->size};
	union vhost_wire_control control = {};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};

	if (m->n_fds > 0) {
		h.msg_control = control.bytes;
		h.msg_controllen = CMSG_SPACE(m->n_fds * sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(m->n_fds * sizeof(int));
		memcpy(CMSG_DATA(&control.head), m->fds, m->n_fds * sizeof(int));
	}
	return sendmsg(w->fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)iov.iov_len ? 0 : -EPIPE;
}
