// SPDX-License-Identifier: Apache-2.0
// The listening socket.
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/listener.h>

#include "api/api_private.h"
#include "api/socket_acl.h"
#include "base/log.h"

#define BACKLOG 1024

static struct {
	struct evconnlistener *listener;
	struct event *retry; // accepts again after descriptors ran out
	struct event *sweep;
	struct sockaddr_un addr;
	struct stat file; // of our socket: api_server_stop() removes no other
	bool refusing;    // too many connections, which was logged
} server;

static void api_server_on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *peer, int len,
				 void *arg)
{
	struct api_client client = {.uid = UINT32_MAX};
	const struct api_user *user;
	enum api_limit limit;

	if (role_of_peer(fd, &client) < 0)
		LOG(WARNING, "api: the kernel does not say who a client is: it has no role");
	user = user_find(client.uid);
	limit = user_admit(client.uid, api_conn_count(), user ? user->connections : 0);
	if (limit != LIMITS && !server.refusing)
		LOG(WARNING, "api: uid %u has %u of %u connections: more are refused", (unsigned)client.uid,
		    user ? user->connections : 0, api_conn_count());
	server.refusing = limit != LIMITS;
	if (limit == LIMITS) {
		api_conn_accept(evconnlistener_get_base(l), fd, &client);
		return;
	}
	api_limit_count(limit);
	evutil_closesocket(fd);
}

// accept() fails until descriptors are free. Pausing keeps the loop from spinning on it.
static void on_accept_error(struct evconnlistener *l, void *arg)
{
	static const struct timeval pause = {.tv_sec = 1};

	LOG(WARNING, "api: accept: %s", strerror(EVUTIL_SOCKET_ERROR()));
	evconnlistener_disable(l);
	evtimer_add(server.retry, &pause);
}

static void on_sweep(evutil_socket_t fd, short what, void *arg)
{
	api_conn_sweep();
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
	evconnlistener_enable(server.listener);
}

static int api_server_refuse(struct error *err, int code, const char *what)
{
	return error_set(err, code, "socket", server.addr.sun_path, NULL, "%s: %s", what, strerror(code));
}

static int set_path(const char *path, struct error *err)
{
	char valid[64];

	snprintf(valid, sizeof(valid), "1 to %zu characters", sizeof(server.addr.sun_path) - 1);
	if (path[0] == '\0' || strlen(path) >= sizeof(server.addr.sun_path))
		return error_set(err, EINVAL, "socket", path, valid, "is not a usable path");
	server.addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	server.file = (struct stat){0};
	memcpy(server.addr.sun_path, path, strlen(path));
	return 0;
}

// The lock is held while a stale socket is replaced: of two daemons that start at once, the second one sees the first.
static int lock_directory(struct error *err)
{
	char copy[sizeof(server.addr.sun_path)], *dir;
	int fd, ret;

	memcpy(copy, server.addr.sun_path, sizeof(copy));
	dir = dirname(copy);
	if (mkdir(dir, 0711) < 0 && errno != EEXIST)
		return api_server_refuse(err, errno, "cannot create the directory");
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return api_server_refuse(err, errno, "cannot open the directory");
	if (flock(fd, LOCK_EX) < 0) {
		ret = api_server_refuse(err, errno, "cannot lock the directory");
		close(fd);
		return ret;
	}
	return fd;
}

static int refuse_alive(int fd, struct error *err)
{
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.pid == 0)
		return error_set(err, EADDRINUSE, "socket", server.addr.sun_path, "a path of its own for each instance",
				 "another process answers there");
	return error_set(err, EADDRINUSE, "socket", server.addr.sun_path, "a path of its own for each instance",
			 "process %d answers there", (int)peer.pid);
}

// Returns 0 when no process listens there.
static int api_server_probe(struct error *err)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), ret = 0;

	if (fd < 0)
		return api_server_refuse(err, errno, "cannot open a socket");
	// EAGAIN: the queue of the other instance is full
	if (connect(fd, (struct sockaddr *)&server.addr, sizeof(server.addr)) == 0 || errno == EAGAIN)
		ret = refuse_alive(fd, err);
	else if (errno != ECONNREFUSED && errno != ENOENT)
		ret = api_server_refuse(err, errno, "cannot find out whether another process answers there");
	close(fd);
	return ret;
}

static int remove_dead(struct error *err)
{
	struct stat st;
	int ret;

	if (lstat(server.addr.sun_path, &st) < 0)
		return errno == ENOENT ? 0 : api_server_refuse(err, errno, "cannot be examined");
	if (!S_ISSOCK(st.st_mode))
		return error_set(err, EEXIST, "socket", server.addr.sun_path, NULL, "exists and is not a socket");
	ret = api_server_probe(err);
	if (ret < 0)
		return ret;
	if (unlink(server.addr.sun_path) < 0 && errno != ENOENT)
		return api_server_refuse(err, errno, "cannot remove the stale socket");
	return 0;
}

// Lets the members of the roles' groups connect. Without them, or without access control lists, root alone can.
static void share_socket(void)
{
	gid_t gids[ROLES];
	unsigned n = role_groups(gids);
	int ret = n > 0 ? socket_acl_set(server.addr.sun_path, gids, n) : 0;

	if (ret < 0)
		LOG(WARNING, "api: %s: only root can connect, because its file system takes no access control list: %s",
		    server.addr.sun_path, strerror(-ret));
}

// No client can connect before listen(), so the mode is right for the first one.
static int bind_and_listen(int fd)
{
	if (bind(fd, (struct sockaddr *)&server.addr, sizeof(server.addr)) < 0 ||
	    chmod(server.addr.sun_path, 0660) < 0 || stat(server.addr.sun_path, &server.file) < 0)
		return -1;
	share_socket();
	return listen(fd, BACKLOG);
}

static int open_socket(struct error *err)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), ret;

	if (fd < 0)
		return api_server_refuse(err, errno, "cannot open a socket");
	if (bind_and_listen(fd) < 0) {
		ret = api_server_refuse(err, errno, "cannot listen");
		close(fd);
		return ret;
	}
	return fd;
}

static int api_server_claim(struct error *err)
{
	int dir = lock_directory(err), ret;

	if (dir < 0)
		return dir;
	ret = remove_dead(err);
	if (ret == 0)
		ret = open_socket(err);
	close(dir);
	return ret;
}

static void start_sweeps(void)
{
	unsigned ms = api_limits.message_ms / 4;
	struct timeval interval = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	evtimer_add(server.sweep, &interval);
}

int api_server_start(struct event_base *base, const char *path, struct error *err)
{
	int fd, ret;

	if (server.listener != NULL)
		return error_set(err, EALREADY, "socket", path, NULL, "this process listens at %s already",
				 server.addr.sun_path);
	ret = set_path(path, err);
	if (ret < 0)
		return ret;
	fd = api_server_claim(err);
	if (fd < 0)
		return fd;
	signal(SIGPIPE, SIG_IGN); // a client that has gone makes write() fail instead of ending the process
	server.retry = evtimer_new(base, on_retry, NULL);
	server.sweep = event_new(base, -1, EV_PERSIST, on_sweep, NULL);
	server.listener = evconnlistener_new(base, api_server_on_accept, NULL,
					     LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (server.retry == NULL || server.sweep == NULL || server.listener == NULL) {
		if (server.listener == NULL)
			close(fd);
		api_server_stop();
		return api_server_refuse(err, ENOMEM, "cannot listen");
	}
	evconnlistener_set_error_cb(server.listener, on_accept_error);
	start_sweeps();
	return 0;
}

void api_server_stop(void)
{
	struct stat st;

	api_conn_close_all();
	if (server.listener != NULL)
		evconnlistener_free(server.listener);
	if (server.retry != NULL)
		event_free(server.retry);
	if (server.sweep != NULL)
		event_free(server.sweep);
	server.listener = NULL;
	server.retry = NULL;
	server.sweep = NULL;
	if (stat(server.addr.sun_path, &st) == 0 && st.st_dev == server.file.st_dev && st.st_ino == server.file.st_ino)
		unlink(server.addr.sun_path);
}
