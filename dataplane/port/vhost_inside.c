// SPDX-License-Identifier: Apache-2.0
// The sockets of librte_vhost, which only this process can reach: each port has one, on which the library listens.
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_vhost.h>

#include "port/vhost.h"
#include "port/vhost_message.h"

#define INSIDE_SET_OWNER 3 // a message that changes nothing

static int bell = -1; // the other end is the library's

// The directory belongs to the process or, in tests, to several.
static int inside_name(char *path, size_t size)
{
	static unsigned last;
	const char *dir = rte_eal_get_runtime_dir();
	struct stat st;

	mkdir(dir, 0700); // DPDK has made it, but another process of its name may have removed it
	if (lstat(dir, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
		return -EPERM;
	if (snprintf(path, size, "%s/vhost%d.%u", dir, (int)getpid(), last++) >= (int)size)
		return -ENAMETOOLONG;
	unlink(path); // of a process that had this id and was killed
	return 0;
}

// Removes the sockets of processes that were killed. In the directory of the daemon there are none: it has the number
// of the process in its name.
static void inside_sweep(void)
{
	const char *dir = rte_eal_get_runtime_dir();
	char process[32], path[PATH_MAX];
	const struct dirent *e;
	unsigned pid, number;
	DIR *d = opendir(dir);

	while (d != NULL && (e = readdir(d)) != NULL) {
		if (sscanf(e->d_name, "vhost%u.%u", &pid, &number) != 2)
			continue;
		snprintf(process, sizeof(process), "/proc/%u", pid);
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (access(process, F_OK) < 0)
			unlink(path);
	}
	if (d != NULL)
		closedir(d);
}

static int inside_register(const char *path, uint64_t flags, uint64_t disabled, const struct rte_vhost_device_ops *ops)
{
	int ret;

	errno = 0;
	if (rte_vhost_driver_register(path, flags) < 0)
		return errno ? -errno : -ENOSPC;
	ret = rte_vhost_driver_disable_features(path, disabled);
	if (ret == 0)
		ret = rte_vhost_driver_callback_register(path, ops);
	if (ret == 0)
		ret = rte_vhost_driver_start(path);
	if (ret == 0)
		return 0;
	rte_vhost_driver_unregister(path);
	return -ENOTCONN;
}

// The library notices at once what it connects to by itself.
static void inside_hang_bell(void)
{
	static const struct rte_vhost_device_ops none = {};
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	inside_sweep();
	if (fd < 0)
		return;
	if (inside_name(un.sun_path, sizeof(un.sun_path)) == 0 && bind(fd, (struct sockaddr *)&un, sizeof(un)) == 0) {
		if (listen(fd, 1) == 0 &&
		    inside_register(un.sun_path, RTE_VHOST_USER_CLIENT | RTE_VHOST_USER_NO_RECONNECT, 0, &none) == 0)
			bell = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		unlink(un.sun_path);
	}
	close(fd);
}

// The library looks for new sockets to listen on once a second, or after a message on one that it knows.
static void inside_ring_bell(void)
{
	static const uint32_t message[] = {INSIDE_SET_OWNER, 1, 0};

	if (bell < 0)
		inside_hang_bell();
	if (bell >= 0)
		send(bell, message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL);
}

int vhost_inside_add(struct vhost *v, uint64_t disabled)
{
	uint64_t flags = RTE_VHOST_USER_NET_COMPLIANT_OL_FLAGS |
			 (v->offload == PORT_OFFLOAD_ALL ? 0 : RTE_VHOST_USER_LINEARBUF_SUPPORT);
	int ret = inside_name(v->inside, sizeof(v->inside));

	if (ret == 0)
		ret = inside_register(v->inside, flags, disabled, &vhost_callbacks);
	if (ret == 0)
		inside_ring_bell();
	return ret;
}

void vhost_inside_remove(struct vhost *v)
{
	rte_vhost_driver_unregister(v->inside); // waits for callbacks that run, and removes the socket
}
