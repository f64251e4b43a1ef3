// SPDX-License-Identifier: Apache-2.0
// A descriptor that becomes readable when any of several others signals: an epoll instance, for use with poll().
//
// Eventfds of peers are watched for signals (edges) and never read: the peer could make such a read block for ever.
#pragma once

#include <stdbool.h>

int wake_fd_new(void); // -errno on failure; close() ends it and its watches
// edges: becomes readable at each signal, until wake_fd_rest(); otherwise it is readable as long as fd is. Returns 0 or
// -errno.
int wake_fd_watch(int wake_fd, int fd, bool edges);
void wake_fd_forget(int wake_fd, int fd); // before fd is closed, unless no other descriptor refers to its file
// Makes it unreadable until the next signal. Returns 0, or -EIO when a watched descriptor reports an error. Counts as a
// system call.
int wake_fd_rest(int wake_fd);
// A descriptor that a peer has sent may refer to any kind of file, and then reading it may have side effects.
bool wake_fd_is_eventfd(int fd);
