// SPDX-License-Identifier: Apache-2.0
// A descriptor that becomes readable when one of several others signals: an epoll instance. It may be waited for with poll().
//
// Eventfds of peers are watched for signals (edges) and never read: who holds the other end can make a read of one wait for ever.
#pragma once

#include <stdbool.h>

int wake_fd_new(void); // -errno. close() ends it, with all that it watches
// edges: readable after each signal, until wake_fd_rest(); else as long as fd is readable. 0 or -errno.
int wake_fd_watch(int wake_fd, int fd, bool edges);
void wake_fd_forget(int wake_fd, int fd); // before fd is closed, unless nobody else has the same file open
// Readable no more. Returns 0, or -EIO when one of the others reports an error. Counted as a system call.
int wake_fd_rest(int wake_fd);
// Descriptors that a peer has sent may be of any kind of file, with effects of its own.
bool wake_fd_is_eventfd(int fd);
