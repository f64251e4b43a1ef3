// SPDX-License-Identifier: Apache-2.0
#include "port/devargs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_kvargs.h>

#define VALID "role=server|client,id=N,socket=PATH,secret=TEXT,rsize=LOG2,bsize=BYTES,socket-abstract=no"

static int devargs_number(const char *text, unsigned long max, uint32_t *out)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	*out = (uint32_t)v;
	return *text >= '0' && *text <= '9' && *end == '\0' && v <= max ? 0 : -EINVAL;
}

static int devargs_text(const char *value, char *dst, size_t size)
{
	return snprintf(dst, size, "%s", value) < (int)size ? 0 : -EINVAL;
}

static int devargs_one(const char *key, const char *value, void *arg)
{
	struct port_config *cfg = arg;
	uint32_t log2;

	if (value == NULL)
		return -EINVAL;
	if (strcmp(key, "role") == 0) {
		cfg->client = strcmp(value, "client") == 0;
		return cfg->client || strcmp(value, "server") == 0 ? 0 : -EINVAL;
	}
	if (strcmp(key, "id") == 0)
		return devargs_number(value, UINT32_MAX, &cfg->memif_id);
	if (strcmp(key, "bsize") == 0)
		return devargs_number(value, 65535, &cfg->buffer_size);
	if (strcmp(key, "rsize") == 0) {
		if (devargs_number(value, 14, &log2) < 0)
			return -EINVAL;
		cfg->ring_size = 1u << log2;
		return 0;
	}
	if (strcmp(key, "secret") == 0)
		return devargs_text(value, cfg->secret, sizeof(cfg->secret));
	if (strcmp(key, "socket-abstract") == 0)
		return strcmp(value, "no") == 0 ? 0 : -EINVAL;
	return devargs_text(value, cfg->socket, sizeof(cfg->socket));
}

int devargs_memif(const char *devargs, struct port_config *cfg, struct error *err)
{
	static const char *const keys[] = {"role", "id", "socket", "secret", "rsize", "bsize", "socket-abstract", NULL};
	const char *args = strchr(devargs, ',');
	struct rte_kvargs *kv;
	int ret;

	if (strncmp(devargs, "net_memif", 9) != 0)
		return 0;
	kv = rte_kvargs_parse(args ? args + 1 : "", keys);
	ret = kv ? rte_kvargs_process(kv, NULL, devargs_one, cfg) : -1;
	rte_kvargs_free(kv);
	if (ret < 0)
		return error_set(err, EINVAL, "port.dpdk.devargs", devargs, VALID, "has an argument that memif does not take");
	cfg->kind = "memif";
	return 1;
}
