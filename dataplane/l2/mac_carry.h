// SPDX-License-Identifier: Apache-2.0
// Learnt MACs are known after a restart (keep/carry.h), and age on: nothing is flooded because of it.
#pragma once

void mac_carry_init(void); // after port_names_carry_init()
