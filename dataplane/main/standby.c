// SPDX-License-Identifier: Apache-2.0
#include "main/standby.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <systemd/sd-bus.h>

#define STANDBY_SERVICE "org.freedesktop.systemd1"
#define STANDBY_MANAGER "/org/freedesktop/systemd1"

static int claim = -1; // the locked file

// The type of the job that systemd runs for the unit of this process. The caller frees it. -ENOENT: there is none.
static int standby_job(sd_bus *bus, char **type)
{
	sd_bus_message *unit = NULL, *job = NULL;
	const char *path;
	uint32_t id = 0;
	int ret = sd_bus_call_method(bus, STANDBY_SERVICE, STANDBY_MANAGER, STANDBY_SERVICE ".Manager", "GetUnitByPID",
				     NULL, &unit, "u", (uint32_t)getpid());

	if (ret >= 0)
		ret = sd_bus_message_read(unit, "o", &path);
	if (ret >= 0)
		ret = sd_bus_get_property(bus, STANDBY_SERVICE, path, STANDBY_SERVICE ".Unit", "Job", NULL, &job,
					  "(uo)");
	if (ret >= 0)
		ret = sd_bus_message_read(job, "(uo)", &id, &path);
	if (ret >= 0 && id == 0)
		ret = -ENOENT;
	if (ret >= 0)
		ret = sd_bus_get_property_string(bus, STANDBY_SERVICE, path, STANDBY_SERVICE ".Job", "JobType", NULL,
						 type);
	sd_bus_message_unref(job);
	sd_bus_message_unref(unit);
	return ret;
}

bool standby_wanted(void)
{
	sd_bus *bus = NULL;
	char *type = NULL;
	bool wanted;

	if (sd_bus_open_system(&bus) < 0)
		return false;
	wanted = standby_job(bus, &type) >= 0 && strcmp(type, "restart") == 0;
	free(type);
	sd_bus_flush_close_unref(bus);
	return wanted;
}

static int standby_open(const char *run_dir, int flags)
{
	char path[128];
	int fd;

	if (snprintf(path, sizeof(path), "%s/corelaned.standby", run_dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0)
		return -errno;
	return fd;
}

// The lock ends with the process.
int standby_claim(const char *run_dir, struct error *err)
{
	int fd = standby_open(run_dir, O_CREAT), ret = fd;

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
		claim = fd;
		return 0;
	}
	if (fd >= 0) {
		ret = -errno;
		close(fd);
	}
	return error_set(err, -ret, "--standby", run_dir, "a run directory without a standby", "%s", strerror(-ret));
}

bool standby_forsaken(void)
{
	struct stat st;

	return claim >= 0 && fstat(claim, &st) == 0 && st.st_nlink == 0;
}

bool standby_runs(const char *run_dir)
{
	int fd = standby_open(run_dir, 0);
	bool runs = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;

	if (fd >= 0)
		close(fd);
	return runs;
}
