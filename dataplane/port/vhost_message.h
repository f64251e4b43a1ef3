// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdbool.h>
#include <stdint.h>
#define VHOST_MESSAGE_HEADER 12
#define VHOST_MESSAGE_PAYLOAD 264
#define VHOST_MESSAGE_FDS 8
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
			} regions[8];
		} memory;
		struct {
			uint64_t size, offset;
		} log;
		uint8_t bytes[VHOST_MESSAGE_PAYLOAD];
	};
	int fds[VHOST_MESSAGE_FDS];
	unsigned n_fds;
} __attribute__((packed));
struct vhost_session {
	uint64_t features;
};
void vhost_session_begin(struct vhost_session *s);
int vhost_message_check_header(const struct vhost_message *m, const char **why); // after the header alone: 0 or -EPROTO
enum vhost_verdict { VHOST_REFUSE, VHOST_PASS, VHOST_PASS_STOPPED };
enum vhost_verdict vhost_session_check(const struct vhost_session *s, const struct vhost_message *m, const char **why);
bool vhost_message_has_answer(const struct vhost_message *m);
void vhost_session_accepted(struct vhost_session *s, const struct vhost_message *m, const struct vhost_message *answer);
void vhost_message_mask_answer(const struct vhost_message *request, struct vhost_message *answer);
