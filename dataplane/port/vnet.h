// SPDX-License-Identifier: Apache-2.0
// What a guest or the kernel says about a frame in its virtio-net header (virtio 1.2, section 5.1.6), and the marks of
// the packet that follow from it (base/offload.h). All that it says may be a lie: each is a drop reason.
#pragma once

#include <linux/virtio_net.h>

#include <rte_mbuf.h>

#include "graph/drop.h"

#define VNET_GSO_UDP_L4 5                        // VIRTIO_NET_HDR_GSO_UDP_L4, which older headers do not have
#define VNET_LONGEST (UINT16_MAX + 14u + 2 * 4u) // a frame with the largest IP packet

// Marks a received frame by its header, which has the byte order of this machine. Returns NULL, or why the frame must
// be dropped. A checksum that no mark can describe (of a tunnel's inner packet, for example) is computed here.
const struct drop_reason *vnet_read(struct rte_mbuf *m, const struct virtio_net_hdr *h);

// The same for a frame that librte_vhost has marked (RTE_VHOST_USER_NET_COMPLIANT_OL_FLAGS).
const struct drop_reason *vnet_read_marks(struct rte_mbuf *m);

// Writes the header of an unfinished frame, and the sum of the pseudo header into its checksum field. The frame must
// have passed vnet_read(), or be cut or joined from such frames.
void vnet_write(struct rte_mbuf *m, struct virtio_net_hdr *h);

// Sets l2_len and the checksum field as librte_vhost wants them for an unfinished frame that is sent.
void vnet_write_marks(struct rte_mbuf *m);
