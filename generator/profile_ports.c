// SPDX-License-Identifier: Apache-2.0
// Decodes the ports of a profile.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profile.h"

static void profile_ports_decode_memif(const Corelane__V1__GeneratorMemif *in, struct port_config *out)
{
	snprintf(out->socket, sizeof(out->socket), "%s", in->socket);
	out->id = in->id;
	out->server = in->server;
	out->ring_size = in->ring_size ? in->ring_size : LIMIT_GENERATOR_MEMIF_RING_SIZE_DEFAULT;
	out->queues = in->queues ? in->queues : LIMIT_GENERATOR_MEMIF_QUEUES_DEFAULT;
}

static void profile_ports_decode(const Corelane__V1__GeneratorPort *in, struct port_config *out)
{
	snprintf(out->name, sizeof(out->name), "%s", in->name);
	out->room = PORT_ROOM;
	if (in->device_case == CORELANE__V1__GENERATOR_PORT__DEVICE_MEMIF) {
		profile_ports_decode_memif(in->memif, out);
		return;
	}
	snprintf(out->devargs, sizeof(out->devargs), "%s", in->devargs);
	out->queues = 1;
	out->ring_size = 1024; // descriptors
}

int profile_ports(const Corelane__V1__GeneratorProfile *in, struct port_config *out, struct error *err)
{
	size_t i, j;
	int ret = 0;

	for (i = 0; i < in->n_ports && ret == 0; i++) {
		profile_ports_decode(in->ports[i], &out[i]);
		for (j = 0; j < i && ret == 0; j++)
			if (strcmp(out[i].name, out[j].name) == 0)
				ret = error_set(err, EEXIST, "port.name", out[i].name, "a unique name",
						"is the name of two ports");
		if (ret < 0)
			err->index = (uint32_t)i;
	}
	return ret;
}
