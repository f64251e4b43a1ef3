// SPDX-License-Identifier: Apache-2.0
// Device arguments that become a memif port. Accepted arguments must be within bounds, and a refusal must
// have a reason.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz_frame.h"
#include "port/devargs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct port_config cfg = {.role = PORT_FABRIC};
	char *text = malloc(size + 1);
	struct error err = {0};
	int ret;

	memcpy(text, data, size);
	text[size] = '\0';
	ret = devargs_memif(text, &cfg, &err);
	FUZZ_ASSERT(ret == 0 || ret == 1 || ret == -EINVAL);
	if (ret == 1) {
		FUZZ_ASSERT(strcmp(cfg.kind, "memif") == 0 && cfg.ring_size <= LIMIT_MEMIF_DEVICE_RING_SIZE_MAX &&
			    cfg.buffer_size <= LIMIT_MEMIF_DEVICE_BUFFER_SIZE_MAX);
		FUZZ_ASSERT(memchr(cfg.socket, '\0', sizeof(cfg.socket)) &&
			    memchr(cfg.secret, '\0', sizeof(cfg.secret)));
	}
	FUZZ_ASSERT(ret != -EINVAL || err.message[0] != '\0');
	FUZZ_ASSERT(ret != 0 || cfg.kind == NULL);
	free(text);
	return 0;
}
