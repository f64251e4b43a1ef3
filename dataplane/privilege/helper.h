// SPDX-License-Identifier: Apache-2.0
// The helper makes taps in network namespaces, which takes rights that the daemon gives up. It is a process of its own
// that is forked before and ends with the daemon. Both talk over a pair of sockets: one request, one answer; the
// descriptors of the queues come with the answer.
#pragma once

#include "port/tap_device.h"

enum helper_what { HELPER_CREATE = 1, HELPER_SET_MTU };

struct helper_request {
	uint32_t what; // enum helper_what
	struct tap_request tap;
};

struct helper_answer {
	int32_t ret; // 0 or -errno
	uint32_t n_fds;
	struct error err;
};

// Starts the helper, which runs begin(arg) first and ends unless that returns 0. Then port_rights uses it. The process
// has one thread. Returns 0, or -errno with err filled.
int helper_start(int (*begin)(void *arg, struct error *err), void *arg, struct error *err);

void helper_serve(int sock, int own_netns) __attribute__((noreturn)); // the helper's loop

// Sends and receives one message with up to PORT_MAX_QUEUES descriptors, which belong to the receiver. Both return the
// bytes of the message, 0 when the peer has gone, or -errno.
int helper_send(int sock, const void *message, size_t size, const int *fds, unsigned n);
int helper_receive(int sock, void *message, size_t size, int fds[PORT_MAX_QUEUES], unsigned *n);
