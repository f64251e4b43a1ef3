// SPDX-License-Identifier: Apache-2.0
#include "threads/machine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int machine_read_list(const char *root, const char *path, struct cpu_list *out)
{
	char name[512], *line = NULL;
	size_t room = 0;
	int ret = -ENOENT;
	FILE *f;

	memset(out, 0, sizeof(*out));
	snprintf(name, sizeof(name), "%s%s", root, path);
	f = fopen(name, "re");
	if (f == NULL)
		return -errno;
	if (getline(&line, &room, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		ret = cpu_list_parse(line, out);
	}
	free(line);
	fclose(f);
	return ret;
}

void machine_read(const char *root, struct machine *m)
{
	long i, n = sysconf(_SC_NPROCESSORS_CONF);

	memset(m, 0, sizeof(*m));
	if (machine_read_list(root, "/sys/devices/system/cpu/possible", &m->possible) < 0)
		for (i = 0; i < n && i < CPU_LIST_MAX; i++) // a container without sysfs
			cpu_list_add(&m->possible, (unsigned)i);
	if (machine_read_list(root, "/sys/devices/system/cpu/online", &m->online) < 0)
		m->online = m->possible;
}

// The kernel reduces an affinity to the CPUs that the cpuset allows, with either version of cgroups. So setting all
// CPUs and reading the result shows the allowed ones.
void machine_read_process(struct machine *m)
{
	struct cpu_list before;

	m->allowed = m->online;
	m->started = m->online;
	if (cpu_list_get_affinity(0, &before) < 0)
		return;
	if (cpu_list_set_affinity(0, &m->possible) == 0)
		cpu_list_get_affinity(0, &m->allowed);
	cpu_list_set_affinity(0, &before);
	before = cpu_list_both(&before, &m->online);
	if (!cpu_list_empty(&before))
		m->started = before;
}
