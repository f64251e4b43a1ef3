// SPDX-License-Identifier: Apache-2.0
// Interfaces: their connections begin, are watched, and end.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/event_signal.h"
#include "base/field_limits.h"
#include "port/memif/memif_conn.h"

static void timer_set(struct memif_if *mif, unsigned ms)
{
	struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	event_add(mif->timer, &tv);
}

// Takes the connection from its interface, which then waits for the next one.
static void conn_leave(struct memif_conn *c)
{
	struct memif_if *mif = c->mif;

	mif->conn = NULL;
	if (c->state == MEMIF_UP) {
		struct memif_shm *shm = c->shm;

		c->shm = NULL;
		mif->down(mif, shm, c->reason);
	} else if (mif->failed != NULL && c->reason[0] != '\0') {
		mif->failed(mif, c->reason);
	}
	if (mif->client)
		timer_set(mif, MEMIF_RETRY_MS);
	else
		event_del(mif->timer);
}

void memif_conn_close(struct memif_conn *c)
{
	if (c->listener != NULL)
		memif_listener_forget(c);
	if (c->mif != NULL)
		conn_leave(c);
	if (c->shm != NULL)
		memif_shm_free(c->shm);
	event_free(c->event);
	close(c->fd);
	free(c);
}

static void conn_up(struct memif_conn *c)
{
	event_remove_timer(c->event); // the handshake's time limit
	// analyzer: core.NullDereference: the handshake has set the interface
	timer_set(c->mif, MEMIF_WATCH_MS);
	c->mif->up(c->mif, c->shm);
}

static void memif_if_on_event(evutil_socket_t fd, short what, void *arg)
{
	struct memif_conn *c = arg;
	bool was_up = c->state == MEMIF_UP;
	int ret;

	if (what & EV_TIMEOUT)
		ret = memif_conn_refuse(c, "handshake took more than %d ms", MEMIF_HANDSHAKE_MS);
	else
		ret = memif_conn_receive(c);
	if (ret == -EAGAIN)
		return;
	if (ret < 0) {
		memif_conn_close(c);
		return;
	}
	if (c->mif != NULL && c->listener != NULL)
		memif_listener_forget(c); // it belongs to an interface now
	if (!was_up && c->state == MEMIF_UP)
		conn_up(c);
}

struct memif_conn *memif_conn_new(struct event_base *base, int fd, enum memif_state state)
{
	struct timeval limit = {.tv_sec = MEMIF_HANDSHAKE_MS / 1000};
	struct memif_conn *c = calloc(1, sizeof(*c));

	if (c != NULL) {
		c->fd = fd;
		c->state = state;
		c->event = event_new(base, fd, EV_READ | EV_PERSIST, memif_if_on_event, c);
		if (c->event != NULL && event_add(c->event, &limit) == 0)
			return c;
		if (c->event != NULL)
			event_free(c->event);
		free(c);
	}
	close(fd);
	return NULL;
}

static void client_connect(struct memif_if *mif)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	char reason[MEMIF_REASON_SIZE];

	memcpy(addr.sun_path, mif->socket, sizeof(addr.sun_path));
	if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0) {
		mif->conn = memif_conn_new(mif->base, fd, MEMIF_WAIT_HELLO);
		if (mif->conn != NULL) {
			mif->conn->mif = mif;
			return;
		}
	} else {
		snprintf(reason, sizeof(reason), "cannot connect: %s", strerror(errno));
		if (mif->failed != NULL)
			mif->failed(mif, reason);
		if (fd >= 0)
			close(fd);
	}
	timer_set(mif, MEMIF_RETRY_MS);
}

// Disconnects a peer for which a worker recorded a ring violation. Workers cannot close connections.
static void memif_if_watch(struct memif_if *mif)
{
	enum memif_fault fault = memif_shm_fault(mif->conn->shm);

	if (fault == MEMIF_FAULT_NONE) {
		timer_set(mif, MEMIF_WATCH_MS);
		return;
	}
	memif_conn_refuse(mif->conn, "%s", memif_fault_text(fault));
	memif_conn_close(mif->conn);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct memif_if *mif = arg;

	if (mif->conn != NULL)
		memif_if_watch(mif);
	else if (mif->client)
		client_connect(mif);
}

int memif_if_start(struct memif_if *mif, struct error *err)
{
	int ret = event_signal_init();

	if (ret < 0)
		return error_set(err, -ret, NULL, NULL, NULL, "cannot open /dev/null: %s", strerror(-ret));
	if (memchr(mif->socket, '\0', sizeof(mif->socket)) == NULL || mif->socket[0] != '/')
		return error_set(err, EINVAL, "port.memif.socket", mif->socket, NOTATION_PATH_VALID,
				 "is not a socket path");
	mif->conn = NULL;
	mif->listener = NULL;
	mif->timer = evtimer_new(mif->base, on_timer, mif);
	if (mif->timer == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "out of memory");
	if (mif->client) {
		client_connect(mif);
		return 0;
	}
	ret = memif_listener_join(mif, err);
	if (ret < 0)
		event_free(mif->timer);
	return ret;
}

void memif_if_stop(struct memif_if *mif)
{
	mif->failed = NULL;
	if (mif->conn != NULL) {
		memif_conn_refuse(mif->conn, "interface removed");
		memif_conn_close(mif->conn);
	}
	if (mif->listener != NULL)
		memif_listener_leave(mif);
	event_free(mif->timer);
}

const char *memif_if_peer(const struct memif_if *mif)
{
	return mif->conn != NULL ? mif->conn->peer : "";
}
