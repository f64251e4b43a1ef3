// SPDX-License-Identifier: Apache-2.0
// Devices of DPDK that are plugged in by their arguments. Errors blame `field`.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_dev.h>
#include <rte_ethdev.h>

#include "base/error.h"

#define DPDK_DEVICE_VALID \
	"a PCI address bound to a DPDK driver (0000:3b:00.0), or a virtual device (net_af_packet0,iface=eth1)"

struct dpdk_device {
	char name[RTE_DEV_NAME_MAX_LEN];
	uint16_t id; // of its first port
	struct rte_device *device;
};

int dpdk_device_parse(struct dpdk_device *d, const char *args, const char *field, struct error *err); // sets d->name
bool dpdk_device_find(struct dpdk_device *d); // by its name; sets id and device
int dpdk_device_plug(struct dpdk_device *d, const char *args, const char *field, struct error *err); // and finds it
