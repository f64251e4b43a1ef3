// SPDX-License-Identifier: Apache-2.0
// The messages of the vhost-user protocol, and what a front end may say when. Nothing here reads a socket or calls
// librte_vhost: vhost_front.c reads each message whole, asks vhost_session_check(), and forwards to the library only
// what has passed. The rules are those of an ordinary front end (QEMU, net_virtio_user, cloud-hypervisor) and a network
// device. They are stricter than the library of DPDK 22.11, which follows ring addresses that it has not checked, and
// undoes a refused message only in part (docs/security.md).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define VHOST_MESSAGE_HEADER 12   // bytes: request, flags and size
#define VHOST_MESSAGE_PAYLOAD 264 // bytes: SET_MEM_TABLE of 8 regions, the longest
#define VHOST_MESSAGE_FDS 8
#define VHOST_SESSION_VRINGS 256       // as many as the library has
#define VHOST_MEMORY_MOST (1ULL << 42) // bytes that a front end may have mapped: 4 TiB
#define VHOST_LOG_MOST (1ULL << 31)    // bytes: the pages of 64 TiB of guest addresses

enum vhost_request {
	VHOST_REQUEST_GET_FEATURES = 1,
	VHOST_REQUEST_SET_FEATURES = 2,
	VHOST_REQUEST_SET_OWNER = 3,
	VHOST_REQUEST_RESET_OWNER = 4,
	VHOST_REQUEST_SET_MEM_TABLE = 5,
	VHOST_REQUEST_SET_LOG_BASE = 6,
	VHOST_REQUEST_SET_LOG_FD = 7,
	VHOST_REQUEST_SET_VRING_NUM = 8,
	VHOST_REQUEST_SET_VRING_ADDR = 9,
	VHOST_REQUEST_SET_VRING_BASE = 10,
	VHOST_REQUEST_GET_VRING_BASE = 11,
	VHOST_REQUEST_SET_VRING_KICK = 12,
	VHOST_REQUEST_SET_VRING_CALL = 13,
	VHOST_REQUEST_SET_VRING_ERR = 14,
	VHOST_REQUEST_GET_PROTOCOL_FEATURES = 15,
	VHOST_REQUEST_SET_PROTOCOL_FEATURES = 16,
	VHOST_REQUEST_GET_QUEUE_NUM = 17,
	VHOST_REQUEST_SET_VRING_ENABLE = 18,
	VHOST_REQUEST_SEND_RARP = 19,
	VHOST_REQUEST_NET_SET_MTU = 20,
	VHOST_REQUEST_SET_STATUS = 39,
	VHOST_REQUEST_GET_STATUS = 40,
	VHOST_REQUESTS
};

// Flags of a message.
#define VHOST_MESSAGE_VERSION 1u // in the lowest two bits
#define VHOST_MESSAGE_REPLY 4u
#define VHOST_MESSAGE_NEED_REPLY 8u
#define VHOST_MESSAGE_NO_FD 0x100u // in the payload of KICK, CALL and ERR
#define VHOST_VRING_LOGS 1u        // flag of SET_VRING_ADDR: writes to the used ring are logged

// In host byte order. The first 12 + size bytes are as on the wire.
struct vhost_message {
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
			struct {
				uint64_t guest, size, user, offset;
			} regions[VHOST_MESSAGE_FDS];
		} memory;
		struct {
			uint64_t size, offset;
		} log;
		uint8_t bytes[VHOST_MESSAGE_PAYLOAD];
	};
	int fds[VHOST_MESSAGE_FDS];
	unsigned n_fds;
} __attribute__((packed));

// What the front end has told and the library accepted.
struct vhost_session {
	bool owned, told_features;
	uint64_t offered, features; // by GET_FEATURES, with SET_FEATURES
	uint64_t protocol_offered, protocol_features;
	uint64_t log_size; // bytes, 0: never set
	unsigned n_regions;
	struct vhost_region {
		uint64_t guest, size, user;
	} regions[VHOST_MESSAGE_FDS];
	struct vhost_session_ring {
		uint32_t num; // 0: not told since the ring was stopped
		bool has_addr, enabled;
		uint64_t desc, used, avail;
	} rings[VHOST_SESSION_VRINGS];
};

enum vhost_verdict {
	VHOST_REFUSE,
	VHOST_PASS,
	VHOST_PASS_STOPPED // workers must have let go of the rings first
};

void vhost_session_begin(struct vhost_session *s);
// After the header alone has been read, so that nobody waits for a payload that is never valid. Returns 0, or -EPROTO
// with *why: a whole clause for an event.
int vhost_message_check_header(const struct vhost_message *m, const char **why);
// Of a whole message; *why as above if it is refused.
enum vhost_verdict vhost_session_check(const struct vhost_session *s, const struct vhost_message *m, const char **why);
bool vhost_message_has_answer(const struct vhost_message *m); // the protocol has one, even without NEED_REPLY
// The library has accepted the message; answer: its answer, or NULL.
void vhost_session_accepted(struct vhost_session *s, const struct vhost_message *m, const struct vhost_message *answer);
// Reduces what the library offers to what the router lets a front end take: features, protocol features, queues.
void vhost_message_mask_answer(const struct vhost_message *m, struct vhost_message *answer);
// Whether a ring has its length and addresses, and lies in the guest's memory as it is known now.
bool vhost_session_ring_is_inside(const struct vhost_session *s, unsigned index);
