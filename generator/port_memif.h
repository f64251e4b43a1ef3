// SPDX-License-Identifier: Apache-2.0
// memif ports, as client and as server.
#pragma once

#include "gen_port.h"

struct memif_if;

int memif_port_open(struct gen_port **port, const struct port_config *cfg, struct error *err); // as client
int memif_server_open(struct gen_port **port, const struct port_config *cfg, struct error *err);

// Fills in the configuration that both roles share; the caller sets the callbacks up, down and failed.
void memif_config(struct memif_if *mif, const struct port_config *cfg, void *arg);
