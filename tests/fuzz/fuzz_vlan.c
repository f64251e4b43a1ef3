// SPDX-License-Identifier: Apache-2.0
// Frames of guests with VLAN tags, and frames to their sub-ports, through the whole graph.
#include "fuzz_router.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	fuzz_router_setup();
	fuzz_router_add_subports();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t ports[] = {RED0, LAN0, LAN1, IRB0, BLUE0, FABRIC0};

	fuzz_router_input(ports, RTE_DIM(ports), data, size);
	return 0;
}
