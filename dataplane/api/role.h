// SPDX-License-Identifier: Apache-2.0
// Roles of clients: who may call which method. A client has the highest role that one of its groups gives it. Root and
// the user that this process runs as administer. The kernel says who a client is (SO_PEERCRED, SO_PEERGROUPS), as of
// the moment when it connected.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

// As in api/options.proto. A role includes those before it.
enum role { ROLE_NONE, ROLE_READ, ROLE_OPERATE, ROLE_ADMINISTER, ROLES };

struct api_client {
	uid_t uid;
	pid_t pid;
	enum role role;
	uint8_t owner; // of what it adds (base/owner.h)
};

struct method_role { // of api/*.proto
	const char *service, *name;
	enum role role;
};
extern const struct method_role method_roles[];
extern const unsigned n_method_roles;

// The group whose members have the role. Before the server starts; a role without a group is root's alone. Returns
// -ENOENT when there is no such group: root alone has the role, and a refusal says so.
int role_set_group(enum role role, const char *group);
unsigned role_groups(gid_t gids[ROLES]); // those that exist

enum role role_of_method(const char *service, const char *name); // ROLE_ADMINISTER for one that api/*.proto do not have
int role_of_peer(int fd, struct api_client *out);                // of a connected socket; -errno
// Returns 0, or -EACCES with err, which says who the client is, what the method needs, and which group gives it.
int role_check(const struct api_client *c, enum role needs, const char *noun, const char *name, struct error *err);
