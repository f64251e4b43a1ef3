// SPDX-License-Identifier: Apache-2.0
// The counters of ports, and of drops by port, go on after a restart (keep/carry.h). Those of devices begin again.
#pragma once

#include <stdint.h>

void port_carry_init(void);

// The names of ports: parts that follow may have ids in their records.
void port_names_carry_init(void);
uint16_t port_names_carried(uint16_t was); // the present id of the port that had this one before; 0: it is gone
