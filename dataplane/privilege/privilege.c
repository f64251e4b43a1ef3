// SPDX-License-Identifier: Apache-2.0
// The rights are dropped before EAL starts, so that every thread of the process is born without them. EAL needs none:
// its hugepages are anonymous, its files are in the run directory.
//
// Drivers of kernel interfaces (af_packet) call the kernel for themselves. Their capabilities stay permitted and are
// effective only while the master calls such a driver; workers give them up for good.
#include "privilege/privilege.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "port/registry.h"
#include "port/tap_device.h"
#include "privilege/helper.h"
#include "worker/worker.h"

#define DRIVER_CAPS (1ull << CAP_NET_ADMIN | 1ull << CAP_NET_RAW)
#define HELPER_CAPS (1ull << CAP_NET_ADMIN | 1ull << CAP_SYS_ADMIN)

static uint64_t kept; // capabilities that calls into drivers may use

static int caps_get(uint64_t *permitted)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {};

	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	*permitted = (uint64_t)data[1].permitted << 32 | data[0].permitted;
	return 0;
}

static int caps_set(uint64_t permitted, uint64_t effective)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct data[2] = {
		{.permitted = (uint32_t)permitted, .effective = (uint32_t)effective},
		{.permitted = (uint32_t)(permitted >> 32), .effective = (uint32_t)(effective >> 32)}};

	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

// Without CAP_SETPCAP the bounding set stays; it matters only to programs that are executed, and none is.
static void clear_bounds(void)
{
	int cap;

	for (cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
		prctl(PR_CAPBSET_DROP, cap);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

static int privilege_become(const struct passwd *pw, uint64_t caps, struct error *err)
{
	uint64_t have = 0;
	int ret = 0;

	clear_bounds();
	if (geteuid() != pw->pw_uid &&
	    (prctl(PR_SET_KEEPCAPS, 1) < 0 || initgroups(pw->pw_name, pw->pw_gid) < 0 ||
	     setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) < 0 || setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) < 0))
		return error_set(err, errno, "--user", pw->pw_name,
				 "the user that this process runs as, or root's rights", "cannot become this user: %s",
				 strerror(errno));
	ret = caps_get(&have);
	if (ret == 0)
		ret = caps_set(caps & have, 0);
	if (ret == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		ret = -errno;
	return ret == 0 ? 0
			: error_set(err, -ret, "--user", pw->pw_name, NULL, "capabilities cannot be dropped: %s",
				    strerror(-ret));
}

static void driver_calls(bool begin)
{
	uint64_t have = 0;

	if (caps_get(&have) == 0)
		caps_set(have & kept, begin ? have & kept : 0);
}

// On the worker.
static int worker_enters(unsigned worker)
{
	int ret = kept ? caps_set(0, 0) : 0;

	return ret < 0 ? ret : filter_worker();
}

static struct worker_listener listener = {.enter = worker_enters};

// A core file would hold packets of guests.
static void forbid_dumps(void)
{
	const struct rlimit none = {};

	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
}

static int make_dir(const char *option, const char *dir, mode_t mode, const struct passwd *pw, struct error *err)
{
	if (mkdir(dir, mode) < 0)
		return errno == EEXIST ? 0
				       : error_set(err, errno, option, dir, "a path that can be created", "%s",
						   strerror(errno));
	return chown(dir, pw->pw_uid, pw->pw_gid) == 0
		       ? 0
		       : error_set(err, errno, option, dir, NULL, "cannot be given to user %s: %s", pw->pw_name,
				   strerror(errno));
}

static int helper_begin(void *arg, struct error *err)
{
	uint64_t have = 0;
	int ret = privilege_become(arg, HELPER_CAPS, err);

	if (ret == 0)
		ret = caps_get(&have);
	if (ret == 0)
		ret = caps_set(have, have);
	return ret < 0 ? ret : filter_helper();
}

static struct passwd *find_user(const char *name, struct error *err)
{
	struct passwd *pw = getpwnam(name);

	if (pw && pw->pw_uid != 0)
		return pw;
	error_set(err, EINVAL, "--user", name, "a user of this machine other than root",
		  pw ? "has all rights" : "does not exist");
	return NULL;
}

int privilege_check(const struct privilege_options *o, struct error *err)
{
	return o->user[0] && find_user(o->user, err) == NULL ? -EINVAL : 0;
}

static int drop_to(const struct privilege_options *o, struct error *err)
{
	struct passwd *pw = find_user(o->user, err);
	int ret;

	if (pw == NULL)
		return -EINVAL;
	ret = make_dir("--run-dir", o->run_dir, 0711, pw, err);
	if (ret == 0 && o->state_dir[0])
		ret = make_dir("--state-dir", o->state_dir, 0700, pw, err);
	if (ret == 0 && port_kind_allowed("tap"))
		ret = helper_start(helper_begin, pw, err);
	if (ret < 0)
		return ret;
	kept = port_kind_allowed("dpdk") ? DRIVER_CAPS : 0;
	port_rights.driver = driver_calls;
	setenv("RUNTIME_DIRECTORY", o->run_dir, 0); // where EAL makes its directory; systemd sets it too
	return privilege_become(pw, kept, err);
}

int privilege_drop(const struct privilege_options *o, struct error *err)
{
	int ret = o->user[0] ? drop_to(o, err) : 0;

	if (ret < 0)
		return ret;
	if (!o->core_dumps)
		forbid_dumps();
	else if (prctl(PR_SET_DUMPABLE, 1) < 0) // a change of the user has cleared it
		return error_set(err, errno, "--core-dumps", NULL, NULL, "are not possible: %s", strerror(errno));
	return 0;
}

int privilege_filter(const struct privilege_options *o, struct error *err)
{
	int ret = filter_process(o->system_calls);

	worker_listen(&listener);
	return ret == 0 ? 0
			: error_set(err, -ret, "--system-calls", NULL, "any", "the kernel refuses the filter: %s",
				    strerror(-ret));
}
