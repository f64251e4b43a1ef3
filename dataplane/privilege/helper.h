// SPDX-License-Identifier: Apache-2.0
// The helper makes taps in network namespaces, which takes rights that the daemon gives up. It is a process of its own:
// the daemon forks it before it gives up these rights, and the helper ends when the daemon does. Over a pair of sockets
// it answers each request with one message, which carries the descriptors of the tap's queues.
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

// Forks the helper, which runs begin(arg) first and exits unless that returns 0, and lets port_rights use it. Called
// while the process has one thread. Returns 0, or -errno with err filled.
int helper_start(int (*begin)(void *arg, struct error *err), void *arg, struct error *err);

void helper_serve(int sock, int own_netns) __attribute__((noreturn)); // the helper's loop

// Sends and receives one message with up to PORT_MAX_QUEUES descriptors, which belong to the receiver. Both return the
// bytes of the message, 0 when the peer has gone, or -errno.
int helper_send(int sock, const void *message, size_t size, const int *fds, unsigned n);
int helper_receive(int sock, void *message, size_t size, int fds[PORT_MAX_QUEUES], unsigned *n);
