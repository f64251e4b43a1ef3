// SPDX-License-Identifier: Apache-2.0
// Neighbours that were resolved are known after a restart (keep/carry.h), and age on: nothing is asked again at once.
// Permanent ones are configured, and come back with the configuration.
#pragma once

void neighbor_carry_init(void); // after port_names_carry_init()
