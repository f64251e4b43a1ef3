// SPDX-License-Identifier: Apache-2.0
// EAL with no file that outlives the process, no devices of its own choice, and one lcore.
#include "dpdk/eal_init.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>

static void remove_directory(void)
{
	rmdir(rte_eal_get_runtime_dir()); // fails when others use it: it is not empty then
}

int eal_init(int argc, char **argv)
{
	atexit(remove_directory); // exit handlers run in reverse: after DPDK's, which empties the directory
	return rte_eal_init(argc, argv);
}

int eal_start_process(const struct eal_process *p, struct error *err)
{
	char lcores[32], memory[16], prefix[64];
	const char *argv[16 + EAL_MORE] = {p->program};
	unsigned i;
	int argc = 1;

	snprintf(lcores, sizeof(lcores), "--lcores=0@%u", p->cpu);
	snprintf(memory, sizeof(memory), "%u", p->memory_mb);
	snprintf(prefix, sizeof(prefix), "--file-prefix=%s-%d", p->prefix, (int)getpid());
	argv[argc++] = lcores;
	argv[argc++] = prefix;
	argv[argc++] = p->hugepages ? "--in-memory" : "--no-shconf"; // leaves no files; needs hugepages
	argv[argc++] = "-a";                                         // probe no device unasked: ports name theirs
	argv[argc++] = "0000:00:00.0";
	argv[argc++] = p->node_memory ? "--socket-mem" : "-m";
	argv[argc++] = p->node_memory ? p->node_memory : memory;
	argv[argc++] = "--log-level";
	argv[argc++] = "lib.*:warning";
	argv[argc++] = "--log-level";
	argv[argc++] = "lib.corelane:info";
	if (!p->hugepages)
		argv[argc++] = "--no-huge";
	for (i = 0; i < p->n_more; i++)
		argv[argc++] = p->more[i];
	if (eal_init(argc, (char **)(uintptr_t)argv) < 0)
		return error_set(err, EINVAL, "DPDK", NULL, NULL, "cannot start (the lines above say why): %s",
				 rte_strerror(rte_errno));
	return 0;
}
