// SPDX-License-Identifier: Apache-2.0
// Makes a device from devargs, and adds the arguments that a user need not know.
//
// EAL should be started with an allow list that matches nothing ("-a 0000:00:00.0"): with --no-pci no PCI device can be
// added later, and without either DPDK takes all of them at start.
#include "port/dpdk.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// af_packet's ring: a frame carries 66 bytes of the kernel's header before the packet's first byte (TPACKET2_HDRLEN,
// aligned, less the Ethernet header), and the driver wants it to fit a packet buffer with 32 bytes of that header.
#define AFP_HEADER 66
#define AFP_HEADER_SEEN 32
#define AFP_FRAME 2048 // the driver's default
#define AFP_QUEUES 16

static struct dpdk *owners[RTE_MAX_ETHPORTS];

static bool dpdk_is_driver(const char *name, const char *driver)
{
	size_t n = strlen(driver);

	return strncmp(name, driver, n) == 0 && (name[n] == '\0' || name[n] == ',' || isdigit((unsigned char)name[n]));
}

// The value of "key=" in devargs; returns false when it is not there or does not fit.
static bool dpdk_get_arg(const char *devargs, const char *key, char *value, size_t size)
{
	size_t n = strlen(key), len;
	const char *p;

	for (p = strchr(devargs, ','); p != NULL; p = strchr(p, ',')) {
		p++;
		if (strncmp(p, key, n) != 0 || p[n] != '=')
			continue;
		p += n + 1;
		len = strcspn(p, ",");
		if (len == 0 || len >= size)
			return false;
		snprintf(value, size, "%.*s", (int)len, p);
		return true;
	}
	return false;
}

static int dpdk_add_arg(char *args, size_t size, const char *key, unsigned value)
{
	char have[32];
	size_t n = strlen(args);

	if (dpdk_get_arg(args, key, have, sizeof(have)))
		return 0;
	return snprintf(args + n, size - n, ",%s=%u", key, value) < (int)(size - n) ? 0 : -E2BIG;
}

static int dpdk_number_arg(const char *args, const char *key, unsigned *value, struct error *err)
{
	char text[32], *end;

	if (!dpdk_get_arg(args, key, text, sizeof(text)))
		return 0;
	*value = (unsigned)strtoul(text, &end, 10);
	if (*end != '\0' || *value == 0 || *value > 1 << 24 || !isdigit((unsigned char)text[0]))
		return error_set(err, EINVAL, "dpdk.devargs", args, "a positive number", "%s=%s is not one", key, text);
	return 0;
}

static int af_packet_args(struct dpdk *d, char *args, size_t size, const struct port_config *cfg, struct error *err)
{
	unsigned room = port_pool_data_room() - RTE_PKTMBUF_HEADROOM;
	unsigned need = cfg->mtu + RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN + AFP_HEADER;
	unsigned frame = need <= AFP_FRAME ? AFP_FRAME : RTE_ALIGN(need, 1024u), block,
		 qpairs = RTE_MIN((unsigned)cfg->queues, (unsigned)AFP_QUEUES);
	char valid[64];

	if (dpdk_number_arg(args, "framesz", &frame, err) < 0)
		return -EINVAL;
	block = RTE_ALIGN(frame, 1024u) * 4; // a multiple of the page and of the frame
	if (dpdk_number_arg(args, "blocksz", &block, err) < 0 || dpdk_number_arg(args, "qpairs", &qpairs, err) < 0)
		return -EINVAL;
	if (qpairs > AFP_QUEUES)
		return error_set(err, EINVAL, "dpdk.devargs", args, "qpairs=1 to " RTE_STR(AFP_QUEUES),
				 "has too many queues");
	snprintf(valid, sizeof(valid), "framesz from %u, up to %u", need, room + AFP_HEADER_SEEN);
	if (frame < need)
		return error_set(err, EINVAL, "dpdk.devargs", args, valid, "a frame of MTU %u does not fit framesz=%u",
				 cfg->mtu, frame);
	if (frame > room + AFP_HEADER_SEEN) {
		snprintf(valid, sizeof(valid), "a packet buffer size from %u, or a smaller MTU",
			 frame - AFP_HEADER_SEEN);
		return error_set(err, EINVAL, "port.mtu", NULL, valid,
				 "af_packet's frame of %u bytes does not fit a packet buffer of %u", frame, room);
	}
	if (block % frame != 0 || block % (unsigned)getpagesize() != 0)
		return error_set(err, EINVAL, "dpdk.devargs", args,
				 "blocksz a multiple of framesz and of the page size",
				 "blocksz=%u is not a multiple of both", block);
	if (dpdk_add_arg(args, size, "qpairs", qpairs) < 0 || dpdk_add_arg(args, size, "framesz", frame) < 0 ||
	    dpdk_add_arg(args, size, "blocksz", block) < 0)
		return error_set(err, E2BIG, "dpdk.devargs", cfg->devargs, NULL, "is too long");
	d->frame_mtu = (uint16_t)RTE_MIN(frame - (need - cfg->mtu), (unsigned)UINT16_MAX);
	return 0;
}

static int dpdk_complete_args(struct dpdk *d, char *args, size_t size, const struct port_config *cfg, struct error *err)
{
	snprintf(args, size, "%s", cfg->devargs);
	if (dpdk_is_driver(args, "net_memif"))
		return error_set(err, EINVAL, "dpdk.devargs", cfg->devargs, "kind memif",
				 "DPDK's memif driver can crash when a peer disconnects; Corelane has its own");
	if (dpdk_is_driver(args, "net_af_packet"))
		return af_packet_args(d, args, size, cfg, err);
	if (dpdk_is_driver(args, "net_af_xdp") && cfg->queues > 1 &&
	    dpdk_add_arg(args, size, "queue_count", cfg->queues) < 0)
		return error_set(err, E2BIG, "dpdk.devargs", cfg->devargs, NULL, "is too long");
	return 0;
}

static int dpdk_probe_plug(struct dpdk *d, const char *args, struct error *err)
{
	if (dpdk_device_find(&d->dev)) { // EAL took it at start, or another port owns it
		if (owners[d->dev.id] != NULL)
			return error_set(err, EEXIST, "dpdk.devargs", args, "another device", "%s belongs to port %s",
					 d->dev.name, owners[d->dev.id]->port->cfg.name);
		return 0;
	}
	return dpdk_device_plug(&d->dev, args, "dpdk.devargs", err);
}

static int dpdk_take_netdev(struct dpdk *d, const char *args, struct error *err)
{
	if (!dpdk_is_driver(args, "net_af_packet") && !dpdk_is_driver(args, "net_af_xdp"))
		return 0;
	if (!dpdk_get_arg(args, "iface", d->netdev, sizeof(d->netdev)))
		return error_set(err, EINVAL, "dpdk.devargs", args, "iface= and the name of a network interface",
				 "does not name an interface");
	return dpdk_netdev_take(d, err);
}

int dpdk_probe(struct dpdk *d, const struct port_config *cfg, struct error *err)
{
	char args[sizeof(cfg->devargs) + 64];
	int ret = dpdk_complete_args(d, args, sizeof(args), cfg, err);

	if (ret == 0)
		ret = dpdk_device_parse(&d->dev, args, "dpdk.devargs", err);
	if (ret == 0)
		ret = dpdk_take_netdev(d, args, err);
	if (ret == 0)
		ret = dpdk_probe_plug(d, args, err);
	if (ret < 0)
		dpdk_netdev_release(d);
	else
		owners[d->dev.id] = d;
	return ret;
}

static bool dpdk_has_sibling(const struct dpdk *d)
{
	struct rte_eth_dev_info info;
	uint16_t id;

	RTE_ETH_FOREACH_DEV(id)
	if (rte_eth_dev_info_get(id, &info) == 0 && info.device == d->dev.device)
		return true;
	return false;
}

void dpdk_remove(struct dpdk *d)
{
	dpdk_wake_close(d->queues, PORT_MAX_QUEUES);
	rte_eth_dev_stop(d->dev.id);
	rte_eth_dev_close(d->dev.id);
	owners[d->dev.id] = NULL;
	if (!dpdk_has_sibling(d)) // one device may have several ports
		rte_dev_remove(d->dev.device);
	dpdk_netdev_release(d);
}
