// SPDX-License-Identifier: Apache-2.0
// The callbacks of librte_vhost. They run on its thread, and on the master thread inside rte_vhost_driver_start() and
// rte_vhost_driver_unregister().
//
// vring_state_changed() is called with the locks of all vrings held, and a worker may be spinning on one of them:
// waiting for workers there would be a deadlock. It need not wait, because the library's bursts look at the vring's
// state under its lock. destroy_device() is called without these locks; there a grace period passes before the guest's
// memory is unmapped.
#include "port/vhost.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_bitops.h>
#include <rte_vhost.h>

#include "base/rcu.h"
#include "base/system_calls.h"
#include "base/wake_fd.h"

#define MAX_VRINGS 256
#define CONTROL_MS 100 // a front end writes a message in one go

// Connections of the library, by its id (vid). A port may have two for a moment, when a guest restarts.
struct conn {
	struct vhost *vhost; // NULL: belongs to no port
	bool ready[MAX_VRINGS];
	// Duplicates of the kick eventfds of the guest's transmit vrings, -1 = none. They can be removed from the
	// queue's wake_fd even after librte_vhost has closed its own.
	int kick[MAX_VRINGS];
};

pthread_mutex_t vhost_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vhost *vhosts;
static struct conn conns[RTE_MAX_VHOST_DEVICE];

static struct vhost *vhost_conn_find(const char *path)
{
	struct vhost *v;

	for (v = vhosts; v != NULL && strcmp(v->path, path) != 0; v = v->next)
		;
	return v;
}

static struct vhost_queue *queue_of(const struct conn *c, uint16_t vring)
{
	return &c->vhost->queues[vring / 2 % c->vhost->n_queues];
}

// Both under vhost_lock. Only an eventfd is watched: a worker could wait for ever in the poll() of another file.
static void watch_kicks(struct conn *c, int vid, uint16_t vring)
{
	struct rte_vhost_vring r;

	if (vring % 2 == 0 || rte_vhost_get_vhost_vring(vid, vring, &r) < 0 || r.kickfd < 0 ||
	    !wake_fd_is_eventfd(r.kickfd))
		return;
	c->kick[vring] = fcntl(r.kickfd, F_DUPFD_CLOEXEC, 0);
	if (c->kick[vring] >= 0 && wake_fd_watch(queue_of(c, vring)->wake_fd, c->kick[vring], true) < 0) {
		close(c->kick[vring]);
		c->kick[vring] = -1;
	}
}

static void forget_kicks(struct conn *c, uint16_t vring)
{
	if (c->kick[vring] < 0)
		return;
	wake_fd_forget(queue_of(c, vring)->wake_fd, c->kick[vring]);
	close(c->kick[vring]);
	c->kick[vring] = -1;
}

static void forget_all_kicks(struct conn *c)
{
	uint16_t i;

	for (i = 0; c->vhost != NULL && i < MAX_VRINGS; i++)
		forget_kicks(c, i);
}

int vhost_link(struct vhost *v)
{
	int ret = 0;

	pthread_mutex_lock(&vhost_lock);
	if (vhost_conn_find(v->path) != NULL) {
		ret = -EEXIST;
	} else {
		v->next = vhosts;
		vhosts = v;
	}
	pthread_mutex_unlock(&vhost_lock);
	return ret;
}

void vhost_unlink(struct vhost *v)
{
	struct vhost **p;
	unsigned i;

	pthread_mutex_lock(&vhost_lock);
	for (p = &vhosts; *p != v; p = &(*p)->next)
		;
	*p = v->next;
	for (i = 0; i < RTE_MAX_VHOST_DEVICE; i++)
		if (conns[i].vhost == v) {
			forget_all_kicks(&conns[i]);
			conns[i].vhost = NULL;
		}
	pthread_mutex_unlock(&vhost_lock);
}

static uint16_t rx_pairs(const struct conn *c)
{
	uint16_t p = MAX_VRINGS / 2;

	while (p > 0 && !c->ready[2 * p - 1])
		p--;
	return p;
}

// The vring that queue q transmits to: its own, or one of the others if the guest has enabled fewer. -1 = none
static int tx_vring(const struct conn *c, uint16_t q)
{
	uint16_t p, pairs = 0;

	if (c->ready[2 * q])
		return 2 * q;
	while (pairs < MAX_VRINGS / 2 && c->ready[2 * pairs])
		pairs++;
	p = pairs > 0 ? q % pairs : 0;
	return c->ready[2 * p] ? 2 * p : -1;
}

// True if the queue polls a vring without a usable kick eventfd, so that a sleeping worker would miss its packets.
// False without vrings.
static bool vhost_conn_no_kick(const struct conn *c, uint16_t q, uint16_t pairs, uint16_t stride)
{
	uint16_t p;

	for (p = q; p < pairs; p = (uint16_t)(p + stride))
		if (c->kick[2 * p + 1] < 0)
			return true;
	return false;
}

// Under vhost_lock.
static void vhost_conn_publish(struct vhost *v)
{
	const struct conn *c = v->vid < 0 ? NULL : &conns[v->vid];
	uint16_t i, pairs = c ? rx_pairs(c) : 0;
	uint64_t features = 0;
	int vring;

	if (c != NULL)
		rte_vhost_get_negotiated_features(v->vid, &features);
	for (i = 0; i < v->n_queues; i++) {
		vring = c ? tx_vring(c, i) : -1;
		__atomic_store_n(&v->queues[i].no_kick, vhost_conn_no_kick(c, i, pairs, v->n_queues), __ATOMIC_RELEASE);
		__atomic_store_n(&v->queues[i].packed, (features >> VIRTIO_F_RING_PACKED & 1) != 0, __ATOMIC_RELAXED);
		rcu_publish(v->queues[i].rx, pairs > 0 ? VRING(v->vid, pairs) : VRING_NONE);
		rcu_publish(v->queues[i].tx, vring >= 0 ? VRING(v->vid, (uint16_t)vring) : VRING_NONE);
		port_queue_changed(&v->port->queues[i]);
	}
}

static bool vhost_conn_has_path(int fd, const char *path)
{
	struct sockaddr_un own = {}, peer = {};
	socklen_t n = sizeof(own), n_peer = sizeof(peer);
	socklen_t n_listens = sizeof(int);
	int listens = 1;

	if (getsockname(fd, (struct sockaddr *)&own, &n) < 0 || own.sun_family != AF_UNIX ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n_listens) < 0 || listens)
		return false;
	getpeername(fd, (struct sockaddr *)&peer, &n_peer);
	return strncmp(own.sun_path, path, sizeof(own.sun_path)) == 0 ||
	       strncmp(peer.sun_path, path, sizeof(peer.sun_path)) == 0;
}

// The library reads and answers messages on one thread for all guests, and blocks in both. A front end that stops in
// the middle of a message, or does not read its answers, is disconnected after CONTROL_MS. The library does not tell
// its descriptors, so they are found by their path.
static void limit_waiting(const char *path)
{
	static const struct timeval limit = {.tv_usec = CONTROL_MS * 1000};
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *e;

	while (dir && (e = readdir(dir)) != NULL) {
		int fd = atoi(e->d_name);

		if (fd <= 0 || !vhost_conn_has_path(fd, path))
			continue;
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	}
	if (dir)
		closedir(dir);
}

static int new_connection(int vid)
{
	char path[PATH_MAX];
	struct vhost *v;

	if (vid < 0 || vid >= RTE_MAX_VHOST_DEVICE || rte_vhost_get_ifname(vid, path, sizeof(path)) < 0)
		return -1;
	pthread_mutex_lock(&vhost_lock);
	v = vhost_conn_find(path);
	memset(&conns[vid], 0, sizeof(conns[vid]));
	memset(conns[vid].kick, -1, sizeof(conns[vid].kick));
	conns[vid].vhost = v;
	if (v != NULL)
		v->connected = true;
	pthread_mutex_unlock(&vhost_lock);
	limit_waiting(path);
	return v != NULL ? 0 : -1;
}

static int vring_state_changed(int vid, uint16_t vring, int enable)
{
	struct conn *c = &conns[vid];

	pthread_mutex_lock(&vhost_lock);
	if (c->vhost != NULL && vring < MAX_VRINGS) {
		c->ready[vring] = enable;
		forget_kicks(c, vring);
		if (enable)
			watch_kicks(c, vid, vring);
		if (c->vhost->vid == vid)
			vhost_conn_publish(c->vhost);
	}
	pthread_mutex_unlock(&vhost_lock);
	return 0;
}

static int new_device(int vid)
{
	struct vhost *v;

	pthread_mutex_lock(&vhost_lock);
	v = conns[vid].vhost;
	if (v != NULL) {
		v->vid = vid; // the latest one wins
		v->connects++;
		vhost_conn_publish(v);
		port_watch_kick(v->watch);
	}
	pthread_mutex_unlock(&vhost_lock);
	return v != NULL ? 0 : -1;
}

static void destroy_device(int vid)
{
	struct vhost *v;

	pthread_mutex_lock(&vhost_lock);
	v = conns[vid].vhost;
	if (v != NULL && v->vid == vid) {
		v->vid = -1;
		vhost_conn_publish(v);
		port_watch_kick(v->watch);
	}
	pthread_mutex_unlock(&vhost_lock);
	// Also for a device that was not the latest: a worker may still be inside. The library unmaps the guest's
	// memory when this returns, so the control messages of all guests wait for the slowest worker's walk here.
	rcu_synchronize();
}

static void destroy_connection(int vid)
{
	struct vhost *v;

	pthread_mutex_lock(&vhost_lock);
	v = conns[vid].vhost;
	forget_all_kicks(&conns[vid]);
	conns[vid].vhost = NULL;
	if (v != NULL && v->client) {
		v->connected = false;
		port_watch_kick(v->watch);
	}
	pthread_mutex_unlock(&vhost_lock);
	if (v == NULL || !v->client)
		return;
	// Race: the library's thread may see the disconnect before the master, inside rte_vhost_driver_start(), has put
	// the connection into the library's list. Wait until the master has. v stays valid: closing waits for this
	// callback.
	pthread_mutex_lock(&v->starting);
	pthread_mutex_unlock(&v->starting);
}

// On the worker that has just written the guest's eventfd.
static void guest_notified(int vid)
{
	system_calls++;
}

const struct rte_vhost_device_ops vhost_callbacks = {
	.new_connection = new_connection,
	.vring_state_changed = vring_state_changed,
	.new_device = new_device,
	.destroy_device = destroy_device,
	.destroy_connection = destroy_connection,
	.guest_notified = guest_notified,
};
