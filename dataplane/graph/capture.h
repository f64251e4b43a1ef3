// SPDX-License-Identifier: Apache-2.0
// Where packets may be looked at: workers copy matching ones into a ring that the master empties.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

enum capture_point { CAPTURE_RX, CAPTURE_TX, CAPTURE_DROP };

extern bool capture_active; // master: rw, workers: ro

// Offers packets to the captures that are on. port: where they came in or leave; unused for drops.
void capture_batch(enum capture_point point, uint16_t port, struct rte_mbuf **pkts, unsigned n);
