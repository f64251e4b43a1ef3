// SPDX-License-Identifier: Apache-2.0
// The kernel's side of a tap port: creation of the interface in any network namespace, its MTU.
#include "port/tap_device.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <net/if_arp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

// Since Linux 6.2; older headers do not have them.
#define OFFER_USO4 0x20
#define OFFER_USO6 0x40

// IFF_MULTI_QUEUE is for several queues only: with it the kernel makes queueing disciplines for 256 queues, which take
// memory, and time to create and delete an interface.
static int attach_queue(int fd, const struct tap_request *r, bool exclusive)
{
	struct ifreq ifr = {.ifr_flags = (short)(IFF_TAP | IFF_NO_PI | (r->queues > 1 ? IFF_MULTI_QUEUE : 0) |
						 (exclusive ? IFF_TUN_EXCL : 0) | (r->vnet ? IFF_VNET_HDR : 0))};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", r->ifname);
	return ioctl(fd, TUNSETIFF, &ifr) == 0 ? 0 : -errno;
}

static bool name_is_taken(int ret)
{
	return ret == -EBUSY || ret == -EEXIST || ret == -EINVAL;
}

// The first queue is that of a new interface, else of one that outlived the process that made it.
static int open_queue(const struct tap_request *r, bool first, bool *adopted, struct error *err)
{
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC), ret;

	if (fd < 0)
		return error_set(err, errno, "port.kind", "tap",
				 "a kernel with the tun module (modprobe tun), and the right to open it",
				 "/dev/net/tun cannot be opened: %s", strerror(errno));
	ret = attach_queue(fd, r, first);
	if (first && r->adopt && name_is_taken(ret)) {
		*adopted = true;
		ret = attach_queue(fd, r, false);
	}
	if (ret == 0)
		return fd;
	close(fd);
	if (name_is_taken(ret))
		return error_set(err, EEXIST, "tap.ifname", r->ifname, "a name that is free in the namespace",
				 "exists already");
	return error_set(err, -ret, "tap.ifname", r->ifname, "CAP_NET_ADMIN in the namespace", "cannot be created: %s",
			 strerror(-ret));
}

// The interface may have been renamed since it was created. A socket is not kept, because it would keep the namespace
// alive.
static int if_ioctl(int queue, unsigned long request, struct ifreq *ifr)
{
	struct ifreq name = {};
	int ctl, ret;

	if (ioctl(queue, TUNGETIFF, &name) < 0)
		return -errno;
	memcpy(ifr->ifr_name, name.ifr_name, sizeof(ifr->ifr_name));
	ctl = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (ctl < 0)
		return -errno;
	ret = ioctl(ctl, request, ifr) < 0 ? -errno : 0;
	close(ctl);
	return ret;
}

int tap_device_set_mtu(int fd, uint16_t mtu, struct error *err)
{
	struct ifreq ifr = {.ifr_mtu = mtu};
	int ret = if_ioctl(fd, SIOCSIFMTU, &ifr);
	char value[8];

	snprintf(value, sizeof(value), "%u", mtu);
	return ret == 0 ? 0
			: error_set(err, -ret, "port.mtu", value, NULL, "%.15s refuses it: %s", ifr.ifr_name,
				    strerror(-ret));
}

// To set the MAC that the interface has would cost the kernel's neighbours.
static bool has_mac(int fd, const struct tap_request *r)
{
	struct ifreq ifr = {};

	return if_ioctl(fd, SIOCGIFHWADDR, &ifr) == 0 && memcmp(ifr.ifr_hwaddr.sa_data, &r->mac, sizeof(r->mac)) == 0;
}

static int set_mac(int fd, const struct tap_request *r, struct error *err)
{
	struct ifreq ifr = {.ifr_hwaddr.sa_family = ARPHRD_ETHER};
	char text[18];
	int ret;

	if (has_mac(fd, r))
		return 0;
	memcpy(ifr.ifr_hwaddr.sa_data, &r->mac, sizeof(r->mac));
	ret = if_ioctl(fd, SIOCSIFHWADDR, &ifr);
	return ret == 0 ? 0
			: error_set(err, -ret, "port.guest_mac", mac_format(&r->mac, text), "a unicast address",
				    "%s refuses it: %s", r->ifname, strerror(-ret));
}

static int set_up(int fd, const struct tap_request *r, struct error *err)
{
	struct ifreq ifr = {};
	int ret = if_ioctl(fd, SIOCGIFFLAGS, &ifr);

	ifr.ifr_flags |= IFF_UP;
	if (ret == 0)
		ret = if_ioctl(fd, SIOCSIFFLAGS, &ifr);
	return ret == 0 ? 0
			: error_set(err, -ret, "tap.ifname", r->ifname, NULL, "cannot be brought up: %s",
				    strerror(-ret));
}

uint16_t tap_device_offer(int fd, bool large)
{
	const unsigned long tcp = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
	const uint16_t takes = PORT_TAKES_CHECKSUM | PORT_TAKES_TCP4 | PORT_TAKES_TCP6 | PORT_TAKES_ECN;

	if (large && ioctl(fd, TUNSETOFFLOAD, tcp | OFFER_USO4 | OFFER_USO6) == 0)
		return takes | PORT_TAKES_UDP4 | PORT_TAKES_UDP6;
	if (large && ioctl(fd, TUNSETOFFLOAD, tcp) == 0)
		return takes;
	return ioctl(fd, TUNSETOFFLOAD, (unsigned long)TUN_F_CSUM) == 0 ? PORT_TAKES_CHECKSUM : 0;
}

int tap_device_persist(int fd, bool on)
{
	return ioctl(fd, TUNSETPERSIST, (unsigned long)on) < 0 ? -errno : 0;
}

int tap_device_create(const struct tap_request *r, int fds[PORT_MAX_QUEUES], struct error *err)
{
	bool adopted = false;
	uint16_t n = 0;
	int ret = 0;

	while (n < r->queues && ret == 0) {
		fds[n] = open_queue(r, n == 0, &adopted, err);
		if (fds[n] < 0)
			ret = fds[n];
		else
			n++;
	}
	if (ret == 0)
		ret = tap_device_set_mtu(fds[0], r->mtu, err);
	if (ret == 0 && !rte_is_zero_ether_addr(&r->mac))
		ret = set_mac(fds[0], r, err);
	if (ret == 0 && !adopted) // somebody may have brought down one that was
		ret = set_up(fds[0], r, err);
	while (ret < 0 && n > 0)
		close(fds[--n]); // closing the last one removes the interface
	return ret;
}

int tap_device_netns(int fd, struct error *err)
{
	int netns = ioctl(fd, TUNGETDEVNETNS);

	if (netns >= 0)
		return netns;
	return errno == EPERM ? error_set(err, EPERM, "port.mtu", NULL, "CAP_NET_ADMIN in its namespace",
					  "the namespace of the interface cannot be entered")
			      : error_set(err, ENODEV, "port.mtu", NULL, NULL, "the interface has been deleted");
}

int tap_netns_open(const char *name, struct error *err)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s%s", strchr(name, '/') ? "" : "/run/netns/", name);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); // a FIFO would block
	if (fd < 0)
		return error_set(err, errno, "tap.netns", name, "a name of `ip netns list`, or a path",
				 "cannot be opened (%s): %s", path, strerror(errno));
	return fd;
}

// --- In a process that has all rights: a short-lived thread enters the namespace, and the process stays. ---

struct visit {
	int netns;
	const struct tap_request *create; // NULL: set the MTU
	int *fds;
	uint16_t mtu;
	struct error *err;
	int ret;
};

static void *visit_run(void *arg)
{
	struct visit *v = arg;

	if (v->netns >= 0 && setns(v->netns, CLONE_NEWNET) < 0)
		v->ret = error_set(v->err, errno, "tap.netns", v->create ? v->create->netns : NULL,
				   "a network namespace, and CAP_SYS_ADMIN to enter it", "cannot be entered: %s",
				   strerror(errno));
	else
		v->ret = v->create ? tap_device_create(v->create, v->fds, v->err)
				   : tap_device_set_mtu(v->fds[0], v->mtu, v->err);
	return NULL;
}

static int visit_netns(struct visit *v)
{
	pthread_t thread;
	int ret = pthread_create(&thread, NULL, visit_run, v);

	if (ret != 0)
		return error_set(v->err, ret, NULL, NULL, NULL, "no thread for a network namespace: %s", strerror(ret));
	pthread_join(thread, NULL);
	return v->ret;
}

static int create_directly(const struct tap_request *r, int fds[PORT_MAX_QUEUES], struct error *err)
{
	struct visit v = {.create = r, .fds = fds, .err = err};
	int ret;

	if (r->netns[0] == '\0')
		return tap_device_create(r, fds, err);
	v.netns = tap_netns_open(r->netns, err);
	if (v.netns < 0)
		return v.netns;
	ret = visit_netns(&v);
	close(v.netns);
	return ret;
}

static int set_mtu_directly(int fd, uint16_t mtu, struct error *err)
{
	struct visit v = {.fds = &fd, .mtu = mtu, .err = err, .netns = tap_device_netns(fd, err)};
	int ret;

	if (v.netns < 0)
		return v.netns;
	ret = visit_netns(&v);
	close(v.netns);
	return ret;
}

static void driver_directly(bool begin)
{
}

struct port_rights port_rights = {
	.tap_create = create_directly, .tap_set_mtu = set_mtu_directly, .driver = driver_directly};
