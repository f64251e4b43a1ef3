// SPDX-License-Identifier: Apache-2.0
// Frames from the underlay, mostly in tunnels, through the whole graph. The first byte chooses the port.
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
	if (size > 0)
		fuzz_router_frame(*data & 1 ? FABRIC1 : FABRIC0, data + 1, size - 1);
	return 0;
}
