// SPDX-License-Identifier: Apache-2.0
#include "api/role.h"

#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *const role_names[ROLES] = {"none", "read", "operate", "administer"};

static struct {
	const char *name; // NULL: the role has no group
	bool exists;
	gid_t gid;
} groups[ROLES];

int role_set_group(enum role role, const char *group)
{
	struct group *g = getgrnam(group);

	groups[role].name = group;
	groups[role].exists = g != NULL;
	groups[role].gid = g ? g->gr_gid : 0;
	return g ? 0 : -ENOENT;
}

unsigned role_groups(gid_t gids[ROLES])
{
	unsigned r, n = 0;

	for (r = 0; r < ROLES; r++)
		if (groups[r].exists)
			gids[n++] = groups[r].gid;
	return n;
}

enum role role_of_method(const char *service, const char *name)
{
	unsigned i;

	for (i = 0; i < n_method_roles; i++)
		if (strcmp(method_roles[i].service, service) == 0 && strcmp(method_roles[i].name, name) == 0)
			return method_roles[i].role;
	return ROLE_ADMINISTER;
}

static enum role role_of_group(gid_t gid)
{
	enum role r = ROLES;

	while (--r > ROLE_NONE)
		if (groups[r].exists && groups[r].gid == gid)
			break;
	return r;
}

// The supplementary groups; the caller frees *gids.
static int role_read_groups(int fd, gid_t **gids, size_t *n)
{
	socklen_t len = 64 * sizeof(gid_t);
	gid_t *list = malloc(len), *more;

	*n = 0;
	while (list && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, list, &len) < 0) {
		if (errno != ERANGE) {
			free(list);
			return -errno;
		}
		more = realloc(list, len); // the kernel has set it to what it needs
		if (more == NULL)
			free(list);
		list = more;
	}
	*gids = list;
	*n = len / sizeof(gid_t);
	return list ? 0 : -ENOMEM;
}

int role_of_peer(int fd, struct api_client *out)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	gid_t *gids = NULL;
	size_t n, i;
	int ret;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	*out = (struct api_client){.uid = peer.uid, .pid = peer.pid, .role = role_of_group(peer.gid)};
	if (peer.uid == 0 || peer.uid == geteuid()) {
		out->role = ROLE_ADMINISTER;
		return 0;
	}
	ret = role_read_groups(fd, &gids, &n);
	if (ret < 0)
		return ret;
	for (i = 0; i < n; i++) {
		enum role r = role_of_group(gids[i]);

		out->role = r > out->role ? r : out->role;
	}
	free(gids);
	return 0;
}

int role_check(const struct api_client *c, enum role needs, const char *noun, const char *name, struct error *err)
{
	char who[128];

	if (c->role >= needs)
		return 0;
	if (groups[needs].exists)
		snprintf(who, sizeof(who), "root and the members of group %s have", groups[needs].name);
	else if (groups[needs].name)
		snprintf(who, sizeof(who), "only root has, because there is no group %s", groups[needs].name);
	else
		snprintf(who, sizeof(who), "only root has");
	return error_set(err, EACCES, NULL, NULL, NULL, "%s.%s needs role '%s', which %s; uid %u has role '%s'", noun,
			 name, role_names[needs], who, (unsigned)c->uid, role_names[c->role]);
}
