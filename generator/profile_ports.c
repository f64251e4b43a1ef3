// SPDX-License-Identifier: Apache-2.0
// Checks the ports of a profile.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profile.h"

static int get_memif(const Corelane__V1__GeneratorMemif *in, struct port_config *out, struct error *err)
{
	uint32_t ring = in->ring_size ? in->ring_size : 1024, queues = in->queues ? in->queues : 1;

	if (in->socket[0] != '/' || strlen(in->socket) >= sizeof(out->socket))
		return error_set(err, EINVAL, "ports.memif.socket", in->socket,
				 "an absolute path of up to 107 characters", "is not a socket path");
	if (!rte_is_power_of_2(ring) || ring < 64 || ring > 16384)
		return refuse_number(err, "ports.memif.ring_size", ring, "a power of two from 64 to 16384",
				     "is not a ring size");
	if (queues > PORT_QUEUES)
		return refuse_number(err, "ports.memif.queues", queues, "1 to 16", "are too many queues");
	snprintf(out->socket, sizeof(out->socket), "%s", in->socket);
	out->id = in->id;
	out->server = in->server;
	out->ring_size = ring;
	out->queues = queues;
	return 0;
}

static int get_devargs(const char *in, struct port_config *out, struct error *err)
{
	if (in[0] == '\0' || strlen(in) >= sizeof(out->devargs))
		return error_set(err, EINVAL, "ports.devargs", in, "a DPDK device, up to 255 characters",
				 "is not a DPDK device");
	snprintf(out->devargs, sizeof(out->devargs), "%s", in);
	out->queues = 1;
	out->ring_size = 1024; // descriptors
	return 0;
}

static int profile_ports_get_port(const Corelane__V1__GeneratorPort *in, struct port_config *out, struct error *err)
{
	if (in->name[0] == '\0' || strlen(in->name) >= sizeof(out->name))
		return error_set(err, EINVAL, "ports.name", in->name, "1 to 63 characters", "is not a name");
	snprintf(out->name, sizeof(out->name), "%s", in->name);
	out->room = PORT_ROOM;
	switch (in->device_case) {
	case CORELANE__V1__GENERATOR_PORT__DEVICE_MEMIF:
		return get_memif(in->memif, out, err);
	case CORELANE__V1__GENERATOR_PORT__DEVICE_DEVARGS:
		return get_devargs(in->devargs, out, err);
	default:
		return error_set(err, EINVAL, "ports.device", in->name, "memif or devargs", "has no device");
	}
}

int profile_ports(const Corelane__V1__GeneratorProfile *in, struct port_config *out, struct error *err)
{
	size_t i, j;
	int ret = 0;

	if (in->n_ports == 0 || in->n_ports > PROFILE_PORTS)
		return refuse_number(err, "ports", in->n_ports, "1 to 64", "is not a valid number of ports");
	for (i = 0; i < in->n_ports && ret == 0; i++) {
		ret = profile_ports_get_port(in->ports[i], &out[i], err);
		for (j = 0; j < i && ret == 0; j++)
			if (strcmp(out[i].name, out[j].name) == 0)
				ret = error_set(err, EEXIST, "ports.name", out[i].name, "a unique name",
						"is the name of two ports");
		if (ret < 0)
			err->index = (uint32_t)i;
	}
	return ret;
}
