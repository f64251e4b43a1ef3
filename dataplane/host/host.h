// SPDX-License-Identifier: Apache-2.0
// The host's own traffic: a host port gives the kernel an interface on a fabric port's link. What comes from the wire and is no tunnel goes
// to the kernel (host_output), what the kernel sends goes to the wire (host_input), ARP and ND go to both (host_share). With a worker of role
// host-path, that one polls the host ports and makes all system calls for them.
#pragma once

#include "base/error.h"
#include "port/registry.h"

void host_init(void); // follows the ports and the workers
