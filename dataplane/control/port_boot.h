// SPDX-License-Identifier: Apache-2.0
// What a port tells its guest when it boots, as fields of the port's message.
#pragma once

#include "boot/boot.h"
#include "control/port_message.h"

int port_boot_addresses(const PbPort *in, struct boot_config *b, struct error *err);
int port_boot_routes(const PbPort *in, struct boot_config *b, struct error *err);
int port_boot_server(const PbPort *in, struct boot_config *b, struct error *err);
// A list of addresses; *n_out is the length of the list that it replaces.
int port_boot_hosts(const char *field, char **in, size_t n, struct ip_addr *out, uint8_t *n_out, struct error *err);
int port_boot_domain(const char *field, const char *text, char *out, size_t size, struct error *err);
void port_encode_boot(struct api_call *call, const struct boot_config *b, PbPort *out);
