// SPDX-License-Identifier: Apache-2.0
// Control messages of memif: what each side answers to each message, and how they cross the socket.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "port/memif/memif_conn.h"

#define MAX_FDS 8 // that a peer may attach to a message; the protocol needs 1

static void copy_name(char *dst, size_t size, const char *src, size_t n)
{
	size_t i, len = strnlen(src, RTE_MIN(n, size - 1));

	for (i = 0; i < len; i++)
		dst[i] = src[i] >= ' ' && src[i] <= '~' ? src[i] : '?';
	dst[len] = '\0';
}

static int conn_send(struct memif_conn *c, const struct memif_msg *msg, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {.iov_base = (void *)msg, .iov_len = sizeof(*msg)};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *cmsg;

	if (fd >= 0) {
		mh.msg_control = control;
		mh.msg_controllen = sizeof(control);
		cmsg = CMSG_FIRSTHDR(&mh);
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	}
	if (sendmsg(c->fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(*msg))
		return 0;
	// A peer that has not read dozens of answers is treated as dead.
	snprintf(c->reason, sizeof(c->reason), "cannot send to peer: %s", strerror(errno));
	return errno == EAGAIN ? -ETIMEDOUT : -errno;
}

static int conn_send_type(struct memif_conn *c, enum memif_msg_type type)
{
	struct memif_msg msg = {.type = type};

	return conn_send(c, &msg, -1);
}

int memif_conn_refuse(struct memif_conn *c, const char *fmt, ...)
{
	struct memif_msg msg = {.type = MEMIF_DISCONNECT};
	char reason[MEMIF_REASON_SIZE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	memcpy(msg.disconnect.reason, reason, sizeof(reason));
	conn_send(c, &msg, -1);
	memcpy(c->reason, reason, sizeof(reason));
	return -EPROTO;
}

int memif_conn_hello(struct memif_conn *c, uint16_t queues, uint8_t log2_ring)
{
	struct memif_msg msg = {
		.type = MEMIF_HELLO,
		.hello =
			{
				.name = "corelane " CORELANE_VERSION,
				.min_version = MEMIF_VERSION,
				.max_version = MEMIF_VERSION,
				.max_region = MEMIF_MAX_REGIONS - 1,
				.max_s2c_ring = queues - 1,
				.max_c2s_ring = queues - 1,
				.max_log2_ring = log2_ring,
			},
	};

	c->log2_ring = log2_ring;
	return conn_send(c, &msg, -1);
}

static void memif_extend(struct memif_msg *msg, bool whole)
{
	if (whole)
		msg->extension.cookie = MEMIF_EXTENSION_COOKIE;
	msg->extension.features = whole ? MEMIF_WHOLE : 0;
}

static bool memif_extended(const struct memif_msg *msg)
{
	return msg->extension.cookie == MEMIF_EXTENSION_COOKIE && (msg->extension.features & MEMIF_WHOLE);
}

// --- client ---

static int send_init(struct memif_conn *c)
{
	const struct memif_if *mif = c->mif;
	struct memif_msg msg = {
		.type = MEMIF_INIT,
		.init = {.version = MEMIF_VERSION,
			 .id = mif->id,
			 .mode = MEMIF_MODE_ETHERNET,
			 .name = "corelane " CORELANE_VERSION},
	};

	memcpy(msg.init.secret, mif->secret, sizeof(msg.init.secret));
	memif_extend(&msg, mif->whole);
	return conn_send(c, &msg, -1);
}

static int send_region(struct memif_conn *c)
{
	struct memif_msg msg = {.type = MEMIF_ADD_REGION, .add_region = {.index = 0, .size = c->shm->regions[0].size}};

	return conn_send(c, &msg, c->shm->region_fd);
}

static int send_ring(struct memif_conn *c, uint16_t i)
{
	bool c2s = i < c->n_c2s;
	uint16_t index = c2s ? i : i - c->n_c2s;
	const struct memif_queue *q = c2s ? &c->shm->tx[index] : &c->shm->rx[index];
	struct memif_msg msg = {
		.type = MEMIF_ADD_RING,
		.add_ring =
			{
				.flags = c2s ? MEMIF_RING_C2S : 0,
				.index = index,
				.offset = memif_ring_offset(i, c->log2_ring),
				.log2_size = c->log2_ring,
			},
	};

	return conn_send(c, &msg, q->kick_fd);
}

static int send_connect(struct memif_conn *c, enum memif_msg_type type)
{
	struct memif_msg msg = {.type = type};

	memcpy(msg.connect.if_name, c->mif->name, sizeof(msg.connect.if_name));
	memif_extend(&msg, type == MEMIF_CONNECTED && c->shm->whole);
	return conn_send(c, &msg, -1);
}

// The client's messages in order: INIT, ADD_REGION, ADD_RING for each ring, CONNECT.
static int send_step(struct memif_conn *c)
{
	uint16_t rings = c->n_c2s + c->n_s2c;

	if (c->step == 0)
		return send_init(c);
	if (c->step == 1)
		return send_region(c);
	if (c->step < 2 + rings)
		return send_ring(c, c->step - 2);
	c->state = MEMIF_WAIT_CONNECTED;
	return send_connect(c, MEMIF_CONNECT);
}

static int on_hello(struct memif_conn *c, const struct memif_hello *hello)
{
	const struct memif_if *mif = c->mif;
	int ret;

	if (hello->min_version > MEMIF_VERSION || hello->max_version < MEMIF_VERSION)
		return memif_conn_refuse(c, "incompatible memif version %#x..%#x, need %#x", hello->min_version,
					 hello->max_version, MEMIF_VERSION);
	copy_name(c->peer, sizeof(c->peer), hello->name, sizeof(hello->name));
	c->n_c2s = RTE_MIN(mif->queues, hello->max_c2s_ring + 1);
	c->n_s2c = RTE_MIN(mif->queues, hello->max_s2c_ring + 1);
	c->log2_ring = RTE_MIN(mif->log2_ring, hello->max_log2_ring);
	c->shm = memif_shm_new();
	ret = c->shm == NULL ? -ENOMEM : memif_shm_build(c->shm, c->n_c2s, c->n_s2c, c->log2_ring, mif->buffer_size);
	if (ret < 0)
		return memif_conn_refuse(c, "cannot create shared memory: %s", strerror(-ret));
	c->state = MEMIF_WAIT_ACK;
	return send_step(c);
}

static int on_ack(struct memif_conn *c)
{
	c->step++;
	return send_step(c);
}

static int on_connected(struct memif_conn *c, const struct memif_msg *msg)
{
	c->shm->whole = c->mif->whole && memif_extended(msg);
	memif_shm_offer(c->shm);
	c->state = MEMIF_UP;
	return 0;
}

// --- server ---

// Compares in constant time, so that the time of the answer reveals nothing.
static bool secret_matches(const char *own, const char *given)
{
	uint8_t diff = 0;
	unsigned i;

	for (i = 0; i < MEMIF_SECRET_SIZE; i++)
		diff |= own[i] ^ given[i];
	return own[0] == '\0' || diff == 0;
}

static int check_init(struct memif_conn *c, const struct memif_if *mif, const struct memif_init *init)
{
	if (!secret_matches(mif->secret, init->secret))
		return memif_conn_refuse(c, "id %u: wrong secret", init->id);
	if (mif->conn != NULL)
		return memif_conn_refuse(c, "id %u: already connected", init->id);
	if (init->mode != MEMIF_MODE_ETHERNET)
		return memif_conn_refuse(c, "id %u: only Ethernet mode", init->id);
	c->shm = memif_shm_new();
	return c->shm == NULL ? memif_conn_refuse(c, "out of memory") : 0;
}

static int on_init(struct memif_conn *c, const struct memif_msg *msg)
{
	const struct memif_init *init = &msg->init;
	struct memif_if *mif = memif_listener_find(c->listener, init->id);
	int ret;

	if (init->version != MEMIF_VERSION)
		return memif_conn_refuse(c, "incompatible memif version %#x, need %#x", init->version, MEMIF_VERSION);
	if (mif == NULL)
		return memif_conn_refuse(c, "no interface with id %u", init->id);
	copy_name(c->peer, sizeof(c->peer), init->name, sizeof(init->name));
	ret = check_init(c, mif, init);
	if (ret < 0) {
		if (mif->failed != NULL)
			mif->failed(mif, c->reason);
		return ret;
	}
	c->shm->whole = mif->whole && memif_extended(msg);
	c->mif = mif;
	mif->conn = c;
	c->state = MEMIF_WAIT_CONNECT;
	return conn_send_type(c, MEMIF_ACK);
}

static int on_add_region(struct memif_conn *c, const struct memif_add_region *add, int fd)
{
	int ret;

	if (fd < 0)
		return memif_conn_refuse(c, "region without file descriptor");
	if (add->index != c->shm->n_regions)
		return memif_conn_refuse(c, "region %u out of order", add->index);
	ret = memif_shm_add_region(c->shm, fd, add->size);
	if (ret == -EPERM)
		return memif_conn_refuse(c, "region %u is not a writable memfd sealed against shrinking", add->index);
	if (ret < 0)
		return memif_conn_refuse(c, "region %u of %lu bytes: %s", add->index, (unsigned long)add->size,
					 strerror(-ret));
	return conn_send_type(c, MEMIF_ACK);
}

// *fd becomes -1 when the ring owns it.
static int on_add_ring(struct memif_conn *c, const struct memif_add_ring *add, int *fd)
{
	bool rx = add->flags & MEMIF_RING_C2S;
	uint16_t have = rx ? c->shm->n_rx : c->shm->n_tx;
	const char *direction = rx ? "c2s" : "s2c";
	int ret;

	if (*fd < 0)
		return memif_conn_refuse(c, "%s ring %u without eventfd", direction, add->index);
	if (add->index >= RTE_MIN(c->mif->queues, MEMIF_MAX_RINGS))
		return memif_conn_refuse(c, "%s ring %u: at most %u rings", direction, add->index, c->mif->queues);
	if (add->index != have)
		return memif_conn_refuse(c, "%s ring %u out of order", direction, add->index);
	if (add->log2_size > c->log2_ring)
		return memif_conn_refuse(c, "%s ring %u: at most %u slots", direction, add->index, 1u << c->log2_ring);
	ret = memif_shm_add_ring(c->shm, rx, add->region, add->offset, add->log2_size, *fd);
	if (ret < 0)
		return memif_conn_refuse(c, "%s ring %u at region %u offset %u: %s", direction, add->index, add->region,
					 add->offset, strerror(-ret));
	*fd = -1;
	return conn_send_type(c, MEMIF_ACK);
}

static int on_connect(struct memif_conn *c)
{
	int ret;

	if (c->shm->n_rx + c->shm->n_tx == 0)
		return memif_conn_refuse(c, "no rings");
	ret = send_connect(c, MEMIF_CONNECTED);
	if (ret == 0)
		c->state = MEMIF_UP;
	return ret;
}

// --- both ---

static int on_disconnect(struct memif_conn *c, const struct memif_disconnect *d)
{
	char reason[MEMIF_REASON_SIZE];

	copy_name(reason, sizeof(reason), d->reason, sizeof(d->reason));
	snprintf(c->reason, sizeof(c->reason), "peer: %.88s", reason[0] != '\0' ? reason : "disconnect");
	return -ECONNRESET;
}

static int on_message(struct memif_conn *c, const struct memif_msg *msg, int *fd)
{
	if (msg->type == MEMIF_DISCONNECT)
		return on_disconnect(c, &msg->disconnect);
	if (msg->type == MEMIF_HELLO && c->state == MEMIF_WAIT_HELLO)
		return on_hello(c, &msg->hello);
	if (msg->type == MEMIF_ACK && c->state == MEMIF_WAIT_ACK)
		return on_ack(c);
	if (msg->type == MEMIF_CONNECTED && c->state == MEMIF_WAIT_CONNECTED)
		return on_connected(c, msg);
	if (msg->type == MEMIF_INIT && c->state == MEMIF_WAIT_INIT)
		return on_init(c, msg);
	if (msg->type == MEMIF_ACK && c->state == MEMIF_UP)
		return 0; // some clients acknowledge CONNECTED
	if (c->state != MEMIF_WAIT_CONNECT)
		return memif_conn_refuse(c, "unexpected message %u", msg->type);
	switch (msg->type) {
	case MEMIF_ADD_REGION:
		return on_add_region(c, &msg->add_region, *fd);
	case MEMIF_ADD_RING:
		return on_add_ring(c, &msg->add_ring, fd);
	case MEMIF_CONNECT:
		return on_connect(c);
	default:
		return memif_conn_refuse(c, "unexpected message %u", msg->type);
	}
}

int memif_conn_message(struct memif_conn *c, const struct memif_msg *msg, int fd)
{
	int ret = on_message(c, msg, &fd);

	if (fd >= 0)
		close(fd);
	return ret;
}

// The first descriptor of the message; all others are closed.
static int take_fd(struct msghdr *mh)
{
	struct cmsghdr *cmsg;
	int fds[MAX_FDS], first = -1;
	size_t i, n;

	for (cmsg = CMSG_FIRSTHDR(mh); cmsg != NULL; cmsg = CMSG_NXTHDR(mh, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		n = RTE_MIN((cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int), (size_t)MAX_FDS);
		memcpy(fds, CMSG_DATA(cmsg), n * sizeof(int));
		for (i = 0; i < n; i++) {
			if (first < 0)
				first = fds[i];
			else
				close(fds[i]);
		}
	}
	return first;
}

int memif_conn_receive(struct memif_conn *c)
{
	char control[CMSG_SPACE(MAX_FDS * sizeof(int))];
	struct memif_msg msg = {0};
	struct iovec iov = {.iov_base = &msg, .iov_len = sizeof(msg)};
	struct msghdr mh = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(c->fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int fd;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	fd = n < 0 ? -1 : take_fd(&mh);
	if (n <= 0) { // a message without a byte looks like the end, but may bring descriptors
		if (fd >= 0)
			close(fd);
		snprintf(c->reason, sizeof(c->reason), "peer closed the connection%s%s", n < 0 ? ": " : "",
			 n < 0 ? strerror(errno) : "");
		return -ECONNRESET;
	}
	if (n == sizeof(msg) && !(mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return memif_conn_message(c, &msg, fd);
	if (fd >= 0)
		close(fd);
	return memif_conn_refuse(c, "message of %zd bytes, need %zu", n, sizeof(msg));
}
