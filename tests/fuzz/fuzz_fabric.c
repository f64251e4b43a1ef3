// SPDX-License-Identifier: Apache-2.0
// Frames from the underlay, mostly in tunnels, and of the host, through the whole graph.
#include "fuzz_router.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	fuzz_router_setup();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t ports[] = {FABRIC0, FABRIC1, FABRIC0, FUZZ_HOST};

	fuzz_router_input(ports, RTE_DIM(ports), data, size);
	return 0;
}
