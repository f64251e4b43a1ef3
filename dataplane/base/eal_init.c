// SPDX-License-Identifier: Apache-2.0
#include "base/eal_init.h"

#include <stdlib.h>
#include <unistd.h>

#include <rte_eal.h>

static void remove_directory(void)
{
	rmdir(rte_eal_get_runtime_dir()); // one that others use is not empty
}

int eal_init(int argc, char **argv)
{
	atexit(remove_directory); // before DPDK registers what empties it
	return rte_eal_init(argc, argv);
}
