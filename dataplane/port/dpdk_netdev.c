// SPDX-License-Identifier: Apache-2.0
// The kernel interface beneath af_packet and af_xdp. DPDK's drivers report neither its state nor an MTU
// above Ethernet's.
#include "port/dpdk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

// The interface may have been renamed since it was taken, and another one may have its name.
static int netdev_ioctl(const struct dpdk *d, unsigned long request, struct ifreq *ifr)
{
	struct ifreq now = {.ifr_ifindex = d->index};

	snprintf(now.ifr_name, sizeof(now.ifr_name), "%s", d->netdev);
	if (d->index > 0 && ioctl(d->ctl, SIOCGIFNAME, &now) < 0)
		return -errno;
	memcpy(ifr->ifr_name, now.ifr_name, sizeof(ifr->ifr_name));
	return ioctl(d->ctl, request, ifr) < 0 ? -errno : 0;
}

static int set_flag(const struct dpdk *d, short flag, bool on)
{
	struct ifreq ifr = {};
	int ret = netdev_ioctl(d, SIOCGIFFLAGS, &ifr);

	ifr.ifr_flags = (short)(on ? ifr.ifr_flags | flag : ifr.ifr_flags & ~flag);
	return ret < 0 ? ret : netdev_ioctl(d, SIOCSIFFLAGS, &ifr);
}

int dpdk_netdev_take(struct dpdk *d, struct error *err)
{
	struct ifreq index = {}, flags = {}, mtu = {};
	int ret;

	d->index = 0;
	d->ctl = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ret = d->ctl < 0 ? -errno : netdev_ioctl(d, SIOCGIFINDEX, &index);
	if (ret == 0)
		d->index = index.ifr_ifindex;
	if (ret == 0)
		ret = netdev_ioctl(d, SIOCGIFFLAGS, &flags);
	if (ret == 0)
		ret = netdev_ioctl(d, SIOCGIFMTU, &mtu);
	if (ret < 0)
		return error_set(err, -ret, "dpdk.devargs", d->netdev, "an interface of the daemon's network namespace",
				 "cannot be used: %s", strerror(-ret));
	d->old_mtu = mtu.ifr_mtu;
	// Before the driver binds its sockets: a socket bound to an interface that is down loses its first packets.
	d->raised = (flags.ifr_flags & IFF_UP) == 0;
	if (d->raised)
		ret = set_flag(d, IFF_UP, true);
	return ret == 0 ? 0
			: error_set(err, -ret, "dpdk.devargs", d->netdev, NULL, "cannot be brought up: %s",
				    strerror(-ret));
}

void dpdk_netdev_release(struct dpdk *d)
{
	struct ifreq ifr = {.ifr_mtu = d->old_mtu};

	if (d->ctl < 0)
		return;
	if (d->old_mtu > 0) // fails when the interface has gone: nothing is left to restore
		netdev_ioctl(d, SIOCSIFMTU, &ifr);
	if (d->raised)
		set_flag(d, IFF_UP, false);
	close(d->ctl);
	d->ctl = -1;
}

int dpdk_netdev_set_mtu(const struct dpdk *d, uint16_t mtu, struct error *err)
{
	struct ifreq ifr = {.ifr_mtu = mtu};
	char value[8], valid[64];
	int ret;

	snprintf(value, sizeof(value), "%u", mtu);
	snprintf(valid, sizeof(valid), "up to %u, or a new port with larger frames", d->frame_mtu);
	if (d->frame_mtu != 0 && mtu > d->frame_mtu)
		return error_set(err, EINVAL, "port.mtu", value, valid, "does not fit the frames of %s's ring",
				 d->netdev);
	ret = netdev_ioctl(d, SIOCSIFMTU, &ifr);
	return ret == 0 ? 0
			: error_set(err, -ret, "port.mtu", value, NULL, "%s refuses it: %s", d->netdev, strerror(-ret));
}

bool dpdk_netdev_up(const struct dpdk *d)
{
	struct ifreq ifr = {};

	return netdev_ioctl(d, SIOCGIFFLAGS, &ifr) == 0 &&
	       (ifr.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}
