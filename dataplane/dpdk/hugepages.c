// SPDX-License-Identifier: Apache-2.0
// Reads /proc/meminfo and /sys/devices/system/node.
#include "dpdk/hugepages.h"

#include <stdio.h>

static void hugepages_default(const char *root, unsigned long *free_pages, unsigned long *kb)
{
	char path[256], line[128];
	unsigned long n;
	FILE *f;

	*free_pages = *kb = 0;
	snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "HugePages_Free: %lu", &n) == 1)
			*free_pages = n;
		if (sscanf(line, "Hugepagesize: %lu", &n) == 1)
			*kb = n;
	}
	if (f)
		fclose(f);
}

unsigned long hugepages_free_mb(void)
{
	unsigned long pages, kb;

	hugepages_default("", &pages, &kb);
	return pages * kb / 1024;
}

unsigned long hugepages_free_mb_on(const char *root, unsigned node)
{
	unsigned long pages, kb;
	char path[256];
	FILE *f;

	hugepages_default(root, &pages, &kb);
	snprintf(path, sizeof(path), "%s/sys/devices/system/node/node%u/hugepages/hugepages-%lukB/free_hugepages", root,
		 node, kb);
	f = fopen(path, "r");
	if (f == NULL || fscanf(f, "%lu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * kb / 1024;
}
