// SPDX-License-Identifier: Apache-2.0
// Receive interrupts of DPDK devices. No driver reports beforehand whether it has them: they are tried once the device
// has started.
#include "port/dpdk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_interrupts.h>

#include "base/wake_fd.h"

static bool can_enable(struct dpdk_queue *q)
{
	int ret = rte_eth_dev_rx_intr_enable(q->device, q->index);

	if (ret == 0)
		rte_eth_dev_rx_intr_disable(q->device, q->index);
	return ret == 0;
}

// net_tap's vector is the descriptor that it reads from; it needs no enabling. It is watched by level, not by edge: the
// driver reads only after a signal has announced a packet, and another thread may get that signal after this one has
// looked.
static void open_tap(struct dpdk_queue *q)
{
	int fd = rte_eth_dev_rx_intr_ctl_q_get_fd(q->device, q->index);

	q->wake_fd = fd < 0 ? -1 : dup(fd);
	q->always_armed = true;
}

static void dpdk_wake_open_queue(struct dpdk_queue *q, const struct rte_eth_dev_info *info)
{
	int fd;

	if (strcmp(info->driver_name, "net_tap") == 0) {
		open_tap(q);
		return;
	}
	fd = wake_fd_new();
	if (fd < 0)
		return;
	if (rte_eth_dev_rx_intr_ctl_q(q->device, q->index, fd, RTE_INTR_EVENT_ADD, NULL) < 0) {
		close(fd);
		return;
	}
	q->wake_fd = fd;
	if (!can_enable(q))
		dpdk_wake_close(q, 1);
}

bool dpdk_has_one_interrupt(const char *root, const char *device)
{
	char path[160], driver[160];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/driver", root, device);
	n = readlink(path, driver, sizeof(driver) - 1);
	driver[n > 0 ? n : 0] = '\0';
	return strstr(driver, "/uio_pci_generic") || strstr(driver, "/igb_uio");
}

void dpdk_wake_open(struct dpdk_queue *queues, unsigned n, const struct rte_eth_dev_info *info)
{
	int log = rte_log_register("lib.ethdev"), level = log < 0 ? -1 : rte_log_get_level((uint32_t)log);
	unsigned i;

	if (level >= 0)
		rte_log_set_level((uint32_t)log, RTE_LOG_CRIT); // a device without interrupts is not an error
	for (i = 0; i < n; i++)
		dpdk_wake_open_queue(&queues[i], info);
	if (level >= 0)
		rte_log_set_level((uint32_t)log, (uint32_t)level);
}

void dpdk_wake_close(struct dpdk_queue *queues, unsigned n)
{
	struct dpdk_queue *q;

	for (q = queues; q < queues + n; q++) {
		if (q->wake_fd < 0)
			continue;
		if (!q->always_armed)
			rte_eth_dev_rx_intr_ctl_q(q->device, q->index, q->wake_fd, RTE_INTR_EVENT_DEL, NULL);
		close(q->wake_fd);
		q->wake_fd = -1;
	}
}

bool dpdk_wakes(const struct port_queue *pq)
{
	const struct dpdk_queue *q = pq->priv;

	return q->wake_fd >= 0;
}

int dpdk_arm(struct port_queue *pq)
{
	const struct dpdk_queue *q = pq->priv;
	int ret = 0;

	if (q->wake_fd < 0)
		return -ENOTSUP;
	if (!q->always_armed)
		ret = rte_eth_dev_rx_intr_enable(q->device, q->index);
	return ret < 0 ? -EIO : q->wake_fd;
}

int dpdk_disarm(struct port_queue *pq, bool signalled)
{
	const struct dpdk_queue *q = pq->priv;

	if (q->always_armed)
		return 0;
	rte_eth_dev_rx_intr_disable(q->device, q->index);
	return signalled ? wake_fd_rest(q->wake_fd) : 0;
}
