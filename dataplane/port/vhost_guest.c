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
	GET_VRING_BASE = 11,
	SET_VRING_KICK = 12,
	SET_VRING_CALL = 13,
	GET_PROTOCOL_FEATURES = 15,
	SET_PROTOCOL_FEATURES = 16,
	SET_VRING_ENABLE = 18,
};

// CSUM, GUEST_CSUM, GUEST_TSO4, GUEST_TSO6, HOST_TSO4, HOST_TSO6
#define LARGE (1ULL << 0 | 1ULL << 1 | 1ULL << 7 | 1ULL << 8 | 1ULL << 11 | 1ULL << 12)
// VERSION_1, PROTOCOL_FEATURES, INDIRECT_DESC, MQ, MRG_RXBUF
#define FEATURES (1ULL << 32 | 1ULL << 30 | 1ULL << 28 | 1ULL << 22 | 1ULL << 15)
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

static int guest_request(struct guest *g, uint32_t type, struct msg *m, uint32_t size, int fd)
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

	if (guest_request(g, type, &m, 0, -1) < 0 || recv(g->sock, &m, 12 + 8, MSG_WAITALL) != 12 + 8)
		return -EPIPE;
	*value = m.u64;
	return 0;
}

static int set_u64(struct guest *g, uint32_t type, uint64_t value, int fd)
{
	struct msg m = {.u64 = value};

	return guest_request(g, type, &m, 8, fd);
}

static int set_state(struct guest *g, uint32_t type, uint32_t index, uint32_t num)
{
	struct msg m = {.state = {.index = index, .num = num}};

	return guest_request(g, type, &m, 8, -1);
}

int guest_resend_memory(struct guest *g)
{
	struct msg m = {.mem = {.n = 1, .gpa = 0, .size = MEM_BYTES, .uva = (uintptr_t)g->mem}};

	return guest_request(g, SET_MEM_TABLE, &m, 40, g->mem_fd);
}

static int set_memory(struct guest *g)
{
	g->mem_fd = memfd_create("guest", MFD_CLOEXEC);
	if (g->mem_fd < 0 || ftruncate(g->mem_fd, MEM_BYTES) < 0)
		return -errno;
	g->mem = mmap(NULL, MEM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, g->mem_fd, 0);
	if (g->mem == MAP_FAILED)
		return -errno;
	return guest_resend_memory(g);
}

void guest_set_call(struct guest *g, unsigned ring, int fd)
{
	set_u64(g, SET_VRING_CALL, ring, fd);
}

static int set_ring(struct guest *g, uint32_t i, bool told)
{
	struct guest_ring *r = &g->rings[i];
	struct msg m = {.addr = {.index = i}};
	int ret;

	m.addr.desc = (uintptr_t)r->desc;
	m.addr.avail = (uintptr_t)r->avail;
	m.addr.used = (uintptr_t)r->used;
	r->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->call = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = told ? set_state(g, SET_VRING_NUM, i, GUEST_RING) : 0;
	if (ret == 0)
		ret = set_state(g, SET_VRING_BASE, i, 0);
	if (ret == 0)
		ret = guest_request(g, SET_VRING_ADDR, &m, 40, -1);
	if (ret == 0)
		ret = set_u64(g, SET_VRING_CALL, i, r->call);
	if (ret == 0)
		ret = set_u64(g, SET_VRING_KICK, i, r->kick);
	return ret;
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

void guest_reset(struct guest *g)
{
	size_t own = 2 * g->pairs * RING_BYTES; // a fault for each of their pages would take longer
	uint32_t i;

	memset(g->mem, 0, own);
	madvise(g->mem + own, MEM_BYTES - own, MADV_REMOVE);
	for (i = 0; i < 2 * g->pairs; i++)
		lay_out(g, i);
}

static int guest_open_socket(const char *path, bool server)
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

#define ALL_TOLD UINT32_MAX

// untold: the ring whose length the router is not told.
static int guest_begin(struct guest *g, const char *path, bool server, unsigned pairs, bool large, uint32_t untold)
{
	uint64_t features, wanted = FEATURES | (large ? LARGE : 0), protocol;
	struct msg owner = {};
	uint32_t i;
	int ret;

	memset(g, 0, sizeof(*g));
	g->pairs = pairs;
	for (i = 0; i < 2 * pairs; i++)
		g->rings[i].kick = g->rings[i].call = -1;
	g->sock = guest_open_socket(path, server);
	if (g->sock < 0)
		return g->sock;
	if (guest_request(g, SET_OWNER, &owner, 0, -1) < 0 || get_u64(g, GET_FEATURES, &features) < 0 ||
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
		lay_out(g, i);
		ret = set_ring(g, i, i != untold);
	}
	for (i = 0; i < 2 * pairs && ret == 0; i++)
		ret = set_state(g, SET_VRING_ENABLE, i, 1);
	return ret;
}

int guest_move_ring(struct guest *g, uint32_t i, uint32_t size, uint64_t at)
{
	struct msg m = {.state = {.index = i}}, addr = {.addr = {.index = i}};
	struct guest_ring *r = &g->rings[i];
	uint64_t before;

	if (guest_request(g, GET_VRING_BASE, &m, 8, -1) < 0 || recv(g->sock, &m, 12 + 8, MSG_WAITALL) != 12 + 8)
		return -EPIPE;
	r->desc = (void *)(g->mem + at);
	r->avail = (void *)(g->mem + at + size * sizeof(struct vring_desc));
	r->used = (void *)(g->mem + at + 2 * size * sizeof(struct vring_desc));
	addr.addr.desc = (uintptr_t)r->desc;
	addr.addr.avail = (uintptr_t)r->avail;
	addr.addr.used = (uintptr_t)r->used;
	if (set_state(g, SET_VRING_NUM, i, size) < 0 || set_state(g, SET_VRING_BASE, i, 0) < 0 ||
	    guest_request(g, SET_VRING_ADDR, &addr, 40, -1) < 0 || set_u64(g, SET_VRING_CALL, i, r->call) < 0 ||
	    set_u64(g, SET_VRING_KICK, i, r->kick) < 0 || set_state(g, SET_VRING_ENABLE, i, 1) < 0 ||
	    get_u64(g, GET_FEATURES, &before) < 0) // whoever gets an answer knows that all of it is done
		return -EPIPE;
	return 0;
}

int guest_start(struct guest *g, const char *path, bool server, unsigned pairs)
{
	return guest_begin(g, path, server, pairs, false, ALL_TOLD);
}

int guest_start_large(struct guest *g, const char *path)
{
	return guest_begin(g, path, false, 1, true, ALL_TOLD);
}

int guest_start_untold(struct guest *g, const char *path, uint32_t ring)
{
	return guest_begin(g, path, false, 1, false, ring);
}

uint64_t guest_features(struct guest *g)
{
	uint64_t features = 0;

	return get_u64(g, GET_FEATURES, &features) < 0 ? 0 : features;
}

void guest_shrink_memory(struct guest *g)
{
	if (ftruncate(g->mem_fd, 0) < 0)
		abort();
}

void guest_stop(struct guest *g)
{
	unsigned i;

	close(g->sock);
	close(g->mem_fd);
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
