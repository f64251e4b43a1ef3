// SPDX-License-Identifier: Apache-2.0
// What the daemon may do once it runs: its user, its capabilities, its core dumps and its system calls.
// docs/security.md describes it for operators.
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "privilege/filter.h"

struct privilege_options {
	const char *user;      // empty: stays what it is, with all rights
	const char *run_dir;   // is made for the user if it is missing
	const char *state_dir; // the same; empty: there is none
	enum filter_mode system_calls;
	bool core_dumps; // allowed, without packets and guests' memory
};

// Whether the user can be become, without any effect. Returns 0, or -EINVAL with err filled.
int privilege_check(const struct privilege_options *o, struct error *err);

// Starts the helper and becomes the user, with the capabilities that the allowed kinds of port need
// (port_kind_allowed()). Before EAL, while the process has one thread. Returns 0, or -errno with err filled.
int privilege_drop(const struct privilege_options *o, struct error *err);

// Filters the system calls of all threads, and more of those of workers. After EAL, before the first worker.
int privilege_filter(const struct privilege_options *o, struct error *err);
