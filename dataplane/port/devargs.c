// SPDX-License-Identifier: Apache-2.0
// Translates the arguments that DPDK's memif driver takes, such as "net_memif0,role=server,id=0", into a memif port.
#include "port/devargs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_kvargs.h>

static int devargs_number(const char *text, unsigned long max, uint32_t *out)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	*out = (uint32_t)v;
	return *text >= '0' && *text <= '9' && *end == '\0' && v <= max ? 0 : -EINVAL;
}

static int devargs_ring_size(const char *log2, uint32_t *out)
{
	uint32_t v;

	if (devargs_number(log2, 31, &v) < 0)
		return -EINVAL;
	*out = 1u << v;
	return *out >= LIMIT_MEMIF_DEVICE_RING_SIZE_MIN && *out <= LIMIT_MEMIF_DEVICE_RING_SIZE_MAX ? 0 : -EINVAL;
}

static int devargs_buffer_size(const char *text, uint32_t *out)
{
	if (devargs_number(text, LIMIT_MEMIF_DEVICE_BUFFER_SIZE_MAX, out) < 0)
		return -EINVAL;
	if (*out == 0) // the default
		return 0;
	return *out >= LIMIT_MEMIF_DEVICE_BUFFER_SIZE_MIN && *out % LIMIT_MEMIF_DEVICE_BUFFER_SIZE_MULTIPLE_OF == 0
		       ? 0
		       : -EINVAL;
}

static int devargs_text(const char *value, char *dst, size_t size)
{
	return snprintf(dst, size, "%s", value) < (int)size ? 0 : -EINVAL;
}

static int devargs_one(const char *key, const char *value, void *arg)
{
	struct port_config *cfg = arg;

	if (value == NULL)
		return -EINVAL;
	if (strcmp(key, "role") == 0) {
		cfg->client = strcmp(value, "client") == 0;
		return cfg->client || strcmp(value, "server") == 0 ? 0 : -EINVAL;
	}
	if (strcmp(key, "id") == 0)
		return devargs_number(value, UINT32_MAX, &cfg->memif_id);
	if (strcmp(key, "bsize") == 0)
		return devargs_buffer_size(value, &cfg->buffer_size);
	if (strcmp(key, "rsize") == 0)
		return devargs_ring_size(value, &cfg->ring_size);
	if (strcmp(key, "secret") == 0)
		return devargs_text(value, cfg->secret, sizeof(cfg->secret));
	if (strcmp(key, "socket-abstract") == 0)
		return strcmp(value, "no") == 0 ? 0 : -EINVAL;
	return devargs_text(value, cfg->socket, sizeof(cfg->socket));
}

static int devargs_refuse(const char *devargs, struct error *err)
{
	char valid[sizeof(err->valid)];

	snprintf(valid, sizeof(valid),
		 "role=server|client,id=N,socket=PATH,secret=TEXT,rsize=%u..%u (log2),bsize=%d..%d (a multiple of %d),"
		 "socket-abstract=no",
		 rte_log2_u32(LIMIT_MEMIF_DEVICE_RING_SIZE_MIN), rte_log2_u32(LIMIT_MEMIF_DEVICE_RING_SIZE_MAX),
		 LIMIT_MEMIF_DEVICE_BUFFER_SIZE_MIN, LIMIT_MEMIF_DEVICE_BUFFER_SIZE_MAX,
		 LIMIT_MEMIF_DEVICE_BUFFER_SIZE_MULTIPLE_OF);
	return error_set(err, EINVAL, "port.dpdk.devargs", devargs, valid, "has an argument that memif does not take");
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
		return devargs_refuse(devargs, err);
	cfg->kind = "memif";
	return 1;
}
