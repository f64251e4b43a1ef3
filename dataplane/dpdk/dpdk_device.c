// SPDX-License-Identifier: Apache-2.0
// Parses the arguments of a device, finds it among the devices that exist, and plugs it in.
#include "dpdk/dpdk_device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_devargs.h>

int dpdk_device_parse(struct dpdk_device *d, const char *args, const char *field, struct error *err)
{
	struct rte_devargs da = {};

	if (args[0] == '\0' || args[strcspn(args, " \t\n")] != '\0' || rte_devargs_parse(&da, args) < 0)
		return error_set(err, EINVAL, field, args, DPDK_DEVICE_VALID, "is not a device that DPDK knows");
	snprintf(d->name, sizeof(d->name), "%s", da.name);
	rte_devargs_reset(&da);
	return 0;
}

bool dpdk_device_find(struct dpdk_device *d)
{
	struct rte_eth_dev_info info;
	uint16_t id;

	RTE_ETH_FOREACH_DEV(id)
	{
		if (rte_eth_dev_info_get(id, &info) == 0 && info.device != NULL &&
		    strcmp(rte_dev_name(info.device), d->name) == 0) {
			d->id = id;
			d->device = info.device;
			return true;
		}
	}
	return false;
}

int dpdk_device_plug(struct dpdk_device *d, const char *args, const char *field, struct error *err)
{
	int ret;

	if (rte_eth_dev_count_total() >= RTE_MAX_ETHPORTS)
		return error_set(err, ENOSPC, field, args, NULL, "this build of DPDK has room for %u devices",
				 RTE_MAX_ETHPORTS);
	ret = rte_dev_probe(args);
	if (ret < 0)
		return error_set(err, -ret, field, args, DPDK_DEVICE_VALID,
				 "DPDK cannot take the device: %s (its log says more)", strerror(-ret));
	if (!dpdk_device_find(d))
		return error_set(err, ENODEV, field, args, DPDK_DEVICE_VALID, "is not a network device");
	return 0;
}
