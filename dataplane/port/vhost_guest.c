// SPDX-License-Identifier: Apache-2.0
#include "port/vhost_guest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

// Numbers of the vhost-user specification.
enum {
	GET_FEATURES = 1,
	SET_FEATURES = 2,
	SET_OWNER = 3,
	SET_MEM_TABLE = 5,
	SET_VRING_NUM = 8,
	SET_VRING_ADDR = 9,
	SET_VRING_BASE = 10,
	SET_VRING_KICK = 12,
	SET_VRING_CALL = 13,
	GET_PROTOCOL_FEATURES = 15,
	SET_PROTOCOL_FEATURES = 16,
	SET_VRING_ENABLE = 18,
};

// VERSION_1, PROTOCOL_FEATURES, INDIRECT_DESC, MQ, MRG_RXBUF
#define FEATURES (1ULL << 32 | 1ULL << 30 | 1ULL << 28 | 1ULL << 22 | 1ULL << 15)
#define PACKED (1ULL << 34)
#define PROTOCOL_MQ 1ULL
#define HEADER GUEST_HEADER
#define BUFFER 2048
#define FRAME 60
#define RING_BYTES (8192 + GUEST_RING * BUFFER)
#define MEM_BYTES (2 * GUEST_PAIRS * RING_BYTES + GUEST_SPACE)

struct msg {
	uint32_t request, flags, size;
	union {
		uint64_t u64;
		struct {
			uint32_t index, num;
		} state;
		struct {
			uint32_t index, flags;
			uint64_t desc, used, avail, log;
		} addr;
		struct {
			uint32_t n, padding;
			uint64_t gpa, size, uva, offset;
		} mem;
	};
} __attribute__((packed));

static int request(struct guest *g, uint32_t type, struct msg *m, uint32_t size, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {};
	struct iovec iov = {.iov_base = m, .iov_len = 12 + size};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	m->request = type;
	m->flags = 1; // version
	m->size = size;
	if (fd >= 0) {
		h.msg_control = control;
		h.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	return sendmsg(g->sock, &h, MSG_NOSIGNAL) == (ssize_t)iov.iov_len ? 0 : -EPIPE;
}

static int get_u64(struct guest *g, uint32_t type, uint64_t *value)
{
	struct msg m = {};

	if (request(g, type, &m, 0, -1) < 0 || recv(g->sock, &m, 12 + 8, MSG_WAITALL) != 12 + 8)
		return -EPIPE;
	*value = m.u64;
	return 0;
}

static int set_u64(struct guest *g, uint32_t type, uint64_t value, int fd)
{
	struct msg m = {.u64 = value};

	return request(g, type, &m, 8, fd);
}

static int set_state(struct guest *g, uint32_t type, uint32_t index, uint32_t num)
{
	struct msg m = {.state = {.index = index, .num = num}};

	return request(g, type, &m, 8, -1);
}

static int set_memory(struct guest *g)
{
	struct msg m = {.mem = {.n = 1, .gpa = 0, .size = MEM_BYTES}};
	int fd = memfd_create("guest", MFD_CLOEXEC), ret;

	if (fd < 0 || ftruncate(fd, MEM_BYTES) < 0)
		return -errno;
	g->mem = mmap(NULL, MEM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (g->mem == MAP_FAILED)
		return -errno;
	m.mem.uva = (uintptr_t)g->mem;
	ret = request(g, SET_MEM_TABLE, &m, 40, fd);
	close(fd);
	return ret;
}

static int set_ring(struct guest *g, uint32_t i)
{
	struct guest_ring *r = &g->rings[i];
	struct msg m = {.addr = {.index = i}};
	int ret;

	m.addr.desc = (uintptr_t)r->desc;
	m.addr.avail = (uintptr_t)r->avail;
	m.addr.used = (uintptr_t)r->used;
	r->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->call = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = set_state(g, SET_VRING_NUM, i, GUEST_RING);
	if (ret == 0)
		ret = set_state(g, SET_VRING_BASE, i, g->packed ? 1 << 15 : 0); // wrap counters begin with 1
	if (ret == 0)
		ret = request(g, SET_VRING_ADDR, &m, 40, -1);
	if (ret == 0)
		ret = set_u64(g, SET_VRING_CALL, i, r->call);
	if (ret == 0)
		ret = set_u64(g, SET_VRING_KICK, i, r->kick);
	return ret;
}

static uint16_t packed_flags(const struct guest_ring *r)
{
	return r->wrap ? 1 << VRING_PACKED_DESC_F_AVAIL : 1 << VRING_PACKED_DESC_F_USED;
}

static void packed_put(struct guest_ring *r, const struct vring_desc *d, uint16_t at, uint16_t flags)
{
	struct vring_packed_desc *p = &r->packed[at % GUEST_RING];

	p->addr = d->addr;
	p->len = d->len;
	p->id = at % GUEST_RING;
	__atomic_store_n(&p->flags, (uint16_t)(d->flags | flags), __ATOMIC_RELEASE);
}

// The device begins with the first descriptor, whose flags are therefore written last.
static void packed_post(struct guest_ring *r, const struct vring_desc *chain, unsigned n)
{
	uint16_t first = r->next, first_flags = packed_flags(r), i;

	for (i = 0; i < n; i++) {
		if (i > 0)
			packed_put(r, &chain[i], r->next, packed_flags(r));
		if (++r->next == GUEST_RING) {
			r->next = 0;
			r->wrap = !r->wrap;
		}
	}
	packed_put(r, &chain[0], first, first_flags);
}

static void lay_out_packed(struct guest *g, uint32_t i)
{
	struct guest_ring *r = &g->rings[i];
	uint8_t *base = g->mem + (size_t)i * RING_BYTES;
	struct vring_packed_desc_event *driver = (void *)(base + 4096);
	uint16_t d;

	r->desc = (void *)base;
	r->packed = (void *)base;
	r->avail = (void *)(base + 4096);
	r->used = (void *)(base + 6144);
	r->buffers = base + 8192;
	r->wrap = true;
	driver->flags = VRING_PACKED_EVENT_FLAG_DISABLE;
	for (d = 0; d < GUEST_RING; d++) {
		struct vring_desc one = {.addr = (uint64_t)(r->buffers + d * BUFFER - g->mem),
					 .len = i % 2 == 0 ? BUFFER : HEADER + FRAME,
					 .flags = i % 2 == 0 ? VRING_DESC_F_WRITE : 0};

		packed_post(r, &one, 1);
	}
}

static void lay_out(struct guest *g, uint32_t i)
{
	struct guest_ring *r = &g->rings[i];
	uint8_t *base = g->mem + (size_t)i * RING_BYTES;
	uint16_t d;

	r->desc = (void *)base;
	r->avail = (void *)(base + 4096);
	r->used = (void *)(base + 6144);
	r->buffers = base + 8192;
	for (d = 0; d < GUEST_RING; d++) {
		r->desc[d].addr = (uint64_t)(r->buffers + d * BUFFER - g->mem);
		r->desc[d].len = i % 2 == 0 ? BUFFER : HEADER + FRAME;
		r->desc[d].flags = i % 2 == 0 ? VRING_DESC_F_WRITE : 0;
		memset(r->buffers + d * BUFFER, 0, HEADER);
		memset(r->buffers + d * BUFFER + HEADER, (int)i, FRAME);
		r->avail->ring[d] = d;
	}
	r->avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
	r->avail->idx = GUEST_RING; // empty buffers to receive into; first packets to send
	g->sent += i % 2 == 1 ? GUEST_RING : 0;
}

static void lay_out_ring(struct guest *g, uint32_t i)
{
	(g->packed ? lay_out_packed : lay_out)(g, i);
}

void guest_reset(struct guest *g)
{
	size_t own = 2 * g->pairs * RING_BYTES; // a fault for each of their pages would take longer
	uint32_t i;

	memset(g->mem, 0, own);
	madvise(g->mem + own, MEM_BYTES - own, MADV_REMOVE);
	for (i = 0; i < 2 * g->pairs; i++)
		lay_out_ring(g, i);
}

static int open_socket(const char *path, bool server)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), conn;

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	if (!server)
		return connect(fd, (struct sockaddr *)&un, sizeof(un)) < 0 ? -errno : fd;
	unlink(path);
	conn = bind(fd, (struct sockaddr *)&un, sizeof(un)) < 0 || listen(fd, 1) < 0 ? -1 : accept(fd, NULL, NULL);
	close(fd);
	return conn < 0 ? -errno : conn;
}

static int start(struct guest *g, const char *path, bool server, unsigned pairs, bool packed)
{
	uint64_t features, wanted = FEATURES | (packed ? PACKED : 0), protocol;
	uint32_t i;
	int ret;

	memset(g, 0, sizeof(*g));
	g->pairs = pairs;
	g->packed = packed;
	g->sock = open_socket(path, server);
	if (g->sock < 0)
		return g->sock;
	if (set_u64(g, SET_OWNER, 0, -1) < 0 || get_u64(g, GET_FEATURES, &features) < 0 ||
	    (features & wanted) != wanted)
		return -EPROTO;
	if (get_u64(g, GET_PROTOCOL_FEATURES, &protocol) < 0 || (protocol & PROTOCOL_MQ) == 0)
		return -EPROTO;
	ret = set_u64(g, SET_PROTOCOL_FEATURES, PROTOCOL_MQ, -1);
	if (ret == 0)
		ret = set_u64(g, SET_FEATURES, wanted, -1);
	if (ret == 0)
		ret = set_memory(g);
	for (i = 0; i < 2 * pairs && ret == 0; i++) {
		lay_out_ring(g, i);
		ret = set_ring(g, i);
	}
	for (i = 0; i < 2 * pairs && ret == 0; i++)
		ret = set_state(g, SET_VRING_ENABLE, i, 1);
	return ret;
}

int guest_start(struct guest *g, const char *path, bool server, unsigned pairs)
{
	return start(g, path, server, pairs, false);
}

int guest_start_packed(struct guest *g, const char *path, unsigned pairs)
{
	return start(g, path, false, pairs, true);
}

void guest_stop(struct guest *g)
{
	unsigned i;

	close(g->sock);
	munmap(g->mem, MEM_BYTES);
	for (i = 0; i < 2 * g->pairs; i++) {
		close(g->rings[i].kick);
		close(g->rings[i].call);
	}
}

void guest_step(struct guest *g)
{
	struct guest_ring *r;
	uint16_t used, k;
	unsigned i;

	for (i = 0; i < 2 * g->pairs; i++) {
		r = &g->rings[i];
		used = __atomic_load_n(&r->used->idx, __ATOMIC_ACQUIRE);
		k = (uint16_t)(used - r->seen);
		for (; r->seen != used; r->seen++)
			r->avail->ring[(uint16_t)(r->avail->idx + (uint16_t)(used - r->seen) - 1) % GUEST_RING] =
				(uint16_t)r->used->ring[r->seen % GUEST_RING].id;
		__atomic_store_n(&r->avail->idx, (uint16_t)(r->avail->idx + k), __ATOMIC_RELEASE);
		if (i % 2 == 0)
			g->received += k;
		else
			g->sent += k;
	}
}

void guest_post(struct guest *g, unsigned ring, const struct vring_desc *chain, unsigned n)
{
	struct guest_ring *r = &g->rings[ring];

	if (g->packed) {
		packed_post(r, chain, n);
		return;
	}
	memcpy(r->desc, chain, n * sizeof(chain[0]));
	r->avail->ring[r->avail->idx % GUEST_RING] = 0;
	__atomic_store_n(&r->avail->idx, (uint16_t)(r->avail->idx + 1), __ATOMIC_RELEASE);
}

bool guest_served(const struct guest *g)
{
	unsigned i;

	for (i = 0; i < g->pairs; i++)
		if (g->rings[2 * i + 1].used->idx == 0)
			return false;
	return true;
}

void guest_misbehave(struct guest *g, unsigned *seed)
{
	struct guest_ring *r = &g->rings[(unsigned)rand_r(seed) % (2 * g->pairs)];
	struct vring_desc *d = &r->desc[(unsigned)rand_r(seed) % GUEST_RING];

	switch (rand_r(seed) % 6) {
	case 0: // somewhere else, perhaps wrapping
		d->addr = (uint64_t)rand_r(seed) << 33 ^ (uint64_t)rand_r(seed);
		break;
	case 1:
		d->len = (uint32_t)rand_r(seed) * 2;
		break;
	case 2: // chains, loops and invalid indirect tables
		d->flags = (uint16_t)rand_r(seed);
		d->next = (uint16_t)rand_r(seed) % (2 * GUEST_RING);
		break;
	case 3:
		r->avail->ring[(unsigned)rand_r(seed) % GUEST_RING] = (uint16_t)rand_r(seed);
		break;
	case 4:
		r->avail->idx = (uint16_t)rand_r(seed);
		break;
	default:
		d->len = (unsigned)rand_r(seed) % (HEADER + 2); // no room for a header, or no packet behind it
	}
}
