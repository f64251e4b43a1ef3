// SPDX-License-Identifier: Apache-2.0
// Shows what becomes of a daemon whose worker makes a system call that its filter (privilege/filter.h) does not allow.
#pragma once

#include "base/error.h"

struct worker;

// Master thread. The worker calls execve() once, without a program: where no filter forbids it, it fails. Refused
// unless the process was started with --allow-debug.
int forbidden_call(struct worker *w, struct error *err);
