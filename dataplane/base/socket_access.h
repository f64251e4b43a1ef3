// SPDX-License-Identifier: Apache-2.0
// Who may connect to a Unix socket: owner, group and mode of its file.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct socket_access {
	uid_t uid; // (uid_t)-1: the process's
	gid_t gid; // (gid_t)-1: the process's
	mode_t mode;
};

#define SOCKET_MODE_DEFAULT 0660

// Resolves names or ids and an octal mode; empty texts stand for the process's owner, the group `fallback` if the host
// has it and the process may use it (else, or if it is NULL: the process's), and SOCKET_MODE_DEFAULT. Refuses owners
// and groups that the process has no right to give a file to. prefix: of the fields in errors, "port.vhost".
int socket_access_parse(const char *owner, const char *group, const char *mode, const char *fallback,
			const char *prefix, struct socket_access *out, struct error *err);

// While it is on, a fallback is looked up once for all sockets: a start makes many. Master thread.
void socket_access_remember(bool on);

// The file of a socket that nobody can connect to yet. Returns -errno.
int socket_access_set(const char *path, const struct socket_access *a);

// Between these two calls the sockets that the process binds have mode 0, whoever makes them listen. Master thread.
mode_t socket_access_lock(void);
void socket_access_unlock(mode_t before);
