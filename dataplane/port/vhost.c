// SPDX-License-Identifier: Apache-2.0
// vhost-user ports: opening, closing, and what the router is told of their peers. vhost.h describes the threads.
//
// Each port has two sockets: the one that its front ends know, and one of librte_vhost's in the directory of the
// process, which is its user's alone. The front thread stands between them (vhost_front.h).
#include "port/vhost.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_malloc.h>
#include <rte_vhost.h>

#include "base/event.h"
#include "base/log.h"
#include "base/socket_access.h"
#include "base/wake_fd.h"
#include "port/vhost_front.h"

EVENT_KIND(vhost_message_refused, WARNING,
	   "The process behind a vhost-user socket sent a message that the router does not accept, and was "
	   "disconnected. No "
	   "ordinary front end does so. The router comes to no harm; stop that process.");

EVENT_KIND(
	vhost_ring_refused, WARNING,
	"The process behind a vhost-user socket set up a ring with fewer than 32 or more than 1,024 entries, and was "
	"disconnected: the router takes 32 packets at once, and may have to follow all entries for one packet. Set the "
	"queue sizes of its network device (QEMU: rx_queue_size and tx_queue_size; net_virtio_user: queue_size).");

#define VHOST_BACKLOG 16
#define VHOST_GROUP "kvm" // QEMU's on Debian, Red Hat and their kin

// UDP fragmentation, and the old feature for all kinds at once, are never offered. The library does not tell a guest
// about CWR. In packed rings each descriptor of a chain may refer to a table: for a frame to the guest, the library
// follows as many descriptors as the third power of the ring's length, which takes two seconds with 1,024 entries.
#define VHOST_NEVER                                                                                  \
	(1ULL << VIRTIO_NET_F_GSO | 1ULL << VIRTIO_NET_F_HOST_UFO | 1ULL << VIRTIO_NET_F_GUEST_UFO | \
	 1ULL << VIRTIO_NET_F_GUEST_ECN | 1ULL << VIRTIO_F_RING_PACKED)
#define VHOST_CHECKSUM (1ULL << VIRTIO_NET_F_CSUM | 1ULL << VIRTIO_NET_F_GUEST_CSUM)
#define VHOST_LARGE                                                                                        \
	(1ULL << VIRTIO_NET_F_HOST_TSO4 | 1ULL << VIRTIO_NET_F_HOST_TSO6 | 1ULL << VIRTIO_NET_F_HOST_ECN | \
	 1ULL << VIRTIO_NET_F_GUEST_TSO4 | 1ULL << VIRTIO_NET_F_GUEST_TSO6)

static const uint64_t vhost_refused[] = {
	[PORT_OFFLOAD_ALL] = VHOST_NEVER,
	[PORT_OFFLOAD_CHECKSUM] = VHOST_NEVER | VHOST_LARGE,
	[PORT_OFFLOAD_NONE] = VHOST_NEVER | VHOST_LARGE | VHOST_CHECKSUM,
};

// The library logs each message of each guest at INFO, each attempt to connect at WARNING, and from workers what a
// guest does wrong at ERR. A level that was raised to DEBUG is left alone.
static void vhost_quiet(const char *type, uint32_t wanted)
{
	int id = rte_log_register(type), level = id < 0 ? -1 : rte_log_get_level((uint32_t)id);

	if (level > (int)wanted && level <= (int)RTE_LOG_INFO)
		rte_log_set_level((uint32_t)id, wanted);
}

static void report_peers(struct vhost *v)
{
	unsigned connects;
	bool up;

	pthread_mutex_lock(&vhost_lock);
	connects = v->connects;
	up = v->vid >= 0;
	pthread_mutex_unlock(&vhost_lock);
	while (v->told != connects) { // each of them, even when several came and went meanwhile
		if (v->up)
			port_link_changed(v->port, false, false);
		port_link_changed(v->port, true, true);
		v->up = true;
		v->told++;
	}
	if (v->up && !up)
		port_link_changed(v->port, false, false);
	v->up = up;
}

// A front end connects again and again: the first time is an event, and then each time that there were twice as many.
static bool vhost_has_to_report(const struct vhost_refused *refused, unsigned *told, struct vhost_refused *out)
{
	pthread_mutex_lock(&vhost_lock);
	*out = *refused;
	pthread_mutex_unlock(&vhost_lock);
	if (out->n == 0 || out->n < 2 * *told)
		return false;
	*told = out->n;
	return true;
}

static void vhost_report_refused(struct vhost *v)
{
	struct vhost_refused r;
	char subject[64];

	snprintf(subject, sizeof(subject), "port %s", v->port->cfg.name);
	if (vhost_has_to_report(&v->refused, &v->told_refused, &r))
		event_report(vhost_message_refused, subject,
			     "message %u of the front end was refused, because %s; disconnected, %u times", r.request,
			     r.why, r.n);
	if (vhost_has_to_report(&v->refused_rings, &v->told_refused_rings, &r))
		event_report(vhost_ring_refused, subject,
			     "a ring of the front end was refused, because %s; disconnected, %u times", r.why, r.n);
}

static void vhost_report_lost(struct vhost *v)
{
	unsigned losses;

	pthread_mutex_lock(&vhost_lock);
	losses = v->losses;
	pthread_mutex_unlock(&vhost_lock);
	port_memory_lost(v->port, losses, &v->told_losses);
}

static void vhost_on_watch(void *arg)
{
	struct vhost *v = arg;

	vhost_report_refused(v);
	vhost_report_lost(v);
	report_peers(v);
}

static int vhost_refuse_path(const char *path, int code, struct error *err)
{
	char valid[128] = "a path in a directory that exists", buf[1024];
	struct passwd entry, *self = NULL;

	if (code == EACCES && getpwuid_r(geteuid(), &entry, buf, sizeof(buf), &self) == 0 && self)
		snprintf(valid, sizeof(valid), "a path in a directory that user %s, the daemon's, may write to",
			 self->pw_name);
	else if (code == EACCES)
		snprintf(valid, sizeof(valid), "a path in a directory that uid %u, the daemon's, may write to",
			 (unsigned)geteuid());
	return error_set(err, code, "vhost.socket", path, valid, "cannot be bound: %s", strerror(code));
}

static void vhost_remove_stale(const struct sockaddr_un *un)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (fd < 0)
		return;
	if (lstat(un->sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
	    connect(fd, (const struct sockaddr *)un, sizeof(*un)) < 0 && errno == ECONNREFUSED)
		unlink(un->sun_path);
	close(fd);
}

static int vhost_bind(int fd, const char *path, const struct socket_access *access, struct error *err)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	mode_t before;
	int ret;

	memcpy(un.sun_path, path, strlen(path));
	vhost_remove_stale(&un);
	before = socket_access_lock();
	ret = bind(fd, (struct sockaddr *)&un, sizeof(un)) < 0 ? -errno : 0;
	socket_access_unlock(before);
	if (ret == -EADDRINUSE)
		return error_set(err, EEXIST, "vhost.socket", path, "a path that does not exist", "is in use");
	if (ret < 0)
		return vhost_refuse_path(path, -ret, err);
	ret = socket_access_set(path, access);
	if (ret == 0)
		return 0;
	unlink(path);
	return error_set(err, -ret, "vhost.socket", path, "an owner and a group that the daemon may set",
			 "its owner, group and mode cannot be set: %s", strerror(-ret));
}

// Nobody may connect before the socket's owner, group and mode are set. A path must not be in use; a socket that nobody
// listens on is removed. Returns a descriptor or -errno.
static int vhost_listen(const char *path, const struct socket_access *access, struct error *err)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), ret;

	if (fd < 0)
		return error_set(err, errno, "vhost.socket", path, NULL, "cannot be made: %s", strerror(errno));
	ret = vhost_bind(fd, path, access, err);
	if (ret == 0 && listen(fd, VHOST_BACKLOG) == 0)
		return fd;
	if (ret == 0) {
		ret = error_set(err, errno, "vhost.socket", path, NULL, "cannot listen: %s", strerror(errno));
		unlink(path);
	}
	close(fd);
	return ret;
}

// Where large segments are offered, the library spreads any frame over buffers.
static int vhost_check_mtu(enum port_offload offload, uint16_t mtu, struct error *err)
{
	unsigned room = port_pool_data_room() - RTE_PKTMBUF_HEADROOM;
	char value[8], valid[80];

	if (offload == PORT_OFFLOAD_ALL || (unsigned)(mtu + PORT_L2_OVERHEAD) <= room)
		return 0;
	snprintf(value, sizeof(value), "%u", mtu);
	snprintf(valid, sizeof(valid), "up to %u, or corelaned with --mbuf-size %u", room - PORT_L2_OVERHEAD,
		 (unsigned)(mtu + PORT_L2_OVERHEAD));
	return error_set(err, ERANGE, "port.mtu", value, valid,
			 "a frame of a vhost-user port without large segments has to fit one packet buffer");
}

static enum port_offload vhost_offload(const struct port_config *cfg)
{
	return cfg->role == PORT_TENANT ? cfg->offload : PORT_OFFLOAD_NONE;
}

static struct vhost *vhost_new(struct port *port, const struct port_config *cfg)
{
	struct vhost *v = rte_zmalloc("vhost", sizeof(*v) + cfg->queues * sizeof(v->queues[0]), RTE_CACHE_LINE_SIZE);
	uint16_t i;

	if (v == NULL)
		return NULL;
	v->port = port;
	v->client = cfg->client;
	v->offload = vhost_offload(cfg);
	v->mtu = cfg->mtu;
	v->vid = -1;
	v->n_queues = cfg->queues;
	vhost_calls_begin(&v->calls);
	snprintf(v->path, sizeof(v->path), "%s", cfg->socket);
	for (i = 0; i < v->n_queues; i++) {
		v->queues[i].rx = v->queues[i].tx = VRING_NONE;
		v->queues[i].stride = v->n_queues;
		v->queues[i].next_pair = i;
		v->queues[i].burst = VHOST_BURST;
		v->queues[i].segs = 1;
		v->queues[i].pool = vhost_pool();
		v->queues[i].calls = &v->calls;
		v->queues[i].wake_fd = wake_fd_new(); // -1: workers poll the queue and do not wait for it
	}
	return v;
}

static void vhost_free(struct vhost *v)
{
	uint16_t i;

	port_watch_free(v->watch);
	vhost_calls_end(&v->calls);
	for (i = 0; i < v->n_queues; i++)
		if (v->queues[i].wake_fd >= 0)
			close(v->queues[i].wake_fd);
	rte_free(v);
}

static int vhost_begin_inside(struct vhost *v, struct error *err)
{
	int ret = vhost_inside_add(v, vhost_refused[v->offload]);

	if (ret == -EPERM || ret == -ENAMETOOLONG)
		return error_set(err, -ret, "vhost.socket", v->path, NULL,
				 "DPDK has no directory for sockets of this process alone: %s",
				 rte_eal_get_runtime_dir());
	return ret == 0 ? 0
			: error_set(err, -ret, "vhost.socket", v->path, "up to 500 vhost-user ports",
				    "librte_vhost refuses to listen");
}

static int vhost_serve(struct vhost *v, const struct port_config *cfg, struct error *err)
{
	struct socket_access access;
	int ret = 0, listener = -1;

	if (!v->client) { // of a client, the peer may come later
		ret = socket_access_parse(cfg->socket_owner, cfg->socket_group, cfg->socket_mode, VHOST_GROUP,
					  "port.vhost", &access, err);
		if (ret == 0)
			ret = listener = vhost_listen(v->path, &access, err);
	}
	if (ret < 0)
		return ret;
	ret = vhost_front_add(v, listener);
	if (ret == 0)
		return 0;
	if (!v->client)
		unlink(v->path);
	return error_set(err, -ret, "vhost.socket", v->path, NULL, "cannot be served: %s", strerror(-ret));
}

static int vhost_begin(struct vhost *v, const struct port_config *cfg, struct error *err)
{
	int ret = vhost_begin_inside(v, err);

	if (ret < 0)
		return ret;
	ret = vhost_serve(v, cfg, err);
	if (ret < 0)
		vhost_inside_remove(v);
	return ret;
}

static int vhost_open(struct port *port, const struct port_config *cfg, struct error *err)
{
	int ret = vhost_check_mtu(vhost_offload(cfg), cfg->mtu, err);
	struct vhost *v;
	uint16_t i;

	if (ret < 0)
		return ret;
	vhost_quiet("lib.vhost.config", RTE_LOG_ERR);
	vhost_quiet("lib.vhost.data", RTE_LOG_CRIT);
	ret = vhost_call_init();
	if (ret < 0)
		return error_set(err, -ret, NULL, NULL, NULL, "cannot open /dev/null: %s", strerror(-ret));
	if (vhost_pool() == NULL || (v = vhost_new(port, cfg)) == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a vhost-user port");
	v->watch = port_watch_new(0, vhost_on_watch, v);
	if (v->watch == NULL) {
		vhost_free(v);
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no descriptor for a vhost-user port");
	}
	if (vhost_link(v) < 0) {
		vhost_free(v);
		return error_set(err, EEXIST, "vhost.socket", cfg->socket, "a path of its own",
				 "belongs to another port");
	}
	ret = vhost_begin(v, cfg, err);
	if (ret < 0) {
		vhost_unlink(v);
		vhost_free(v);
		return ret;
	}
	for (i = 0; i < v->n_queues; i++)
		port->queues[i].priv = &v->queues[i];
	port->n_queues = v->n_queues;
	port->priv = v;
	if (rte_is_zero_ether_addr(&cfg->mac))
		rte_eth_random_addr(port->mac.addr_bytes);
	snprintf(port->driver, sizeof(port->driver), "vhost-user %s", v->client ? "client" : "server");
	return 0;
}

static void vhost_close(struct port *port)
{
	struct vhost *v = port->priv;
	int library;

	if (!v->client)
		unlink(v->path);
	library = vhost_front_remove(v);
	vhost_inside_remove(v);
	if (library >= 0)
		close(library);
	vhost_unlink(v);
	vhost_free(v);
	port->priv = NULL;
}

static int vhost_set_mtu(struct port *port, uint16_t mtu, struct error *err)
{
	struct vhost *v = port->priv;
	int ret = vhost_check_mtu(v->offload, mtu, err);

	if (ret == 0)
		vhost_conn_set_mtu(v, mtu);
	return ret;
}

static void vhost_stats(struct port *port, struct port_stats *out)
{
	*out = (struct port_stats){}; // nothing is dropped here: port_tx drops what does not fit into a vring
}

static void vhost_xstats(struct port *port, void (*cb)(void *arg, const char *name, uint64_t value), void *arg)
{
	const struct vhost *v = port->priv;
	char name[48];
	uint16_t i;

	for (i = 0; i < v->n_queues; i++) {
		snprintf(name, sizeof(name), "tx_q%u_ring_full", i);
		cb(arg, name, v->queues[i].tx_full);
		snprintf(name, sizeof(name), "rx_q%u_notifications_failed", i);
		cb(arg, name, v->queues[i].rx_calls_lost);
		snprintf(name, sizeof(name), "tx_q%u_notifications_failed", i);
		cb(arg, name, v->queues[i].tx_calls_lost);
	}
}

const struct port_ops port_vhost_ops = {
	.kind = "vhost",
	.open = vhost_open,
	.close = vhost_close,
	.rx = vhost_rx,
	.tx = vhost_tx,
	.depth = vhost_depth,
	.arm = vhost_arm,
	.disarm = vhost_disarm,
	.set_mtu = vhost_set_mtu,
	.stats = vhost_stats,
	.xstats = vhost_xstats,
};
