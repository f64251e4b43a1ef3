// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gen_port.h"

struct memif_if;

int memif_port_open(struct gen_port **port, const struct port_config *cfg, struct error *err); // as client
int memif_server_open(struct gen_port **port, const struct port_config *cfg, struct error *err);

// What both roles have in common; up, down and failed are still to be set.
void memif_config(struct memif_if *mif, const struct port_config *cfg, void *arg);
