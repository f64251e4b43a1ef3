// SPDX-License-Identifier: Apache-2.0
#include "dpdk/hugepages.h"

#include <stdio.h>

unsigned long hugepages_free_mb(void)
{
	unsigned long kb = 0, pages = 0, n;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "HugePages_Free: %lu", &n) == 1)
			pages = n;
		if (sscanf(line, "Hugepagesize: %lu", &n) == 1)
			kb = n;
	}
	if (f)
		fclose(f);
	return pages * kb / 1024;
}
