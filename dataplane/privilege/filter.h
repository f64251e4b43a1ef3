// SPDX-License-Identifier: Apache-2.0
// System call filters (seccomp). docs/security.md lists what they allow.
//
// A thread that makes another call does not get it: the process writes one line, which names the thread and the call,
// and ends by SIGSYS. FILTER_LOG lets the call pass, and the kernel logs it (audit), to find out what a driver needs.
#pragma once

enum filter_mode { FILTER_OFF, FILTER_LOG, FILTER_KILL };

// All return 0 or -errno. With FILTER_OFF they do nothing.
int filter_process(enum filter_mode mode); // all threads that exist, and those that they will create
int filter_worker(void);                   // the calling thread, which keeps only what a worker needs
int filter_helper(void);                   // the calling process, which is the helper: always FILTER_KILL
