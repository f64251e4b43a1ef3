// SPDX-License-Identifier: Apache-2.0
// Closes what a front end has sent. The end of a file may wait: for the process that serves a file system in user
// space, or for the peer of a TCP socket that lingers. So a thread of its own does it, and a port has few of them at a
// time.
#pragma once

#include <stdbool.h>

struct vhost_closer; // of a port

struct vhost_closer *vhost_closer_new(void); // NULL: no memory
void vhost_closer_put(struct vhost_closer *c);
bool vhost_closer_is_free(const struct vhost_closer *c); // otherwise the port has to take no more descriptors
void vhost_closer_close(struct vhost_closer *c, const int *fds, unsigned n);
