// SPDX-License-Identifier: Apache-2.0
// What workers use of a port's device, as the callbacks of librte_vhost say. They run on its thread, and on the master
// thread inside rte_vhost_driver_unregister().
//
// vring_state_changed() is called with the locks of all vrings held, and a worker may be spinning on one of them:
// waiting for workers there would be a deadlock. It need not wait, because the library's bursts look at the vring's
// state under its lock. Messages that change more than this state find the port paused (vhost_front.h): what the
// callbacks say is published when the message was accepted. The library answers before it calls back, so either may be
// the first. destroy_device() is called without these locks; there a grace period passes before the guest's
// memory is unmapped.
//
// A guest's process may shrink the file of its memory at any time, so each region is guarded as soon as the library has
// mapped it: after_message() is called with the locks of all vrings held. When a thread has touched what is not there
// any more, the front thread is told, which ends the connection.
#include "port/vhost.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_bitops.h>
#include <rte_vhost.h>

#include "base/memory_guard.h"
#include "base/rcu.h"
#include "base/wake_fd.h"
#include "port/vhost_front.h"
#include "port/vhost_message.h"
#include "port/vnet.h"

#define MAX_VRINGS 256
#define MAX_REGIONS 8 // of a guest, in librte_vhost
#define LOG_REGION MAX_REGIONS

enum { SET_MEM_TABLE = 5, SET_LOG_BASE = 6 }; // of the vhost-user protocol

// Connections of the library, by its id (vid). A port may have two for a moment, when a guest restarts.
struct conn {
	struct vhost *vhost; // NULL: belongs to no port
	bool ready[MAX_VRINGS];
	// Duplicates of the kick eventfds of the guest's transmit vrings, -1 = none. They can be removed from the
	// queue's wake_fd even after librte_vhost has closed its own.
	int kick[MAX_VRINGS];
	int guards[MAX_REGIONS + 1]; // -1 = none
	bool lost;                   // the guest has taken memory away
};

pthread_mutex_t vhost_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vhost *vhosts;
static struct conn conns[RTE_MAX_VHOST_DEVICE];

static struct vhost *vhost_conn_find(const char *inside)
{
	struct vhost *v;

	for (v = vhosts; v != NULL && strcmp(v->inside, inside) != 0; v = v->next)
		;
	return v;
}

static bool vhost_conn_has(const char *path)
{
	const struct vhost *v;

	for (v = vhosts; v != NULL && strcmp(v->path, path) != 0; v = v->next)
		;
	return v != NULL;
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
	if (vhost_conn_has(v->path)) {
		ret = -EEXIST;
	} else {
		v->next = vhosts;
		vhosts = v;
	}
	pthread_mutex_unlock(&vhost_lock);
	return ret;
}

// All under vhost_lock. A connection is lost once.
static void lose_conn(struct conn *c)
{
	if (c->lost || c->vhost == NULL)
		return;
	c->lost = true;
	c->vhost->lost = true;
	c->vhost->losses++;
	port_watch_kick(c->vhost->watch);
}

static void find_lost(struct conn *c, unsigned first, unsigned n)
{
	unsigned i;

	for (i = first; i < first + n; i++)
		if (memory_guard_lost(c->guards[i]))
			lose_conn(c);
}

static void forget_memory(struct conn *c, unsigned first, unsigned n)
{
	unsigned i;

	find_lost(c, first, n);
	for (i = first; i < first + n; i++) {
		memory_guard_remove(c->guards[i]);
		c->guards[i] = -1;
	}
}

// The library has forgotten the port, and calls back no more for it.
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
			forget_memory(&conns[i], 0, MAX_REGIONS + 1);
			conns[i].vhost = NULL;
		}
	pthread_mutex_unlock(&vhost_lock);
}

static int guard_memory(struct conn *c, unsigned i, void *addr, uint64_t size)
{
	c->guards[i] = memory_guard_add(addr, size, vhost_front_lost);
	return c->guards[i] < 0 ? c->guards[i] : 0;
}

// After the library has mapped the guest's regions: without any, it would look for them at address 0.
static int guard_regions(struct conn *c, int vid)
{
	struct rte_vhost_memory *mem = NULL;
	unsigned i;
	int ret = 0;

	if (rte_vhost_get_mem_table(vid, &mem) < 0)
		return -ENOMEM;
	for (i = 0; i < RTE_MIN(mem->nregions, (uint32_t)MAX_REGIONS) && ret == 0; i++)
		ret = guard_memory(c, i, mem->regions[i].mmap_addr, mem->regions[i].mmap_size);
	free(mem);
	return ret;
}

// The pages that a migrating guest's process wants to know as written.
static int guard_log(struct conn *c, int vid)
{
	uint64_t base = 0, size = 0, begin, page = (uint64_t)getpagesize();

	if (rte_vhost_get_log_base(vid, &base, &size) < 0 || base == 0)
		return 0;
	begin = RTE_ALIGN_FLOOR(base, page);
	return guard_memory(c, LOG_REGION, (void *)(uintptr_t)begin, RTE_ALIGN_CEIL(base + size, page) - begin);
}

// The library unmaps what it had, and may look at the new memory before after_message() has guarded it.
static enum rte_vhost_msg_result before_message(int vid, void *msg)
{
	const struct vhost_message *m = msg;

	pthread_mutex_lock(&vhost_lock);
	if (m->request == SET_MEM_TABLE)
		forget_memory(&conns[vid], 0, MAX_REGIONS);
	else if (m->request == SET_LOG_BASE)
		forget_memory(&conns[vid], LOG_REGION, 1);
	pthread_mutex_unlock(&vhost_lock);
	memory_guard_thread();
	return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
}

// The message was valid. Under vhost_lock.
static int guard_new_memory(struct conn *c, int vid, uint32_t request)
{
	int ret = request == SET_MEM_TABLE ? guard_regions(c, vid) : guard_log(c, vid);

	if (memory_guard_thread_lost()) {
		lose_conn(c);
		vhost_front_lost();
	}
	return ret;
}

static enum rte_vhost_msg_result after_message(int vid, void *msg)
{
	const struct vhost_message *m = msg;
	int ret;

	if (m->request != SET_MEM_TABLE && m->request != SET_LOG_BASE)
		return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
	pthread_mutex_lock(&vhost_lock);
	ret = guard_new_memory(&conns[vid], vid, m->request);
	pthread_mutex_unlock(&vhost_lock);
	return ret < 0 ? RTE_VHOST_MSG_RESULT_ERR : RTE_VHOST_MSG_RESULT_OK;
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

// What the guest takes as it is.
static uint16_t vhost_conn_takes(uint64_t features)
{
	uint16_t takes = 0;

	if (!(features >> VIRTIO_NET_F_GUEST_CSUM & 1))
		return 0;
	takes |= PORT_TAKES_CHECKSUM;
	takes |= features >> VIRTIO_NET_F_GUEST_TSO4 & 1 ? PORT_TAKES_TCP4 : 0;
	takes |= features >> VIRTIO_NET_F_GUEST_TSO6 & 1 ? PORT_TAKES_TCP6 : 0;
	return takes;
}

// Buffers of the largest frame that the guest may send.
static uint16_t vhost_conn_segs(uint64_t features, uint16_t mtu)
{
	unsigned room = port_pool_data_room() - RTE_PKTMBUF_HEADROOM;
	const uint64_t large = 1ULL << VIRTIO_NET_F_HOST_TSO4 | 1ULL << VIRTIO_NET_F_HOST_TSO6;

	return (uint16_t)((features & large) ? VNET_LONGEST / room + 1 : (mtu + PORT_L2_OVERHEAD + room - 1) / room);
}

// The library notes the buffers that the frames of a call take in an array of the ring's length, without looking at its
// end. A frame takes less than a ring of buffers, but the next one may take them once more, if the guest's index of
// available buffers lies. Without mergeable buffers each frame takes one.
static uint16_t vhost_conn_sends(uint64_t features)
{
	return features >> VIRTIO_NET_F_MRG_RXBUF & 1 ? 1 : VHOST_BURST;
}

// Under vhost_lock.
static void vhost_conn_publish(struct vhost *v)
{
	const struct conn *c = v->vid < 0 || v->paused ? NULL : &conns[v->vid];
	uint16_t i, pairs = c ? rx_pairs(c) : 0;
	uint64_t features = 0;
	int vring;

	if (v->vid >= 0)
		rte_vhost_get_negotiated_features(v->vid, &features);
	__atomic_store_n(&v->port->takes, vhost_conn_takes(features), __ATOMIC_RELAXED);
	for (i = 0; i < v->n_queues; i++) {
		vring = c ? tx_vring(c, i) : -1;
		__atomic_store_n(&v->queues[i].no_kick, vhost_conn_no_kick(c, i, pairs, v->n_queues), __ATOMIC_RELEASE);
		__atomic_store_n(&v->queues[i].marked, (features >> VIRTIO_NET_F_CSUM & 1) != 0, __ATOMIC_RELAXED);
		__atomic_store_n(&v->queues[i].segs, vhost_conn_segs(features, v->mtu), __ATOMIC_RELAXED);
		__atomic_store_n(&v->queues[i].sends, vhost_conn_sends(features), __ATOMIC_RELAXED);
		rcu_publish(v->queues[i].rx, pairs > 0 ? VRING(v->vid, pairs) : VRING_NONE);
		rcu_publish(v->queues[i].tx, vring >= 0 ? VRING(v->vid, (uint16_t)vring) : VRING_NONE);
		port_queue_changed(&v->port->queues[i]);
	}
}

void vhost_conn_begin(struct vhost *v)
{
	pthread_mutex_lock(&vhost_lock);
	v->paused = false;
	v->lost = false;
	pthread_mutex_unlock(&vhost_lock);
}

bool vhost_conn_pause(struct vhost *v)
{
	bool runs;

	pthread_mutex_lock(&vhost_lock);
	v->paused = true;
	runs = v->vid >= 0; // without one, nothing is published, and the library has waited for the workers
	if (runs)
		vhost_conn_publish(v);
	pthread_mutex_unlock(&vhost_lock);
	return runs;
}

void vhost_conn_resume(struct vhost *v)
{
	pthread_mutex_lock(&vhost_lock);
	if (v->paused && v->vid >= 0) {
		v->paused = false;
		vhost_conn_publish(v);
	}
	v->paused = false;
	pthread_mutex_unlock(&vhost_lock);
}

bool vhost_conn_is_over(struct vhost *v)
{
	bool over;

	pthread_mutex_lock(&vhost_lock);
	over = v->devices == 0;
	pthread_mutex_unlock(&vhost_lock);
	return over;
}

void vhost_conn_find_lost(void)
{
	unsigned i;

	pthread_mutex_lock(&vhost_lock);
	for (i = 0; i < RTE_MAX_VHOST_DEVICE; i++)
		if (conns[i].vhost != NULL)
			find_lost(&conns[i], 0, MAX_REGIONS + 1);
	pthread_mutex_unlock(&vhost_lock);
}

bool vhost_conn_is_lost(struct vhost *v)
{
	bool lost;

	pthread_mutex_lock(&vhost_lock);
	lost = v->lost;
	pthread_mutex_unlock(&vhost_lock);
	return lost;
}

void vhost_conn_refused(struct vhost *v, bool ring, uint32_t request, const char *why)
{
	struct vhost_refused *r = ring ? &v->refused_rings : &v->refused;

	pthread_mutex_lock(&vhost_lock);
	r->n++;
	r->request = request;
	r->why = why;
	port_watch_kick(v->watch);
	pthread_mutex_unlock(&vhost_lock);
}

void vhost_conn_set_mtu(struct vhost *v, uint16_t mtu)
{
	uint64_t features = 0;
	uint16_t i;

	pthread_mutex_lock(&vhost_lock);
	v->mtu = mtu;
	if (v->vid >= 0)
		rte_vhost_get_negotiated_features(v->vid, &features);
	for (i = 0; i < v->n_queues; i++)
		__atomic_store_n(&v->queues[i].segs, vhost_conn_segs(features, mtu), __ATOMIC_RELAXED);
	pthread_mutex_unlock(&vhost_lock);
}

static int new_connection(int vid)
{
	static const struct rte_vhost_user_extern_ops messages = {.pre_msg_handle = before_message,
								  .post_msg_handle = after_message};
	char path[PATH_MAX];
	struct vhost *v;

	if (vid < 0 || vid >= RTE_MAX_VHOST_DEVICE || rte_vhost_get_ifname(vid, path, sizeof(path)) < 0 ||
	    rte_vhost_extern_callback_register(vid, &messages, NULL) < 0)
		return -1;
	pthread_mutex_lock(&vhost_lock);
	v = vhost_conn_find(path);
	memset(&conns[vid], 0, sizeof(conns[vid]));
	memset(conns[vid].kick, -1, sizeof(conns[vid].kick));
	memset(conns[vid].guards, -1, sizeof(conns[vid].guards));
	conns[vid].vhost = v;
	if (v != NULL)
		v->devices++;
	pthread_mutex_unlock(&vhost_lock);
	return v != NULL ? 0 : -1;
}

// The library uses rings whose length it was never told. Their length is 0, which bounds no index.
static bool has_length(int vid, uint16_t vring)
{
	struct rte_vhost_vring r;

	return rte_vhost_get_vhost_vring(vid, vring, &r) == 0 && r.size >= VHOST_SHORTEST_RING &&
	       r.size <= VHOST_LONGEST_RING;
}

static int vring_state_changed(int vid, uint16_t vring, int enable)
{
	struct conn *c = &conns[vid];

	pthread_mutex_lock(&vhost_lock);
	if (c->vhost != NULL && vring < MAX_VRINGS) {
		c->ready[vring] = enable && has_length(vid, vring);
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
		v->vid = vid;
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
	forget_memory(&conns[vid], 0, MAX_REGIONS + 1);
	forget_all_kicks(&conns[vid]);
	conns[vid].vhost = NULL;
	if (v != NULL)
		v->devices--;
	pthread_mutex_unlock(&vhost_lock);
	vhost_front_wake();
}

// On the worker, with the lock of the ring held: vhost_call.h.
static void guest_notified(int vid)
{
	vhost_call_signal();
}

const struct rte_vhost_device_ops vhost_callbacks = {
	.new_connection = new_connection,
	.vring_state_changed = vring_state_changed,
	.new_device = new_device,
	.destroy_device = destroy_device,
	.destroy_connection = destroy_connection,
	.guest_notified = guest_notified,
};
