// SPDX-License-Identifier: Apache-2.0
// Comments name what librte_vhost of DPDK 22.11 does with a message that is refused here.
#include "port/vhost_message.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/vhost.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <linux/virtio_ring.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/wake_fd.h"
#include "port/vhost.h"

#define BIT(n) (1ULL << (n))
#define LOG_ALL BIT(VHOST_F_LOG_ALL)
#define MQ BIT(VIRTIO_NET_F_MQ)
#define PROTOCOL_FEATURES BIT(30)
#define FIRST_RINGS 2 // that a guest without MQ has
#define LOG_PAGE 4096 // bytes of guest memory that a bit of the log stands for
#define REGION_BYTES 32
#define MTU_LEAST 68
#define MTU_MOST 65535
#define STATUS_MOST 255

// Neither packed rings nor an IOMMU: the rules below are for split rings at addresses of the front end.
static const uint64_t features_allowed =
	BIT(VIRTIO_NET_F_CSUM) | BIT(VIRTIO_NET_F_GUEST_CSUM) | BIT(VIRTIO_NET_F_MTU) | BIT(VIRTIO_NET_F_GUEST_TSO4) |
	BIT(VIRTIO_NET_F_GUEST_TSO6) | BIT(VIRTIO_NET_F_HOST_TSO4) | BIT(VIRTIO_NET_F_HOST_TSO6) |
	BIT(VIRTIO_NET_F_HOST_ECN) | BIT(VIRTIO_NET_F_MRG_RXBUF) | BIT(VIRTIO_NET_F_CTRL_VQ) |
	BIT(VIRTIO_NET_F_CTRL_RX) | BIT(VIRTIO_NET_F_GUEST_ANNOUNCE) | MQ | LOG_ALL | BIT(VIRTIO_F_ANY_LAYOUT) |
	BIT(VIRTIO_RING_F_INDIRECT_DESC) | BIT(VIRTIO_RING_F_EVENT_IDX) | PROTOCOL_FEATURES | BIT(VIRTIO_F_VERSION_1) |
	BIT(VIRTIO_F_IN_ORDER);

// MQ, LOG_SHMFD, RARP, REPLY_ACK, NET_MTU, STATUS. The others come with messages or descriptors that are refused: the
// channel of requests to the front end (5, and 10 and 11 over it), postcopy (8), configuration, inflight, memory slots.
static const uint64_t protocol_features_allowed = BIT(0) | BIT(1) | BIT(2) | BIT(3) | BIT(4) | BIT(16);

// File systems whose pages the kernel finds by itself. A page of FUSE comes from a process, and a page of a network
// file system from a server: a worker that touches it would wait for them, without an end.
static bool memory_file_system(int64_t type)
{
	return type == TMPFS_MAGIC || type == HUGETLBFS_MAGIC || type == RAMFS_MAGIC || type == EXT4_SUPER_MAGIC ||
	       type == XFS_SUPER_MAGIC || type == BTRFS_SUPER_MAGIC;
}

// Whether the library can map the first bytes of the file. Its file system is looked at first: the kernel answers that
// for a foreign FUSE without asking its process.
static const char *memory_file_check(int fd, uint64_t bytes)
{
	int flags = fcntl(fd, F_GETFL), seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	if (fstatfs(fd, &fs) < 0 || !memory_file_system(fs.f_type))
		return "a descriptor for memory is no file of a file system that the kernel serves by itself";
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return "a descriptor for memory is no file";
	if (flags < 0 || (flags & O_ACCMODE) != O_RDWR || (seals > 0 && (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE))))
		return "a descriptor for memory cannot be written to";
	return (uint64_t)st.st_size < bytes ? "a file of memory is shorter than its region" : NULL;
}

// Whether all of [at, at + len) is in one region: of the front end's addresses, or of the guest's.
static bool region_holds(uint64_t begin, uint64_t size, uint64_t at, uint64_t len)
{
	return at >= begin && len <= size && at - begin <= size - len;
}

static bool regions_hold(const struct vhost_session *s, uint64_t at, uint64_t len)
{
	unsigned i;

	for (i = 0; i < s->n_regions; i++)
		if (region_holds(s->regions[i].user, s->regions[i].size, at, len))
			return true;
	return false;
}

static bool regions_hold_guest(const struct vhost_session *s, uint64_t at, uint64_t len)
{
	unsigned i;

	for (i = 0; i < s->n_regions; i++)
		if (region_holds(s->regions[i].guest, s->regions[i].size, at, len))
			return true;
	return false;
}

// Bytes of the areas of a split ring.
static uint64_t ring_event(const struct vhost_session *s)
{
	return s->features & BIT(VIRTIO_RING_F_EVENT_IDX) ? sizeof(uint16_t) : 0;
}

static uint64_t ring_used_size(const struct vhost_session *s, uint32_t num)
{
	return sizeof(struct vring_used) + num * sizeof(struct vring_used_elem) + ring_event(s);
}

static bool ring_is_inside(const struct vhost_session *s, const struct vhost_session_ring *r)
{
	return regions_hold(s, r->desc, r->num * sizeof(struct vring_desc)) &&
	       regions_hold(s, r->avail, sizeof(struct vring_avail) + r->num * sizeof(uint16_t) + ring_event(s)) &&
	       regions_hold(s, r->used, ring_used_size(s, r->num));
}

bool vhost_session_ring_is_inside(const struct vhost_session *s, unsigned index)
{
	const struct vhost_session_ring *r = &s->rings[index];

	return r->num > 0 && r->has_addr && ring_is_inside(s, r);
}

static bool rings_have_addr(const struct vhost_session *s)
{
	unsigned i;

	for (i = 0; i < VHOST_SESSION_VRINGS; i++)
		if (s->rings[i].has_addr)
			return true;
	return false;
}

// A ring that would get a length or addresses. Rings beyond the first pair exist with MQ alone: at SET_FEATURES without
// it the library frees them.
static const char *ring_check(const struct vhost_session *s, uint32_t index)
{
	if (index >= FIRST_RINGS && !(s->features & MQ))
		return "a guest without several queues has only the first pair of rings";
	return NULL;
}

// The library refuses a change for a device that runs, but not for one whose rings have addresses already.
static const char *features_check(const struct vhost_session *s, const struct vhost_message *m)
{
	if (m->u64 & ~s->offered)
		return "it takes features that were not offered";
	if (((m->u64 ^ s->features) & ~LOG_ALL) && rings_have_addr(s))
		return "it changes the features while rings have addresses";
	return NULL;
}

static const char *protocol_features_check(const struct vhost_session *s, const struct vhost_message *m)
{
	return m->u64 & ~s->protocol_offered ? "it takes protocol features that were not offered" : NULL;
}

// The library forgets each ring's arrays without freeing them, and the log's size and address although it unmaps the
// log: rings whose writes are logged would then write there. GET_VRING_BASE frees the arrays, and QEMU (until 2.4, the
// only one that sends RESET_OWNER) stops each ring with it first.
static const char *reset_check(const struct vhost_session *s, const struct vhost_message *m)
{
	unsigned i;

	for (i = 0; i < VHOST_SESSION_VRINGS; i++)
		if (s->rings[i].num > 0)
			return "it resets a device whose rings are not stopped";
	return s->log_size > 0 ? "it resets a device with a log" : NULL;
}

static bool areas_overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a < b ? a_size > b - a : b_size > a - b;
}

// Of region i alone. The library checks the sum of size and offset, and that mmap() succeeds.
static const char *region_check(const struct vhost_message *m, unsigned i)
{
	uint64_t size = m->memory.regions[i].size, offset = m->memory.regions[i].offset;

	if (size == 0)
		return "a region of memory is empty";
	if (size > UINT64_MAX - m->memory.regions[i].guest || size > UINT64_MAX - m->memory.regions[i].user ||
	    size > UINT64_MAX - offset)
		return "a region of memory wraps around";
	if (size + offset > VHOST_MEMORY_MOST)
		return "the memory is larger than 4 TiB";
	return memory_file_check(m->fds[i], size + offset);
}

static const char *region_check_others(const struct vhost_message *m, unsigned i)
{
	unsigned k;

	for (k = 0; k < i; k++)
		if (areas_overlap(m->memory.regions[i].guest, m->memory.regions[i].size, m->memory.regions[k].guest,
				  m->memory.regions[k].size) ||
		    areas_overlap(m->memory.regions[i].user, m->memory.regions[i].size, m->memory.regions[k].user,
				  m->memory.regions[k].size))
			return "regions of memory overlap";
	return NULL;
}

static const char *regions_check(const struct vhost_message *m)
{
	const char *why = NULL;
	uint64_t total = 0;
	unsigned i;

	if (m->memory.n < 1 || m->memory.n > VHOST_MESSAGE_FDS || m->n_fds != m->memory.n ||
	    m->size != sizeof(uint64_t) + m->memory.n * REGION_BYTES)
		return "its regions of memory are not as many as its bytes and descriptors";
	for (i = 0; i < m->memory.n && why == NULL; i++) {
		why = region_check(m, i);
		if (why == NULL)
			why = region_check_others(m, i);
		total += m->memory.regions[i].size + m->memory.regions[i].offset;
	}
	return why == NULL && total > VHOST_MEMORY_MOST ? "the memory is larger than 4 TiB" : why;
}

static void regions_set(struct vhost_session *s, const struct vhost_message *m)
{
	unsigned i;

	s->n_regions = m->memory.n;
	for (i = 0; i < s->n_regions; i++)
		s->regions[i] = (struct vhost_region){.guest = m->memory.regions[i].guest,
						      .size = m->memory.regions[i].size,
						      .user = m->memory.regions[i].user};
}

// While rings run, QEMU sends a new table when memory is plugged in or out, which keeps the memory of rings. The
// library translates their addresses again. It unmaps the old table before it knows that it can map the new one, and
// leaves the rings' pointers as they are when it cannot; of a ring outside of the new table it keeps some pointers.
static const char *memory_check(const struct vhost_session *s, const struct vhost_message *m)
{
	const char *why = regions_check(m);
	struct vhost_session after = *s;
	unsigned i;

	if (why != NULL)
		return why;
	regions_set(&after, m);
	for (i = 0; i < VHOST_SESSION_VRINGS; i++)
		if (s->rings[i].has_addr && !ring_is_inside(&after, &s->rings[i]))
			return "it takes away memory that a ring lies in";
	return NULL;
}

static uint64_t memory_end(const struct vhost_session *s)
{
	uint64_t end = 0;
	unsigned i;

	for (i = 0; i < s->n_regions; i++)
		if (s->regions[i].guest + s->regions[i].size > end)
			end = s->regions[i].guest + s->regions[i].size;
	return end;
}

// One bit for each page of the guest's addresses, in words of 64 bits. Marks of pages beyond it would be lost, and the
// migrated guest would find old contents there. It needs one 32768th of the highest address, which has 46 bits on most
// machines: more is no log. The library maps `size` bytes at the offset, and then adds the offset to their address once
// more, so it would write behind the mapping; no front end has an offset.
static const char *log_check(const struct vhost_session *s, const struct vhost_message *m)
{
	uint64_t pages = memory_end(s) / LOG_PAGE + (memory_end(s) % LOG_PAGE != 0);

	if (m->log.offset != 0)
		return "its log does not begin at the begin of the file";
	if (m->log.size == 0 || m->log.size % sizeof(uint64_t) != 0 || m->log.size > VHOST_LOG_MOST)
		return "its log is not 8 bytes to 2 GiB long, in words of 8 bytes";
	if (m->log.size < pages / 8 + (pages % 8 != 0))
		return "its log is too short for the guest's memory";
	return memory_file_check(m->fds[0], m->log.size);
}

static const char *event_check(const struct vhost_session *s, const struct vhost_message *m)
{
	return wake_fd_is_eventfd(m->fds[0]) ? NULL : "a descriptor for notifications is no eventfd";
}

// The library does not look at the addresses again: a longer ring could reach out of its region. A length that it
// refuses, because it is no power of two, is the ring's nevertheless, while the ring's arrays have the old one.
static const char *num_check(const struct vhost_session *s, const struct vhost_message *m)
{
	struct vhost_session_ring ring = s->rings[m->state.index];
	uint32_t num = m->state.num;

	if (num < VHOST_SHORTEST_RING || num > VHOST_LONGEST_RING)
		return "the ring has fewer than 32 or more than 1,024 entries";
	if (num & (num - 1))
		return "the ring's length is no power of two";
	ring.num = num;
	if (ring.has_addr && !ring_is_inside(s, &ring))
		return "the ring is longer than its memory";
	return ring_check(s, m->state.index);
}

static const char *addr_check_log(const struct vhost_session *s, const struct vhost_message *m)
{
	uint64_t len = ring_used_size(s, s->rings[m->addr.index].num);

	if (m->addr.flags == 0)
		return NULL;
	if (m->addr.flags != VHOST_VRING_LOGS)
		return "the ring's addresses have flags that the protocol does not have";
	if (!(s->features & LOG_ALL))
		return "the ring is logged, but the feature was not taken";
	if (m->addr.log == 0 || !regions_hold_guest(s, m->addr.log, len))
		return "the log's address of the ring is not in the guest's memory";
	return NULL;
}

static void addr_set(struct vhost_session_ring *r, const struct vhost_message *m)
{
	r->has_addr = true;
	r->desc = m->addr.desc;
	r->used = m->addr.used;
	r->avail = m->addr.avail;
}

// The library translates what it can, and says that all is well. A ring that has no length since GET_VRING_BASE has no
// arrays either, and workers would follow null pointers.
static const char *addr_check(const struct vhost_session *s, const struct vhost_message *m)
{
	struct vhost_session_ring ring = s->rings[m->addr.index];
	const char *why = ring_check(s, m->addr.index);

	if (why != NULL)
		return why;
	if (!s->told_features || s->n_regions == 0 || ring.num == 0)
		return "the ring has addresses before the features, the memory or its length are known";
	if (m->addr.desc % 16 || m->addr.avail % 2 || m->addr.used % 4)
		return "the ring's addresses are not aligned";
	addr_set(&ring, m);
	if (!ring_is_inside(s, &ring))
		return "the ring does not lie in the guest's memory";
	return addr_check_log(s, m);
}

static const char *base_check(const struct vhost_session *s, const struct vhost_message *m)
{
	return m->state.num > UINT16_MAX ? "the ring's first index is larger than 65,535" : NULL;
}

static uint32_t file_ring(const struct vhost_message *m)
{
	return m->u64 & 0xff;
}

// Of KICK, CALL and ERR.
static const char *file_check(const struct vhost_session *s, const struct vhost_message *m)
{
	bool none = (m->u64 & VHOST_MESSAGE_NO_FD) != 0;

	if (m->u64 & ~(uint64_t)(0xff | VHOST_MESSAGE_NO_FD))
		return "the ring does not exist, or unknown flags are set";
	if (m->n_fds != (none ? 0 : 1))
		return "the message does not have the descriptors that belong to it";
	return none ? NULL : event_check(s, m);
}

// At KICK the library translates the addresses of the ring, and be they 0 because they were never told.
static const char *kick_check(const struct vhost_session *s, const struct vhost_message *m)
{
	return s->rings[file_ring(m)].has_addr ? file_check(s, m) : "the ring starts before its addresses are known";
}

// QEMU enables and disables rings before it has told the features, a length or addresses, and old versions of
// net_virtio_user do so without VHOST_USER_F_PROTOCOL_FEATURES. The library notes it, and uses no ring without the
// rest.
static const char *enable_check(const struct vhost_session *s, const struct vhost_message *m)
{
	return m->state.num > 1 ? "the ring is neither enabled nor disabled" : NULL;
}

static const char *mtu_check(const struct vhost_session *s, const struct vhost_message *m)
{
	return m->u64 < MTU_LEAST || m->u64 > MTU_MOST ? "the MTU is not 68 to 65,535" : NULL;
}

static const char *status_check(const struct vhost_session *s, const struct vhost_message *m)
{
	return m->u64 > STATUS_MOST ? "the status is longer than a byte" : NULL;
}

enum payload { NOTHING, WORD, STATE, ADDRESSES, REGIONS, LOG };
enum files { NO_FILE, ONE_FILE, FILES_BY_PAYLOAD };

// The library compares the payload's size with the request in few cases, and reads what it has not got from its stack.
// stopped: the message changes memory, features, or what of a ring a worker follows. For CALL, ERR and ENABLE the
// library's lock of the ring is enough: its bursts look at what these change under that lock alone.
static const struct request {
	const char *(*check)(const struct vhost_session *s, const struct vhost_message *m); // NULL: any
	enum payload payload;
	enum files files;
	bool known, stopped, has_answer;
} requests[VHOST_REQUESTS] = {
	[VHOST_REQUEST_GET_FEATURES] = {.known = true, .has_answer = true},
	[VHOST_REQUEST_SET_FEATURES] = {features_check, WORD, .known = true, .stopped = true},
	[VHOST_REQUEST_SET_OWNER] = {.known = true},
	[VHOST_REQUEST_RESET_OWNER] = {reset_check, .known = true, .stopped = true},
	[VHOST_REQUEST_SET_MEM_TABLE] = {memory_check, REGIONS, FILES_BY_PAYLOAD, .known = true, .stopped = true},
	[VHOST_REQUEST_SET_LOG_BASE] = {log_check, LOG, ONE_FILE, .known = true, .stopped = true, .has_answer = true},
	[VHOST_REQUEST_SET_LOG_FD] = {event_check, NOTHING, ONE_FILE, .known = true, .stopped = true},
	[VHOST_REQUEST_SET_VRING_NUM] = {num_check, STATE, .known = true, .stopped = true},
	[VHOST_REQUEST_SET_VRING_ADDR] = {addr_check, ADDRESSES, .known = true, .stopped = true},
	[VHOST_REQUEST_SET_VRING_BASE] = {base_check, STATE, .known = true, .stopped = true},
	[VHOST_REQUEST_GET_VRING_BASE] = {NULL, STATE, .known = true, .stopped = true, .has_answer = true},
	[VHOST_REQUEST_SET_VRING_KICK] = {kick_check, WORD, FILES_BY_PAYLOAD, .known = true, .stopped = true},
	[VHOST_REQUEST_SET_VRING_CALL] = {file_check, WORD, FILES_BY_PAYLOAD, .known = true},
	[VHOST_REQUEST_SET_VRING_ERR] = {file_check, WORD, FILES_BY_PAYLOAD, .known = true},
	[VHOST_REQUEST_GET_PROTOCOL_FEATURES] = {.known = true, .has_answer = true},
	[VHOST_REQUEST_SET_PROTOCOL_FEATURES] = {protocol_features_check, WORD, .known = true, .stopped = true},
	[VHOST_REQUEST_GET_QUEUE_NUM] = {.known = true, .has_answer = true},
	[VHOST_REQUEST_SET_VRING_ENABLE] = {enable_check, STATE, .known = true},
	[VHOST_REQUEST_SEND_RARP] = {NULL, WORD, .known = true},
	[VHOST_REQUEST_NET_SET_MTU] = {mtu_check, WORD, .known = true},
	[VHOST_REQUEST_SET_STATUS] = {status_check, WORD, .known = true},
	[VHOST_REQUEST_GET_STATUS] = {.known = true, .has_answer = true},
};

static const struct request *request_find(const struct vhost_message *m)
{
	return m->request < VHOST_REQUESTS && requests[m->request].known ? &requests[m->request] : NULL;
}

static bool request_has_size(const struct request *r, uint32_t size)
{
	static const uint32_t sizes[] = {[NOTHING] = 0, [WORD] = 8, [STATE] = 8, [ADDRESSES] = 40, [LOG] = 16};

	if (r->payload == REGIONS)
		return size > sizeof(uint64_t) && size <= VHOST_MESSAGE_PAYLOAD &&
		       size % REGION_BYTES == sizeof(uint64_t);
	return size == sizes[r->payload];
}

static const char *header_check(const struct vhost_message *m)
{
	const struct request *r = request_find(m);

	if ((m->flags & ~VHOST_MESSAGE_NEED_REPLY) != VHOST_MESSAGE_VERSION)
		return "the message is of another version of the protocol, or has unknown flags";
	if (r == NULL)
		return "the message belongs to no protocol feature that was offered";
	return request_has_size(r, m->size) ? NULL : "the message does not have the length that belongs to it";
}

int vhost_message_check_header(const struct vhost_message *m, const char **why)
{
	const char *wrong = header_check(m);

	if (wrong != NULL)
		*why = wrong;
	return wrong != NULL ? -EPROTO : 0;
}

static const char *session_check(const struct vhost_session *s, const struct vhost_message *m)
{
	const char *why = header_check(m);
	const struct request *r = request_find(m);

	if (why != NULL)
		return why;
	if (m->n_fds > VHOST_MESSAGE_FDS ||
	    (r->files != FILES_BY_PAYLOAD && m->n_fds != (r->files == ONE_FILE ? 1 : 0)))
		return "the message does not have the descriptors that belong to it";
	if ((r->payload == STATE || r->payload == ADDRESSES) && m->state.index >= VHOST_SESSION_VRINGS)
		return "the ring does not exist, or unknown flags are set";
	return r->check != NULL ? r->check(s, m) : NULL;
}

enum vhost_verdict vhost_session_check(const struct vhost_session *s, const struct vhost_message *m, const char **why)
{
	const char *wrong = session_check(s, m);

	if (wrong == NULL)
		return request_find(m)->stopped ? VHOST_PASS_STOPPED : VHOST_PASS;
	*why = wrong;
	return VHOST_REFUSE;
}

bool vhost_message_has_answer(const struct vhost_message *m)
{
	const struct request *r = request_find(m);

	return r != NULL && r->has_answer;
}

void vhost_session_begin(struct vhost_session *s)
{
	memset(s, 0, sizeof(*s));
}

static uint64_t answer_word(const struct vhost_message *answer, uint64_t allowed)
{
	return answer != NULL && answer->size == sizeof(answer->u64) ? answer->u64 & allowed : 0;
}

// Without MQ, the library forgets all rings but the first pair.
static void features_set(struct vhost_session *s, uint64_t features)
{
	s->told_features = true;
	s->features = features;
	if (!(features & MQ))
		memset(&s->rings[FIRST_RINGS], 0, (VHOST_SESSION_VRINGS - FIRST_RINGS) * sizeof(s->rings[0]));
}

static void session_reset(struct vhost_session *s)
{
	uint64_t offered = s->offered, protocol_offered = s->protocol_offered;

	vhost_session_begin(s);
	s->offered = offered;
	s->protocol_offered = protocol_offered;
}

// A ring stays enabled or disabled when it is stopped.
static void ring_stop(struct vhost_session_ring *r)
{
	*r = (struct vhost_session_ring){.enabled = r->enabled};
}

static void session_accept_ring(struct vhost_session *s, const struct vhost_message *m)
{
	struct vhost_session_ring *r = &s->rings[m->state.index % VHOST_SESSION_VRINGS];

	if (m->request == VHOST_REQUEST_SET_VRING_NUM)
		r->num = m->state.num;
	else if (m->request == VHOST_REQUEST_SET_VRING_ADDR)
		addr_set(r, m);
	else if (m->request == VHOST_REQUEST_GET_VRING_BASE)
		ring_stop(r);
	else if (m->request == VHOST_REQUEST_SET_VRING_ENABLE)
		r->enabled = m->state.num != 0;
	else if (m->request == VHOST_REQUEST_SET_VRING_KICK && !(s->features & PROTOCOL_FEATURES))
		s->rings[file_ring(m)].enabled = true;
}

void vhost_session_accepted(struct vhost_session *s, const struct vhost_message *m, const struct vhost_message *answer)
{
	switch (m->request) {
	case VHOST_REQUEST_GET_FEATURES:
		s->offered = answer_word(answer, features_allowed);
		break;
	case VHOST_REQUEST_SET_FEATURES:
		features_set(s, m->u64);
		break;
	case VHOST_REQUEST_SET_OWNER:
		s->owned = true;
		break;
	case VHOST_REQUEST_RESET_OWNER:
		session_reset(s);
		break;
	case VHOST_REQUEST_SET_MEM_TABLE:
		regions_set(s, m);
		break;
	case VHOST_REQUEST_SET_LOG_BASE:
		s->log_size = m->log.size;
		break;
	case VHOST_REQUEST_GET_PROTOCOL_FEATURES:
		s->protocol_offered = answer_word(answer, protocol_features_allowed);
		break;
	case VHOST_REQUEST_SET_PROTOCOL_FEATURES:
		s->protocol_features = m->u64;
		break;
	default:
		session_accept_ring(s, m);
	}
}

void vhost_message_mask_answer(const struct vhost_message *m, struct vhost_message *answer)
{
	if (answer->size != sizeof(answer->u64))
		return;
	if (m->request == VHOST_REQUEST_GET_FEATURES)
		answer->u64 &= features_allowed;
	else if (m->request == VHOST_REQUEST_GET_PROTOCOL_FEATURES)
		answer->u64 &= protocol_features_allowed;
	else if (m->request == VHOST_REQUEST_GET_QUEUE_NUM && answer->u64 > VHOST_SESSION_VRINGS / 2)
		answer->u64 = VHOST_SESSION_VRINGS / 2;
}
