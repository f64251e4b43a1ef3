// SPDX-License-Identifier: Apache-2.0
#include "base/eal_init.h"

#include <stdlib.h>
#include <unistd.h>

#include <rte_eal.h>

static void remove_directory(void)
{
	rmdir(rte_eal_get_runtime_dir()); // fails when others use it: it is not empty then
}

int eal_init(int argc, char **argv)
{
	atexit(remove_directory); // exit handlers run in reverse: after DPDK's, which empties the directory
	return rte_eal_init(argc, argv);
}
