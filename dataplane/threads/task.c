// SPDX-License-Identifier: Apache-2.0
#include "threads/task.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX 65536 // holds the longest list of CPUs

int *task_ids(const char *root, unsigned *n)
{
	unsigned room = 0;
	int *ids = NULL, *more;
	struct dirent *e;
	char path[512];
	DIR *d;

	*n = 0;
	snprintf(path, sizeof(path), "%s/proc/self/task", root);
	d = opendir(path);
	while (d && (e = readdir(d)) != NULL) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		if (*n == room) {
			room = room ? 2 * room : 64;
			more = realloc(ids, room * sizeof(*ids));
			if (more == NULL)
				break;
			ids = more;
		}
		ids[(*n)++] = atoi(e->d_name);
	}
	if (d)
		closedir(d);
	return ids;
}

static int task_slurp(const char *root, int tid, const char *file, char *buf, size_t size)
{
	char path[512];
	ssize_t got = 0;
	size_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/proc/self/task/%d/%s", root, tid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (n < size - 1 && (got = read(fd, buf + n, size - 1 - n)) > 0)
		n += (size_t)got;
	got = got < 0 ? -errno : 0;
	close(fd);
	buf[n] = '\0';
	return (int)got;
}

// The value behind "KEY:" and blanks, up to the end of its line; NULL: no such line.
static const char *task_value(const char *text, const char *key, char *out, size_t size)
{
	size_t len = strlen(key);
	const char *line = text;

	while (line && (strncmp(line, key, len) != 0 || line[len] != ':')) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	if (line == NULL)
		return NULL;
	line += len + 1;
	line += strspn(line, "\t ");
	len = strcspn(line, "\n");
	if (len >= size)
		return NULL;
	memcpy(out, line, len);
	out[len] = '\0';
	return out;
}

int task_read_status(const char *root, int tid, struct task *t)
{
	static char text[FILE_MAX], list[FILE_MAX]; // used by the master thread only
	char number[32], state[32];
	int ret = task_slurp(root, tid, "status", text, sizeof(text));

	if (ret < 0)
		return ret;
	t->tid = tid;
	if (!task_value(text, "Name", t->name, sizeof(t->name)) || !task_value(text, "State", state, sizeof(state)) ||
	    !task_value(text, "Cpus_allowed_list", list, sizeof(list)) || cpu_list_parse(list, &t->affinity) < 0)
		return -EINVAL;
	t->state = state[0];
	t->voluntary =
		task_value(text, "voluntary_ctxt_switches", number, sizeof(number)) ? strtoull(number, NULL, 10) : 0;
	t->involuntary =
		task_value(text, "nonvoluntary_ctxt_switches", number, sizeof(number)) ? strtoull(number, NULL, 10) : 0;
	return 0;
}

// A field of /proc/.../stat from the state on, which is field 3. The name before it may contain blanks and brackets.
static const char *stat_field(const char *text, unsigned field)
{
	const char *s = strrchr(text, ')');

	for (field -= 2; s && field > 0; field--) {
		s = strchr(s, ' ');
		s = s ? s + 1 : NULL;
	}
	return s;
}

int task_read_sched(const char *root, int tid, struct task *t)
{
	unsigned long long run, wait;
	const char *state, *cpu;
	char text[4096];
	int ret = task_slurp(root, tid, "stat", text, sizeof(text));

	if (ret < 0)
		return ret;
	state = stat_field(text, 3);
	cpu = stat_field(text, 39);
	if (cpu == NULL)
		return -EINVAL;
	t->tid = tid;
	t->state = *state;
	t->cpu = atoi(cpu);
	t->run_ns = t->wait_ns = 0;
	if (task_slurp(root, tid, "schedstat", text, sizeof(text)) == 0 &&
	    sscanf(text, "%llu %llu", &run, &wait) == 2) {
		t->run_ns = run; // some kernels do not count
		t->wait_ns = wait;
	}
	return 0;
}
