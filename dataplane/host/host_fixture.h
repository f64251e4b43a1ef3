// SPDX-License-Identifier: Apache-2.0
// For tests of the host nodes: the router of router_fixture.h with a host port on each fabric port, "host0" and
// "host1".
#pragma once

#include "host/host.h"
#include "testing/router_fixture.h"

int host_setup(void **state);        // setup of a test group
uint16_t host_port(uint16_t fabric); // id of the host port of a fabric port
