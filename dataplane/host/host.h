// SPDX-License-Identifier: Apache-2.0
// The host's own traffic: a host port gives the kernel an interface on a fabric port's link. Packets from the wire that
// are not tunnel packets go to the kernel (host_output), packets from the kernel go to the wire (host_input), and
// received ARP and ND go to the kernel and to the router (host_share). If there is a worker with the role host-path, it
// polls the host ports and makes all system calls for them.
#pragma once

#include "base/error.h"
#include "port/registry.h"

void host_init(void); // registers listeners for ports and workers
