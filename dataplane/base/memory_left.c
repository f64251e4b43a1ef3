// SPDX-License-Identifier: Apache-2.0
// Taking more memory than there is would not fail: the kernel would kill a process, perhaps this one.
#include "base/memory_left.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MEMORY_PATH 512

// The files of a control group, by version of the hierarchy.
struct memory_files {
	const char *mount, *limit, *usage,
		*reclaimable; // reclaimable: a line of memory.stat, with those of groups below
};

static const struct memory_files memory_version1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
						    "memory.usage_in_bytes", "total_inactive_file"};
static const struct memory_files memory_version2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};

// The number after a word at the start of a line; without a word, the first one of the file. UINT64_MAX: there is
// none, such as in "max".
static uint64_t memory_number(const char *path, const char *word)
{
	size_t n = strlen(word);
	unsigned long long x = 0;
	bool found = false;
	char line[128];
	FILE *f = fopen(path, "re");

	while (f && !found && fgets(line, sizeof(line), f))
		found = strncmp(line, word, n) == 0 && sscanf(line + n, "%llu", &x) == 1;
	if (f)
		fclose(f);
	return found ? x : UINT64_MAX;
}

static uint64_t memory_group_number(const char *root, const struct memory_files *v, const char *group, const char *file,
				    const char *word)
{
	char path[MEMORY_PATH];
	int n = snprintf(path, sizeof(path), "%s%s%s/%s", root, v->mount, group, file);

	return n < (int)sizeof(path) ? memory_number(path, word) : UINT64_MAX;
}

static uint64_t memory_left_in_group(const char *root, const struct memory_files *v, const char *group)
{
	uint64_t limit = memory_group_number(root, v, group, v->limit, "");
	uint64_t usage = memory_group_number(root, v, group, v->usage, "");
	uint64_t files = memory_group_number(root, v, group, "memory.stat", v->reclaimable);

	if (limit == UINT64_MAX || usage == UINT64_MAX)
		return UINT64_MAX;
	if (files != UINT64_MAX)
		usage -= files < usage ? files : usage;
	return usage < limit ? limit - usage : 0;
}

// The memory that is left to a cgroup and to those above it. In a container the names of the host's groups may not be
// there, but the root is.
static uint64_t memory_left_in_groups(const char *root, const struct memory_files *v, char *group)
{
	uint64_t least = UINT64_MAX, left;
	char *end = group + strlen(group);

	while (end > group && end[-1] == '/')
		*--end = '\0';
	for (;;) {
		left = memory_left_in_group(root, v, group);
		if (left < least)
			least = left;
		end = strrchr(group, '/');
		if (end == NULL)
			return least;
		*end = '\0';
	}
}

// A line is NUMBER:CONTROLLERS:GROUP; version 2 has no controllers.
static const struct memory_files *memory_version_of(char *line, char **group)
{
	char *controllers = strchr(line, ':'), *next;

	*group = controllers ? strchr(controllers + 1, ':') : NULL;
	if (*group == NULL)
		return NULL;
	*(*group)++ = '\0';
	(*group)[strcspn(*group, "\n")] = '\0';
	if (controllers[1] == '\0')
		return &memory_version2;
	for (controllers++; (next = strsep(&controllers, ",")) != NULL;)
		if (strcmp(next, "memory") == 0)
			return &memory_version1;
	return NULL;
}

uint64_t memory_left(const char *root)
{
	char path[MEMORY_PATH], line[MEMORY_PATH], *group;
	uint64_t least, left;
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	least = memory_number(path, "MemAvailable:");
	if (least != UINT64_MAX)
		least <<= 10;
	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		const struct memory_files *v = memory_version_of(line, &group);

		left = v ? memory_left_in_groups(root, v, group) : UINT64_MAX;
		if (left < least)
			least = left;
	}
	if (f)
		fclose(f);
	return least;
}
