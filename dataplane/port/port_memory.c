// SPDX-License-Identifier: Apache-2.0
// Reports that the peer of a port has taken away memory that it shares with the router.
#include <stdio.h>

#include "base/event.h"
#include "port/port.h"

EVENT_KIND(port_memory_lost, WARNING,
	   "The process behind a vhost-user or memif port took away memory that the router was using: it made the file "
	   "shorter, or the kernel had no page for it. It was disconnected, and may connect again; no other port comes "
	   "to harm. Memory in a memfd that is sealed against shrinking (F_SEAL_SHRINK; QEMU: memory-backend-memfd) "
	   "stays; hugepages need enough of them in the pool.");

// A peer may connect again and again.
void port_memory_lost(struct port *port, unsigned losses, unsigned *told)
{
	char subject[64];

	if (losses == 0 || losses < 2 * *told)
		return;
	*told = losses;
	snprintf(subject, sizeof(subject), "port %s", port->cfg.name);
	snprintf(port->last_error, sizeof(port->last_error), "shared memory was taken away");
	event_report(port_memory_lost, subject,
		     "the peer took memory away that it shares; valid is a file that keeps its size, such as a memfd "
		     "with F_SEAL_SHRINK; disconnected, %u times",
		     losses);
}
