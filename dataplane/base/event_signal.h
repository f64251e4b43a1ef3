// SPDX-License-Identifier: Apache-2.0
// Signalling an eventfd that another process shares, from threads that must not wait.
//
// write() would do, were it not for a hostile peer: an eventfd is one file description on both sides, so the peer can
// make it blocking and fill its counter, and the writer would wait for ever. The kernel's own signalling of an eventfd
// never waits, and loses nothing: a counter at its maximum stays there. The cheapest way to have it is an asynchronous
// read of nothing whose completion signals the eventfd.
#pragma once

// Master thread, before the first signal; may be called again. Returns 0 or -errno.
int event_signal_init(void);
// Of a peer's descriptor, before the first signal: where the kernel has no asynchronous I/O, its file must not block.
// Returns 0 or -errno.
int event_signal_prepare(int fd);
// Any thread. Returns 0, or -errno when the signal was lost. Counts as a system call.
int event_signal(int fd);
