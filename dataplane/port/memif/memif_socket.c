// SPDX-License-Identifier: Apache-2.0
// Listening sockets. Several interfaces (ids) may share one: the client's INIT names one.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/field_limits.h"
#include "port/memif/memif_conn.h"

struct memif_listener {
	LIST_ENTRY(memif_listener) next;
	LIST_HEAD(, memif_if) interfaces;
	LIST_HEAD(, memif_conn) pending; // connections whose INIT has not named an interface yet
	unsigned n_pending;
	char path[MEMIF_SOCKET_SIZE];
	int fd;
	dev_t dev;
	ino_t ino;
	struct event *event;
	struct event_base *base;
	struct socket_access access;
};

static LIST_HEAD(, memif_listener) listeners = LIST_HEAD_INITIALIZER(listeners);

struct memif_if *memif_listener_find(struct memif_listener *l, uint32_t id)
{
	struct memif_if *mif;

	LIST_FOREACH (mif, &l->interfaces, next)
		if (mif->id == id)
			return mif;
	return NULL;
}

void memif_listener_forget(struct memif_conn *c)
{
	LIST_REMOVE(c, next);
	c->listener->n_pending--;
	c->listener = NULL;
}

// HELLO is sent before the client names its interface, so it offers the largest limits of any interface on this socket.
static void hello_limits(const struct memif_listener *l, uint16_t *queues, uint8_t *log2_ring)
{
	const struct memif_if *mif;

	*queues = 1;
	*log2_ring = 0;
	LIST_FOREACH (mif, &l->interfaces, next) {
		*queues = RTE_MAX(*queues, mif->queues);
		*log2_ring = RTE_MAX(*log2_ring, mif->log2_ring);
	}
}

static void memif_socket_on_accept(evutil_socket_t listen_fd, short what, void *arg)
{
	struct memif_listener *l = arg;
	int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct memif_conn *c;
	uint16_t queues;
	uint8_t log2_ring;

	if (fd < 0)
		return;
	if (l->n_pending == MEMIF_MAX_PENDING) {
		close(fd);
		return;
	}
	c = memif_conn_new(l->base, fd, MEMIF_WAIT_INIT);
	if (c == NULL)
		return;
	c->listener = l;
	LIST_INSERT_HEAD(&l->pending, c, next);
	l->n_pending++;
	hello_limits(l, &queues, &log2_ring);
	if (memif_conn_hello(c, queues, log2_ring) < 0)
		memif_conn_close(c);
}

static int socket_address(const char *path, struct sockaddr_un *addr)
{
	*addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (path[0] == '\0' || strlen(path) >= sizeof(addr->sun_path))
		return -ENAMETOOLONG;
	strcpy(addr->sun_path, path);
	return 0;
}

// Removes the socket file of a killed server: nobody answers on it.
static bool remove_stale(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct stat st;
	bool dead;

	if (fd < 0)
		return false;
	dead = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 && errno == ECONNREFUSED;
	close(fd);
	return dead && lstat(addr->sun_path, &st) == 0 && S_ISSOCK(st.st_mode) && unlink(addr->sun_path) == 0;
}

static int listener_bind(struct memif_listener *l)
{
	struct sockaddr_un addr;
	struct stat st;
	int ret = socket_address(l->path, &addr);

	if (ret < 0)
		return ret;
	ret = bind(l->fd, (struct sockaddr *)&addr, sizeof(addr));
	if (ret < 0 && errno == EADDRINUSE) {
		if (!remove_stale(&addr))
			return -EADDRINUSE;
		ret = bind(l->fd, (struct sockaddr *)&addr, sizeof(addr));
	}
	if (ret < 0 || stat(l->path, &st) < 0)
		return -errno;
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	ret = l->access.mode ? socket_access_set(l->path, &l->access) : 0; // nobody can connect before listen()
	return ret < 0 || listen(l->fd, 64) == 0 ? ret : -errno;
}

static void listener_free(struct memif_listener *l)
{
	struct memif_conn *c;
	struct stat st;

	while ((c = LIST_FIRST(&l->pending)) != NULL)
		memif_conn_close(c);
	if (l->event != NULL)
		event_free(l->event);
	if (l->fd >= 0)
		close(l->fd);
	if (l->ino != 0 && stat(l->path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
		unlink(l->path);
	free(l);
}

static int listener_new(const struct memif_if *mif, struct memif_listener **out)
{
	struct memif_listener *l = calloc(1, sizeof(*l));
	int ret;

	if (l == NULL)
		return -ENOMEM;
	l->base = mif->base;
	l->access = mif->access;
	snprintf(l->path, sizeof(l->path), "%s", mif->socket);
	l->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	ret = l->fd < 0 ? -errno : listener_bind(l);
	if (ret == 0) {
		l->event = event_new(l->base, l->fd, EV_READ | EV_PERSIST, memif_socket_on_accept, l);
		ret = l->event == NULL || event_add(l->event, NULL) < 0 ? -ENOMEM : 0;
	}
	if (ret < 0) {
		listener_free(l);
		return ret;
	}
	LIST_INSERT_HEAD(&listeners, l, next);
	*out = l;
	return 0;
}

int memif_listener_join(struct memif_if *mif, struct error *err)
{
	struct memif_listener *l;
	char id[16];
	int ret = 0;

	LIST_FOREACH (l, &listeners, next)
		if (l->base == mif->base && strcmp(l->path, mif->socket) == 0)
			break;
	if (l == NULL)
		ret = listener_new(mif, &l);
	if (ret == -EADDRINUSE)
		return error_set(err, EADDRINUSE, "port.memif.socket", mif->socket, NULL,
				 "another process serves this socket");
	if (ret < 0)
		return error_set(err, -ret, "port.memif.socket", mif->socket,
				 NOTATION_PATH_VALID " in a directory that exists", "cannot listen: %s",
				 strerror(-ret));
	if (memcmp(&l->access, &mif->access, sizeof(l->access)) != 0)
		return error_set(err, EEXIST, "port.memif.socket", mif->socket,
				 "the same socket_owner, socket_group and socket_mode",
				 "another port shares the socket");
	if (memif_listener_find(l, mif->id) != NULL) {
		snprintf(id, sizeof(id), "%u", mif->id);
		return error_set(err, EEXIST, "port.memif.id", id, NULL, "another port has this id on %s", mif->socket);
	}
	LIST_INSERT_HEAD(&l->interfaces, mif, next);
	mif->listener = l;
	return 0;
}

void memif_listener_leave(struct memif_if *mif)
{
	struct memif_listener *l = mif->listener;

	mif->listener = NULL;
	LIST_REMOVE(mif, next);
	if (!LIST_EMPTY(&l->interfaces))
		return;
	LIST_REMOVE(l, next);
	listener_free(l);
}
