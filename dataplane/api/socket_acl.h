// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <sys/types.h>

// Lets the members of these groups connect to the socket, besides its owner and its group: an access control list
// (acl(5)). Returns 0 or -errno; -EOPNOTSUPP: the file system has none.
int socket_acl_set(const char *path, const gid_t *gids, size_t n);
