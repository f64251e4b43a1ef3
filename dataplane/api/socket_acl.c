// SPDX-License-Identifier: Apache-2.0
// Writes the access control list in the kernel's own format, an extended attribute, without libacl.
#include "api/socket_acl.h"

#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <sys/xattr.h>

#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>

#define GROUPS_MAX 8

struct acl { // the kernel's format: little-endian, sorted by tag
	struct posix_acl_xattr_header head;
	struct posix_acl_xattr_entry entries[GROUPS_MAX + 4];
};

static void socket_acl_add(struct acl *a, size_t *n, uint16_t tag, uint16_t perm, uint32_t id)
{
	a->entries[(*n)++] = (struct posix_acl_xattr_entry){htole16(tag), htole16(perm), htole32(id)};
}

int socket_acl_set(const char *path, const gid_t *gids, size_t n_gids)
{
	struct acl a = {.head.a_version = htole32(POSIX_ACL_XATTR_VERSION)};
	size_t n = 0, i;

	if (n_gids > GROUPS_MAX)
		return -E2BIG;
	socket_acl_add(&a, &n, ACL_USER_OBJ, ACL_READ | ACL_WRITE, (uint32_t)ACL_UNDEFINED_ID);
	socket_acl_add(&a, &n, ACL_GROUP_OBJ, ACL_READ | ACL_WRITE, (uint32_t)ACL_UNDEFINED_ID);
	for (i = 0; i < n_gids; i++)
		socket_acl_add(&a, &n, ACL_GROUP, ACL_READ | ACL_WRITE, gids[i]);
	socket_acl_add(&a, &n, ACL_MASK, ACL_READ | ACL_WRITE, (uint32_t)ACL_UNDEFINED_ID);
	socket_acl_add(&a, &n, ACL_OTHER, 0, (uint32_t)ACL_UNDEFINED_ID);
	return setxattr(path, "system.posix_acl_access", &a, sizeof(a.head) + n * sizeof(a.entries[0]), 0) < 0 ? -errno
													       : 0;
}
