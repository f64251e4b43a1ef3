// SPDX-License-Identifier: Apache-2.0
#include "base/socket_access.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_SIZE 65536 // of an entry with its list of members

static bool socket_access_number(const char *text, uint32_t *out)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0' || n >= UINT32_MAX)
		return false;
	*out = (uint32_t)n;
	return true;
}

static bool find_owner(const char *name, uid_t *out)
{
	struct passwd entry, *found = NULL;
	char *buf;

	if (socket_access_number(name, out))
		return true;
	buf = malloc(NAMES_SIZE);
	if (buf && getpwnam_r(name, &entry, buf, NAMES_SIZE, &found) == 0 && found)
		*out = entry.pw_uid;
	free(buf);
	return found != NULL;
}

static bool find_group(const char *name, gid_t *out)
{
	struct group entry, *found = NULL;
	char *buf;

	if (socket_access_number(name, out))
		return true;
	buf = malloc(NAMES_SIZE);
	if (buf && getgrnam_r(name, &entry, buf, NAMES_SIZE, &found) == 0 && found)
		*out = entry.gr_gid;
	free(buf);
	return found != NULL;
}

static int socket_access_refuse(const char *prefix, const char *name, const char *value, const char *valid,
				const char *text, struct error *err)
{
	char field[64];

	snprintf(field, sizeof(field), "%s.%s", prefix, name);
	return error_set(err, EINVAL, field, value, valid, "%s", text);
}

int socket_access_parse(const char *owner, const char *group, const char *mode, const char *fallback,
			const char *prefix, struct socket_access *out, struct error *err)
{
	unsigned long bits = *mode ? strtoul(mode, NULL, 8) : SOCKET_MODE_DEFAULT;

	*out = (struct socket_access){(uid_t)-1, (gid_t)-1, (mode_t)bits};
	if (*owner && !find_owner(owner, &out->uid))
		return socket_access_refuse(prefix, "socket_owner", owner, "the name or id of a user",
					    "there is no such user", err);
	if (*group && !find_group(group, &out->gid))
		return socket_access_refuse(prefix, "socket_group", group, "the name or id of a group",
					    "there is no such group", err);
	if (bits == 0 || bits > 0777)
		return socket_access_refuse(prefix, "socket_mode", mode, "0001 to 0777", "is not a set of permissions",
					    err);
	if (*group == '\0' && fallback && geteuid() == 0)
		find_group(fallback, &out->gid);
	return 0;
}

int socket_access_set(const char *path, const struct socket_access *a)
{
	int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), ret = -1; // what is there now, whatever replaces it
	char self[32];
	struct stat st;

	if (fd < 0)
		return -errno;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	errno = ENOTSOCK;
	if (fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) &&
	    fchownat(fd, "", a->uid, a->gid, AT_EMPTY_PATH) == 0) // first the owner, who must not get another's mode
		ret = chmod(self, a->mode);
	ret = ret < 0 ? -errno : 0;
	close(fd);
	return ret;
}

mode_t socket_access_lock(void)
{
	return umask(0777);
}

void socket_access_unlock(mode_t before)
{
	umask(before);
}
