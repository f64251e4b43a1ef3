// SPDX-License-Identifier: Apache-2.0
#include "base/socket_access.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAMES_SIZE 65536 // of an entry with its list of members
#define NAME_ENTRY 4096  // of an entry whose name an error shows; a longer one is shown by its number
#define GROUPS 256       // of a process that are looked at
#define GROUP_NAME 40    // room for a name in an error

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

// Without CAP_CHOWN, only the process's own user and groups are possible (chown(2)).
static bool may_chown(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {};

	return syscall(SYS_capget, &head, data) == 0 && (data[0].effective & 1u << CAP_CHOWN);
}

// The effective group first. Returns how many there are.
static int own_groups(gid_t groups[GROUPS])
{
	int n = getgroups(GROUPS - 1, groups + 1);

	groups[0] = getegid();
	return n > 0 ? n + 1 : 1;
}

static bool may_set_group(gid_t gid)
{
	gid_t groups[GROUPS];
	int i;

	for (i = own_groups(groups) - 1; i >= 0 && groups[i] != gid; i--)
		;
	return i >= 0 || may_chown();
}

static int refuse_owner(const char *prefix, const char *owner, struct error *err)
{
	struct passwd entry, *self = NULL;
	char valid[64], buf[NAME_ENTRY];

	if (getpwuid_r(geteuid(), &entry, buf, sizeof(buf), &self) == 0 && self)
		snprintf(valid, sizeof(valid), "%s, the daemon's user", self->pw_name);
	else
		snprintf(valid, sizeof(valid), "%u, the daemon's user", geteuid());
	return socket_access_refuse(prefix, "socket_owner", owner, valid,
				    "the daemon, without CAP_CHOWN, cannot give a socket to another user", err);
}

static int refuse_group(const char *prefix, const char *group, struct error *err)
{
	char valid[256] = "groups of the daemon:", *end = valid + strlen(valid);
	struct group entry, *found = NULL;
	gid_t groups[GROUPS];
	char buf[NAME_ENTRY];
	int i, n = own_groups(groups);

	for (i = 0; i < n && end < valid + sizeof(valid) - GROUP_NAME; i++) {
		if (getgrgid_r(groups[i], &entry, buf, sizeof(buf), &found) == 0 && found)
			end += snprintf(end, GROUP_NAME, " %.32s", entry.gr_name);
		else
			end += snprintf(end, GROUP_NAME, " %u", groups[i]);
	}
	return socket_access_refuse(prefix, "socket_group", group, valid,
				    "the daemon, without CAP_CHOWN, cannot give a socket to a group that it is not in",
				    err);
}

static struct {
	bool on, known, usable;
	char name[GROUP_NAME];
	gid_t gid;
} remembered;

void socket_access_remember(bool on)
{
	remembered.on = on;
	remembered.known = false;
}

// The group of a socket for which none is given, if there is one and the daemon may set it.
static bool fallback_group(const char *name, gid_t *gid)
{
	if (!remembered.on || !remembered.known || strcmp(remembered.name, name) != 0) {
		snprintf(remembered.name, sizeof(remembered.name), "%s", name);
		remembered.usable = find_group(name, &remembered.gid) && may_set_group(remembered.gid);
		remembered.known = true;
	}
	*gid = remembered.gid;
	return remembered.usable;
}

int socket_access_parse(const char *owner, const char *group, const char *mode, const char *fallback,
			const char *prefix, struct socket_access *out, struct error *err)
{
	unsigned long bits = *mode ? strtoul(mode, NULL, 8) : SOCKET_MODE_DEFAULT;
	gid_t gid;

	*out = (struct socket_access){(uid_t)-1, (gid_t)-1, (mode_t)bits};
	if (*owner && !find_owner(owner, &out->uid))
		return socket_access_refuse(prefix, "socket_owner", owner, "the name or id of a user",
					    "there is no such user", err);
	if (*owner && out->uid != geteuid() && !may_chown())
		return refuse_owner(prefix, owner, err);
	if (*group && !find_group(group, &out->gid))
		return socket_access_refuse(prefix, "socket_group", group, "the name or id of a group",
					    "there is no such group", err);
	if (*group && !may_set_group(out->gid))
		return refuse_group(prefix, group, err);
	if (bits == 0 || bits > 0777)
		return socket_access_refuse(prefix, "socket_mode", mode, "0001 to 0777", "is not a set of permissions",
					    err);
	if (*group == '\0' && fallback && fallback_group(fallback, &gid))
		out->gid = gid;
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
