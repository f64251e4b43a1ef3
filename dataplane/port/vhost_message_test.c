// SPDX-License-Identifier: Apache-2.0
// What ordinary front ends say is accepted message by message, and each rule refuses what breaks it alone.
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "port/vhost_message.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MIB (1ULL << 20)
#define GIB (1ULL << 30)

// The front end's addresses of the two regions follow each other, the guest's do not.
#define USER 0x7f0000000000
#define LOW MIB
#define HIGH (2 * MIB)
#define HIGH_GUEST (4 * GIB)
#define ENTRIES 256

#define MQ (1ULL << 22)
#define LOG_ALL (1ULL << 26)
#define EVENT_IDX (1ULL << 29)
#define PROTOCOL (1ULL << 30)
#define PACKED (1ULL << 34)
#define OFFERED (UINT64_MAX & ~(1ULL << 0)) // by the library
#define TAKEN (1ULL << 32 | PROTOCOL | EVENT_IDX | MQ | 1ULL << 15)
#define PROTOCOL_TAKEN (1 | 1 << 1 | 1 << 3)

enum file { NO_FILE, EVENT, MEMORY, SHORT, READ_ONLY, SEALED, DIRECTORY, PIPE, PROC, FILES };

static int files[FILES];
static struct vhost_session s;

// A message and its descriptors: one of this kind, or n.
struct said {
	struct vhost_message m;
	enum file file;
	unsigned n;
	enum vhost_verdict verdict;
};

#define HEAD(name, bytes) .request = VHOST_REQUEST_##name, .flags = VHOST_MESSAGE_VERSION, .size = (bytes)
#define M_NONE(name)          \
	{                     \
		HEAD(name, 0) \
	}
#define M_WORD(name, word)                   \
	{                                    \
		HEAD(name, 8), .u64 = (word) \
	}
#define M_STATE(name, ring, number)                         \
	{                                                   \
		HEAD(name, 8), .state = {(ring), (number) } \
	}
#define M_ADDR(ring, f, d, u, a, l)                                                  \
	{                                                                            \
		HEAD(SET_VRING_ADDR, 40), .addr = {(ring), (f), (d), (u), (a), (l) } \
	}
#define M_LOG(bytes, at)                                        \
	{                                                       \
		HEAD(SET_LOG_BASE, 16), .log = {(bytes), (at) } \
	}
#define M_MEMORY(count, ...)                                                                  \
	{                                                                                     \
		HEAD(SET_MEM_TABLE, 8 + 32 * (count)), .memory = {(count), 0, {__VA_ARGS__} } \
	}
#define PASS(message)                               \
	{                                           \
		.m = message, .verdict = VHOST_PASS \
	}
#define PASS_FILE(message, kind)                                            \
	{                                                                   \
		.m = message, .file = (kind), .n = 1, .verdict = VHOST_PASS \
	}
#define STOP(message)                                       \
	{                                                   \
		.m = message, .verdict = VHOST_PASS_STOPPED \
	}
#define STOP_FILE(message, kind, count)                                                   \
	{                                                                                 \
		.m = message, .file = (kind), .n = (count), .verdict = VHOST_PASS_STOPPED \
	}

#define REGION_LOW              \
	{                       \
		0, LOW, USER, 0 \
	}
#define REGION_HIGH                               \
	{                                         \
		HIGH_GUEST, HIGH, USER + LOW, LOW \
	}
#define RING_AT(ring) (USER + 0x4000ULL * (ring))
#define ADDR(ring) M_ADDR(ring, 0, RING_AT(ring), RING_AT(ring) + 0x2000, RING_AT(ring) + 0x1000, 0)
#define ADDR_LOG(ring)                                                                                \
	M_ADDR(ring, VHOST_VRING_LOGS, RING_AT(ring), RING_AT(ring) + 0x2000, RING_AT(ring) + 0x1000, \
	       RING_AT(ring) + 0x2000 - USER)
#define MEMORY_2 STOP_FILE(M_MEMORY(2, REGION_LOW, REGION_HIGH), MEMORY, 2)
#define KICK(ring) STOP_FILE(M_WORD(SET_VRING_KICK, ring), EVENT, 1)
#define CALL(ring) PASS_FILE(M_WORD(SET_VRING_CALL, ring), EVENT)
#define ENABLE(ring, on) PASS(M_STATE(SET_VRING_ENABLE, ring, on))
#define STOP_RING(ring) STOP(M_STATE(GET_VRING_BASE, ring, 0))
#define SET_UP(ring) \
	STOP(M_STATE(SET_VRING_NUM, ring, ENTRIES)), STOP(M_STATE(SET_VRING_BASE, ring, 0)), STOP(ADDR(ring))

static struct vhost_message with_files(const struct said *said)
{
	struct vhost_message m = said->m;
	unsigned i;

	m.n_fds = said->n;
	for (i = 0; i < m.n_fds && i < VHOST_MESSAGE_FDS; i++)
		m.fds[i] = files[said->file];
	return m;
}

static struct vhost_message answer_to(const struct vhost_message *m)
{
	struct vhost_message answer = {.request = m->request, .flags = 5, .size = 8};

	if (m->request == VHOST_REQUEST_GET_QUEUE_NUM)
		answer.u64 = 128;
	else if (m->request == VHOST_REQUEST_SET_LOG_BASE)
		answer.size = 0;
	else
		answer.u64 = m->request == VHOST_REQUEST_GET_FEATURES ? OFFERED : UINT64_MAX;
	return answer;
}

static void accept_one(const struct said *said)
{
	struct vhost_message m = with_files(said), answer = answer_to(&m);
	enum vhost_verdict verdict;
	const char *why = "";

	assert_int_equal(vhost_message_check_header(&m, &why), 0);
	verdict = vhost_session_check(&s, &m, &why);
	if (verdict != said->verdict)
		fail_msg("message %u: verdict %u: %s", m.request, verdict, why);
	vhost_session_accepted(&s, &m, vhost_message_has_answer(&m) ? &answer : NULL);
}

static void accept_all(const struct said *said, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		accept_one(&said[i]);
}

static void qemu(void **state)
{
	static const struct said starts[] = {
		PASS(M_NONE(GET_FEATURES)),
		PASS(M_NONE(GET_PROTOCOL_FEATURES)),
		STOP(M_WORD(SET_PROTOCOL_FEATURES, PROTOCOL_TAKEN)),
		PASS(M_NONE(GET_QUEUE_NUM)),
		PASS(M_NONE(SET_OWNER)),
		PASS(M_NONE(GET_FEATURES)),
		CALL(0),
		CALL(1),
		CALL(2),
		CALL(3),
		ENABLE(0, 1), // the guest negotiates
		ENABLE(1, 1),
		ENABLE(2, 0),
		ENABLE(3, 0),
		PASS(M_WORD(NET_SET_MTU, 1500)),
		STOP(M_WORD(SET_FEATURES, TAKEN)), // it is ready: each pair is a device
		MEMORY_2,
		SET_UP(0),
		KICK(0),
		CALL(0),
		SET_UP(1),
		KICK(1),
		CALL(1),
		STOP(M_WORD(SET_FEATURES, TAKEN)),
		MEMORY_2,
		SET_UP(2),
		STOP(M_WORD(SET_VRING_KICK, 2 | VHOST_MESSAGE_NO_FD)),
		PASS(M_WORD(SET_VRING_CALL, 2 | VHOST_MESSAGE_NO_FD)),
		PASS_FILE(M_WORD(SET_VRING_ERR, 2), EVENT),
		ENABLE(2, 1), // ethtool -L
		CALL(0),      // a masked interrupt
	};
	static const struct said migrates[] = {
		STOP_FILE(M_LOG(HIGH_GUEST / 32768 + 64, 0), MEMORY, 1),
		STOP(M_WORD(SET_FEATURES, TAKEN | LOG_ALL)),
		STOP(ADDR_LOG(0)),
		STOP(ADDR_LOG(1)),
		STOP(M_WORD(SET_FEATURES, TAKEN)), // or goes on here
		STOP(ADDR(0)),
		STOP(ADDR(1)),
		PASS(M_WORD(SEND_RARP, 0x563412005452)),
	};
	static const struct said restarts[] = {
		STOP_FILE(M_MEMORY(3, REGION_LOW, REGION_HIGH, {8 * GIB, MIB, USER - MIB, 0}), MEMORY, 3), // plugged in
		MEMORY_2,                                                                                  // and out
		STOP_RING(0),
		STOP_RING(1),
		STOP_RING(2),
		ENABLE(2, 0),
		STOP(M_WORD(SET_FEATURES, TAKEN & ~MQ)), // the guest has another driver
		STOP_FILE(M_MEMORY(1, REGION_LOW), MEMORY, 1),
		SET_UP(0),
		KICK(0),
		CALL(0),
	};

	vhost_session_begin(&s);
	accept_all(starts, COUNT(starts));
	assert_true(s.owned);
	assert_true(s.rings[2].enabled);
	assert_true(vhost_session_ring_is_inside(&s, 2));
	assert_false(vhost_session_ring_is_inside(&s, 3));
	accept_all(migrates, COUNT(migrates));
	accept_all(restarts, COUNT(restarts));
	assert_true(vhost_session_ring_is_inside(&s, 0));
	assert_false(vhost_session_ring_is_inside(&s, 1));
}

// QEMU 2.4 resets the device when it stops.
static void old_qemu(void **state)
{
	static const struct said stops[] = {STOP_RING(0), STOP(M_NONE(RESET_OWNER)),
					    STOP(M_WORD(SET_FEATURES, TAKEN & ~PROTOCOL))};
	static const struct said begins[] = {PASS(M_NONE(GET_FEATURES)), STOP(M_WORD(SET_FEATURES, TAKEN & ~PROTOCOL)),
					     MEMORY_2, SET_UP(0), KICK(0)};

	vhost_session_begin(&s);
	accept_all(begins, COUNT(begins));
	assert_true(s.rings[0].enabled);
	accept_all(stops, COUNT(stops));
	assert_int_equal(s.n_regions, 0);
	accept_all(begins, COUNT(begins));
}

static void net_virtio_user(void **state)
{
	static const struct said said[] = {
		PASS(M_NONE(SET_OWNER)),
		PASS(M_NONE(GET_FEATURES)),
		PASS(M_NONE(GET_PROTOCOL_FEATURES)),
		STOP(M_WORD(SET_PROTOCOL_FEATURES, 1 | 1 << 3 | 1 << 16)),
		PASS(M_NONE(GET_QUEUE_NUM)),
		PASS(M_WORD(SET_STATUS, 0)),
		PASS(M_NONE(GET_STATUS)),
		CALL(0),
		CALL(1),
		STOP(M_WORD(SET_FEATURES, TAKEN)),
		PASS(M_WORD(SET_STATUS, 11)),
		MEMORY_2,
		SET_UP(0),
		KICK(0),
		SET_UP(1),
		KICK(1),
		ENABLE(0, 1),
		ENABLE(1, 1),
		PASS(M_WORD(SET_STATUS, 15)),
		ENABLE(0, 0), // the port stops and starts; before 17.11 without GET_VRING_BASE
		ENABLE(1, 0),
		MEMORY_2,
		SET_UP(0),
		KICK(0),
		STOP_RING(1),
		SET_UP(1),
		KICK(1),
		ENABLE(0, 1),
	};

	vhost_session_begin(&s);
	accept_all(said, COUNT(said));
}

static void cloud_hypervisor(void **state)
{
	static const struct said said[] = {
		PASS(M_NONE(SET_OWNER)),
		PASS(M_NONE(GET_FEATURES)),
		PASS(M_NONE(GET_PROTOCOL_FEATURES)),
		STOP(M_WORD(SET_PROTOCOL_FEATURES, PROTOCOL_TAKEN)),
		STOP(M_WORD(SET_FEATURES, TAKEN)),
		MEMORY_2,
		STOP(M_STATE(SET_VRING_NUM, 0, ENTRIES)),
		STOP(ADDR(0)),
		STOP(M_STATE(SET_VRING_BASE, 0, 65535)),
		CALL(0),
		KICK(0),
		ENABLE(0, 1),
		ENABLE(0, 0),
		STOP_RING(0),
	};

	vhost_session_begin(&s);
	accept_all(said, COUNT(said));
}

// A front end may ask for an acknowledgement of each message.
static void need_reply(void **state)
{
	struct vhost_message m = M_STATE(SET_VRING_BASE, 0, 0);
	const char *why;

	vhost_session_begin(&s);
	m.flags |= VHOST_MESSAGE_NEED_REPLY;
	assert_int_equal(vhost_session_check(&s, &m, &why), VHOST_PASS_STOPPED);
	assert_false(vhost_message_has_answer(&m));
}

// The beginning of a connection, of which a refused message follows the first ones.
static const struct said beginning[] = {PASS(M_NONE(GET_FEATURES)),
					PASS(M_NONE(GET_PROTOCOL_FEATURES)),
					STOP(M_WORD(SET_FEATURES, TAKEN | LOG_ALL)),
					MEMORY_2,
					STOP(M_STATE(SET_VRING_NUM, 0, ENTRIES)),
					STOP(ADDR(0)),
					KICK(0),
					STOP_FILE(M_LOG(HIGH_GUEST / 32768 + 64, 0), MEMORY, 1),
					STOP_RING(0)};

enum {
	FRESH = 0,
	ASKED = 2,
	FEATURES = 3,
	MAPPED = 4,
	LENGTH = 5,
	ADDRESSED = 6,
	STARTED = 7,
	LOGGED = 8,
	STOPPED = 9
};

struct refusal {
	unsigned after; // messages of the beginning
	const char *why;
	struct said said;
};

#define REFUSED(message)     \
	{                    \
		.m = message \
	}
#define REFUSED_FILE(message, kind, count)                 \
	{                                                  \
		.m = message, .file = (kind), .n = (count) \
	}
#define ODD_RING(d, u, a) REFUSED(M_ADDR(0, 0, d, u, a, 0))
#define ONE_REGION(guest, size, user, offset, kind) \
	REFUSED_FILE(M_MEMORY(1, {(guest), (size), (user), (offset)}), kind, 1)
#define TWO_REGIONS(guest, size, user, offset) \
	REFUSED_FILE(M_MEMORY(2, REGION_LOW, {(guest), (size), (user), (offset)}), MEMORY, 2)

#define NOT_OFFERED "the message belongs to no protocol feature that was offered"
#define VERSION "the message is of another version of the protocol, or has unknown flags"
#define LENGTH_WRONG "the message does not have the length that belongs to it"
#define DESCRIPTORS "the message does not have the descriptors that belong to it"
#define NO_RING "the ring does not exist, or unknown flags are set"
#define OUTSIDE "the ring does not lie in the guest's memory"
#define ALIGNED "the ring's addresses are not aligned"
#define TOO_EARLY "the ring has addresses before the features, the memory or its length are known"
#define COUNTS "its regions of memory are not as many as its bytes and descriptors"
#define WRAPS "a region of memory wraps around"
#define OVERLAP "regions of memory overlap"
#define SHORT_FILE "a file of memory is shorter than its region"
#define NOT_WRITABLE "a descriptor for memory cannot be written to"
#define NO_MEMORY "a descriptor for memory is no file of a file system that the kernel serves by itself"
#define NO_EVENT "a descriptor for notifications is no eventfd"
#define LENGTHS "the ring has fewer than 32 or more than 1,024 entries"
#define ONE_PAIR "a guest without several queues has only the first pair of rings"
#define LOG_LENGTH "its log is not 8 bytes to 2 GiB long, in words of 8 bytes"
#define LOG_PLACE "the log's address of the ring is not in the guest's memory"
#define LARGE "the memory is larger than 4 TiB"

static const struct refusal refusals[] = {
	{STARTED, VERSION, {.m = {.request = 1, .flags = 0}}},
	{STARTED, VERSION, {.m = {.request = 1, .flags = 2}}},
	{STARTED, VERSION, {.m = {.request = 1, .flags = 1 | VHOST_MESSAGE_REPLY}}},
	{STARTED, VERSION, {.m = {.request = 1, .flags = 1 | 1u << 4}}},
	{STARTED, VERSION, {.m = {.request = 1, .flags = 1 | 1u << 31}}},
	{STARTED, NOT_OFFERED, {.m = {.request = 0, .flags = 1}}},
	{STARTED, NOT_OFFERED, {.m = {.request = 21, .flags = 1}, .file = EVENT, .n = 1}}, // SET_SLAVE_REQ_FD
	{STARTED, NOT_OFFERED, {.m = {.request = 22, .flags = 1, .size = 32}}},            // IOTLB_MSG
	{STARTED, NOT_OFFERED, {.m = {.request = 24, .flags = 1, .size = 12}}},            // GET_CONFIG
	{STARTED, NOT_OFFERED, {.m = {.request = 28, .flags = 1}}},                        // POSTCOPY_ADVISE
	{STARTED, NOT_OFFERED, {.m = {.request = 31, .flags = 1, .size = 24}}},            // GET_INFLIGHT_FD
	{STARTED, NOT_OFFERED, {.m = {.request = 32, .flags = 1, .size = 24}, .file = MEMORY, .n = 1}},
	{STARTED, NOT_OFFERED, {.m = {.request = 37, .flags = 1, .size = 40}, .file = MEMORY, .n = 1}}, // ADD_MEM_REG
	{STARTED, NOT_OFFERED, {.m = {.request = VHOST_REQUESTS, .flags = 1}}},
	{STARTED, NOT_OFFERED, {.m = {.request = UINT32_MAX, .flags = 1}}},
	{STARTED, LENGTH_WRONG, {.m = {HEAD(GET_FEATURES, 8)}}},
	{STARTED, LENGTH_WRONG, {.m = {HEAD(SET_FEATURES, 4)}}},
	{STARTED, LENGTH_WRONG, {.m = {HEAD(SET_VRING_NUM, 40)}}},
	{STARTED, LENGTH_WRONG, {.m = {HEAD(SET_VRING_ADDR, 8)}}},
	{STARTED, LENGTH_WRONG, {.m = {HEAD(SET_LOG_BASE, 8)}}},
	{STARTED, LENGTH_WRONG, {.m = {HEAD(SET_MEM_TABLE, 0)}}},
	{STARTED, LENGTH_WRONG, {.m = {HEAD(SET_MEM_TABLE, 8)}}},
	{STARTED, LENGTH_WRONG, {.m = {HEAD(SET_MEM_TABLE, 48)}}},
	{STARTED, LENGTH_WRONG, {.m = {HEAD(SET_MEM_TABLE, 8 + 9 * 32)}}},
	{STARTED, LENGTH_WRONG, {.m = {HEAD(SET_MEM_TABLE, UINT32_MAX)}}},
	{STARTED, DESCRIPTORS, REFUSED_FILE(M_NONE(GET_FEATURES), EVENT, 1)},
	{STARTED, DESCRIPTORS, REFUSED_FILE(M_STATE(SET_VRING_BASE, 0, 0), EVENT, 1)},
	{STARTED, DESCRIPTORS, REFUSED(M_LOG(MIB, 0))},
	{STARTED, DESCRIPTORS, REFUSED_FILE(M_LOG(MIB, 0), MEMORY, 2)},
	{STARTED, DESCRIPTORS, REFUSED(M_NONE(SET_LOG_FD))},
	{STARTED, DESCRIPTORS, REFUSED(M_WORD(SET_VRING_CALL, 0))},
	{STARTED, DESCRIPTORS, REFUSED_FILE(M_WORD(SET_VRING_CALL, 0), EVENT, 2)},
	{STARTED, DESCRIPTORS, REFUSED_FILE(M_WORD(SET_VRING_CALL, VHOST_MESSAGE_NO_FD), EVENT, 1)},
	{STARTED, DESCRIPTORS, REFUSED_FILE(M_MEMORY(1, REGION_LOW), MEMORY, 9)},
	{STARTED, NO_RING, REFUSED(M_STATE(SET_VRING_BASE, VHOST_SESSION_VRINGS, 0))},
	{STARTED, NO_RING, REFUSED(M_STATE(GET_VRING_BASE, UINT32_MAX, 0))},
	{STARTED, NO_RING, REFUSED(ADDR(VHOST_SESSION_VRINGS))},
	{STARTED, NO_RING, REFUSED_FILE(M_WORD(SET_VRING_KICK, 0x200), EVENT, 1)},
	{STARTED, NO_RING, REFUSED_FILE(M_WORD(SET_VRING_CALL, 1ULL << 63), EVENT, 1)},
	{FRESH, "it takes features that were not offered", REFUSED(M_WORD(SET_FEATURES, TAKEN))},
	{ASKED, "it takes features that were not offered", REFUSED(M_WORD(SET_FEATURES, TAKEN | PACKED))},
	{FRESH, "it takes protocol features that were not offered", REFUSED(M_WORD(SET_PROTOCOL_FEATURES, 1))},
	{ASKED, "it takes protocol features that were not offered", REFUSED(M_WORD(SET_PROTOCOL_FEATURES, 1 << 5))},
	{STARTED, "it changes the features while rings have addresses",
	 REFUSED(M_WORD(SET_FEATURES, TAKEN & ~EVENT_IDX))},
	{LENGTH, "it resets a device whose rings are not stopped", REFUSED(M_NONE(RESET_OWNER))},
	{STOPPED, "it resets a device with a log", REFUSED(M_NONE(RESET_OWNER))},
	{STARTED, COUNTS, REFUSED_FILE(M_MEMORY(2, REGION_LOW, REGION_HIGH), MEMORY, 1)},
	{STARTED, COUNTS, {.m = {HEAD(SET_MEM_TABLE, 40), .memory = {2, 0, {REGION_LOW}}}, .file = MEMORY, .n = 2}},
	{STARTED, COUNTS, {.m = {HEAD(SET_MEM_TABLE, 40), .memory = {0, 0, {REGION_LOW}}}}},
	{STARTED, COUNTS, {.m = {HEAD(SET_MEM_TABLE, 40), .memory = {UINT32_MAX, 0, {REGION_LOW}}}}},
	{STARTED, "a region of memory is empty", ONE_REGION(0, 0, USER, 0, MEMORY)},
	{STARTED, WRAPS, ONE_REGION(UINT64_MAX - MIB + 1, MIB, USER, 0, MEMORY)},
	{STARTED, WRAPS, ONE_REGION(0, MIB, UINT64_MAX - 4095, 0, MEMORY)},
	{STARTED, WRAPS, ONE_REGION(0, MIB, USER, UINT64_MAX - 4095, MEMORY)},
	{STARTED, OVERLAP, TWO_REGIONS(LOW - 1, HIGH, USER + LOW, LOW)},
	{STARTED, OVERLAP, TWO_REGIONS(0, 4096, USER + LOW, LOW)},
	{STARTED, OVERLAP, TWO_REGIONS(HIGH_GUEST, HIGH, USER + LOW - 1, LOW)},
	{STARTED, OVERLAP, TWO_REGIONS(HIGH_GUEST, HIGH, USER - HIGH + 1, LOW)},
	{STARTED, SHORT_FILE, ONE_REGION(0, LOW, USER, 0, SHORT)},
	{STARTED, SHORT_FILE, ONE_REGION(0, LOW, USER, LOW + HIGH - LOW + 1, MEMORY)},
	{STARTED, LARGE, ONE_REGION(0, VHOST_MEMORY_MOST, USER, 1, MEMORY)},
	{STARTED, NOT_WRITABLE, ONE_REGION(0, LOW, USER, 0, READ_ONLY)},
	{STARTED, NOT_WRITABLE, ONE_REGION(0, LOW, USER, 0, SEALED)},
	{STARTED, "a descriptor for memory is no file", ONE_REGION(0, LOW, USER, 0, DIRECTORY)},
	{STARTED, NO_MEMORY, ONE_REGION(0, LOW, USER, 0, PIPE)},
	{STARTED, NO_MEMORY, ONE_REGION(0, LOW, USER, 0, EVENT)},
	{STARTED, NO_MEMORY, ONE_REGION(0, LOW, USER, 0, PROC)},
	{ADDRESSED, "it takes away memory that a ring lies in", ONE_REGION(HIGH_GUEST, HIGH, USER + LOW, LOW, MEMORY)},
	{ADDRESSED, "it takes away memory that a ring lies in", ONE_REGION(0, 0x2000, USER, 0, MEMORY)},
	{STARTED, "its log does not begin at the begin of the file", REFUSED_FILE(M_LOG(MIB, 4096), MEMORY, 1)},
	{FRESH, LOG_LENGTH, REFUSED_FILE(M_LOG(0, 0), MEMORY, 1)},
	{FRESH, LOG_LENGTH, REFUSED_FILE(M_LOG(4095, 0), MEMORY, 1)},
	{FRESH, LOG_LENGTH, REFUSED_FILE(M_LOG(VHOST_LOG_MOST + 8, 0), MEMORY, 1)},
	{FRESH, SHORT_FILE, REFUSED_FILE(M_LOG(8 * MIB, 0), MEMORY, 1)},
	{FRESH, NOT_WRITABLE, REFUSED_FILE(M_LOG(4096, 0), READ_ONLY, 1)},
	{STARTED, "its log is too short for the guest's memory",
	 REFUSED_FILE(M_LOG(HIGH_GUEST / 32768 + 56, 0), MEMORY, 1)},
	{STARTED, NO_EVENT, REFUSED_FILE(M_NONE(SET_LOG_FD), PIPE, 1)},
	{STARTED, NO_EVENT, REFUSED_FILE(M_WORD(SET_VRING_CALL, 0), PIPE, 1)},
	{STARTED, NO_EVENT, REFUSED_FILE(M_WORD(SET_VRING_KICK, 0), MEMORY, 1)},
	{STARTED, NO_EVENT, REFUSED_FILE(M_WORD(SET_VRING_ERR, 0), PIPE, 1)},
	{MAPPED, LENGTHS, REFUSED(M_STATE(SET_VRING_NUM, 0, 0))},
	{MAPPED, LENGTHS, REFUSED(M_STATE(SET_VRING_NUM, 0, 16))},
	{MAPPED, LENGTHS, REFUSED(M_STATE(SET_VRING_NUM, 0, 2048))},
	{MAPPED, LENGTHS, REFUSED(M_STATE(SET_VRING_NUM, 0, 65536 + 256))},
	{MAPPED, "the ring's length is no power of two", REFUSED(M_STATE(SET_VRING_NUM, 0, 257))},
	{FRESH, ONE_PAIR, REFUSED(M_STATE(SET_VRING_NUM, 2, ENTRIES))},
	{FRESH, ONE_PAIR, REFUSED(ADDR(2))},
	{MAPPED, TOO_EARLY, REFUSED(ADDR(0))},
	{LENGTH, TOO_EARLY, REFUSED(ADDR(1))},
	{STOPPED, TOO_EARLY, REFUSED(ADDR(0))},
	{LENGTH, ALIGNED, ODD_RING(USER + 8, USER + 0x2000, USER + 0x1000)},
	{LENGTH, ALIGNED, ODD_RING(USER, USER + 0x2002, USER + 0x1000)},
	{LENGTH, ALIGNED, ODD_RING(USER, USER + 0x2000, USER + 0x1001)},
	{LENGTH, OUTSIDE, ODD_RING(0, USER + 0x2000, USER + 0x1000)},
	{LENGTH, OUTSIDE, ODD_RING(USER - 16, USER + 0x2000, USER + 0x1000)},
	{LENGTH, OUTSIDE, ODD_RING(USER + LOW + HIGH - 4080, USER + 0x2000, USER + 0x1000)},
	{LENGTH, OUTSIDE, ODD_RING(USER, USER + LOW - 64, USER + 0x1000)}, // in two regions
	{LENGTH, OUTSIDE, ODD_RING(USER, USER + LOW + HIGH - 2052, USER + 0x1000)},
	{LENGTH, OUTSIDE, ODD_RING(USER, USER + 0x2000, USER + LOW + HIGH - 516)}, // the event index
	{LENGTH, OUTSIDE, ODD_RING(USER, USER + 0x2000, UINT64_MAX - 1)},
	{LENGTH, OUTSIDE, ODD_RING(UINT64_MAX - 4095, USER + 0x2000, USER + 0x1000)},
	{LENGTH, "the ring's addresses have flags that the protocol does not have",
	 REFUSED(M_ADDR(0, 2, USER, USER + 0x2000, USER + 0x1000, 0))},
	{LENGTH, LOG_PLACE, REFUSED(M_ADDR(0, 1, USER, USER + 0x2000, USER + 0x1000, 0))},
	{LENGTH, LOG_PLACE, REFUSED(M_ADDR(0, 1, USER, USER + 0x2000, USER + 0x1000, LOW - 2053))},
	{LENGTH, LOG_PLACE, REFUSED(M_ADDR(0, 1, USER, USER + 0x2000, USER + 0x1000, UINT64_MAX - 4))},
	{STARTED, "the ring's first index is larger than 65,535", REFUSED(M_STATE(SET_VRING_BASE, 0, 65536))},
	{LENGTH, "the ring starts before its addresses are known", REFUSED_FILE(M_WORD(SET_VRING_KICK, 0), EVENT, 1)},
	{STOPPED, "the ring starts before its addresses are known", REFUSED_FILE(M_WORD(SET_VRING_KICK, 0), EVENT, 1)},
	{STARTED, "the ring is neither enabled nor disabled", REFUSED(M_STATE(SET_VRING_ENABLE, 0, 2))},
	{STARTED, "the MTU is not 68 to 65,535", REFUSED(M_WORD(NET_SET_MTU, 67))},
	{STARTED, "the MTU is not 68 to 65,535", REFUSED(M_WORD(NET_SET_MTU, 1ULL << 32 | 1500))},
	{STARTED, "the status is longer than a byte", REFUSED(M_WORD(SET_STATUS, 256))},
};

static void refuse_one(const struct said *said, const char *wanted)
{
	struct vhost_message m = with_files(said);
	struct vhost_session before = s;
	const char *why = "";

	assert_int_equal(vhost_session_check(&s, &m, &why), VHOST_REFUSE);
	assert_string_equal(why, wanted);
	assert_memory_equal(&before, &s, sizeof(s));
}

static void refused(void **state)
{
	unsigned i;

	for (i = 0; i < COUNT(refusals); i++) {
		vhost_session_begin(&s);
		accept_all(beginning, refusals[i].after);
		refuse_one(&refusals[i].said, refusals[i].why);
	}
}

// What the header tells is refused before the payload is read.
static void refused_by_header(void **state)
{
	const char *why;
	unsigned i;

	for (i = 0; i < COUNT(refusals); i++) {
		const char *wanted = refusals[i].why;
		bool by_header = strcmp(wanted, VERSION) == 0 || strcmp(wanted, NOT_OFFERED) == 0 ||
				 strcmp(wanted, LENGTH_WRONG) == 0;

		why = NULL;
		assert_int_equal(vhost_message_check_header(&refusals[i].said.m, &why), by_header ? -EPROTO : 0);
		assert_true(by_header == (why != NULL));
		if (by_header)
			assert_string_equal(why, wanted);
	}
}

// Rings that reach to the last byte of their memory: lengths that still fit, and one that does not.
static void longer_ring(void **state)
{
	static const struct said begins[] = {PASS(M_NONE(GET_FEATURES)),
					     STOP(M_WORD(SET_FEATURES, TAKEN)),
					     MEMORY_2,
					     STOP(M_STATE(SET_VRING_NUM, 0, 128)),
					     STOP(M_ADDR(0, 0, USER + LOW - 256 * 16, USER + 0x2000, USER + 0x1000, 0)),
					     STOP(M_STATE(SET_VRING_NUM, 0, 256))};
	static const struct said longer = REFUSED(M_STATE(SET_VRING_NUM, 0, 512));

	vhost_session_begin(&s);
	accept_all(begins, COUNT(begins));
	refuse_one(&longer, "the ring is longer than its memory");
}

// Without event indices the areas are two bytes shorter.
static void last_bytes(void **state)
{
	static const struct said begins[] = {
		PASS(M_NONE(GET_FEATURES)), STOP(M_WORD(SET_FEATURES, TAKEN & ~EVENT_IDX)), MEMORY_2,
		STOP(M_STATE(SET_VRING_NUM, 0, 256)),
		STOP(M_ADDR(0, 0, USER + LOW + HIGH - 4096, USER + LOW - 2052, USER + LOW + HIGH - 516, 0))};
	static const struct said logged = REFUSED(ADDR_LOG(0));

	vhost_session_begin(&s);
	accept_all(begins, COUNT(begins));
	refuse_one(&logged, "the ring is logged, but the feature was not taken");
}

// The library maps each region from the begin of its file. Each of them is short enough, all together are not.
static void too_large_together(void **state)
{
	struct said said = {.m = {HEAD(SET_MEM_TABLE, 8 + 8 * 32), .memory = {.n = 8}}, .file = MEMORY, .n = 8};
	int sparse = memfd_create("sparse", MFD_CLOEXEC), memory = files[MEMORY];
	unsigned i;

	assert_int_equal(ftruncate(sparse, VHOST_MEMORY_MOST / 4), 0);
	for (i = 0; i < 8; i++) {
		said.m.memory.regions[i].guest = said.m.memory.regions[i].user = i * GIB;
		said.m.memory.regions[i].size = MIB;
		said.m.memory.regions[i].offset = VHOST_MEMORY_MOST / 4 - MIB;
	}
	files[MEMORY] = sparse;
	vhost_session_begin(&s);
	refuse_one(&said, LARGE);
	files[MEMORY] = memory;
	close(sparse);
}

static void answers(void **state)
{
	struct vhost_message m = {.request = VHOST_REQUEST_GET_FEATURES}, a = answer_to(&m);

	vhost_message_mask_answer(&m, &a);
	assert_false(a.u64 & (PACKED | 1ULL << 33 | 1ULL << 0)); // IOMMU; what the library did not offer
	assert_int_equal(a.u64 & TAKEN, TAKEN);
	m.request = VHOST_REQUEST_GET_PROTOCOL_FEATURES;
	a = answer_to(&m);
	vhost_message_mask_answer(&m, &a);
	assert_int_equal(a.u64, 1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 16);
	m.request = VHOST_REQUEST_GET_QUEUE_NUM;
	a.u64 = 1000;
	vhost_message_mask_answer(&m, &a);
	assert_int_equal(a.u64, VHOST_SESSION_VRINGS / 2);
	m.request = VHOST_REQUEST_GET_STATUS;
	a.u64 = 1000;
	vhost_message_mask_answer(&m, &a);
	assert_int_equal(a.u64, 1000);
	m.request = VHOST_REQUESTS;
	assert_false(vhost_message_has_answer(&m));
}

static int open_files(void **state)
{
	char path[64];
	int ends[2];

	files[EVENT] = eventfd(0, EFD_CLOEXEC);
	files[MEMORY] = memfd_create("memory", MFD_CLOEXEC);
	files[SHORT] = memfd_create("short", MFD_CLOEXEC);
	files[SEALED] = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	files[DIRECTORY] = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	files[PROC] = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", files[MEMORY]);
	files[READ_ONLY] = open(path, O_RDONLY | O_CLOEXEC);
	return pipe2(ends, O_CLOEXEC) < 0 || (files[PIPE] = ends[0]) < 0 || ftruncate(files[MEMORY], LOW + HIGH) < 0 ||
	       ftruncate(files[SHORT], LOW - 1) < 0 || ftruncate(files[SEALED], LOW) < 0 ||
	       fcntl(files[SEALED], F_ADD_SEALS, F_SEAL_WRITE) < 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qemu),
		cmocka_unit_test(old_qemu),
		cmocka_unit_test(net_virtio_user),
		cmocka_unit_test(cloud_hypervisor),
		cmocka_unit_test(need_reply),
		cmocka_unit_test(refused),
		cmocka_unit_test(refused_by_header),
		cmocka_unit_test(longer_ring),
		cmocka_unit_test(last_bytes),
		cmocka_unit_test(too_large_together),
		cmocka_unit_test(answers),
	};

	return cmocka_run_group_tests(tests, open_files, NULL);
}
