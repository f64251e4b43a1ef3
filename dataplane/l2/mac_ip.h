// SPDX-License-Identifier: Apache-2.0
// The IP addresses of stations whose MAC is given: what a bridge domain with neighbor suppression answers from.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_ether.h>

#include "base/error.h"
#include "base/field_limits.h"
#include "base/ip.h"

#define MAC_IP_MAX LIMIT_MAC_ADDRESSES_ITEMS // of one MAC
#define MAC_IP_TOTAL (1u << 16)              // in all domains together

// Workers: the MAC of an address in a domain. Of several stations that are given the same address, the latest counts.
bool mac_ip_find(uint16_t bridge, const struct ip_addr *addr, struct rte_ether_addr *out);

// Master thread. key: mac_key(). A MAC has no addresses before mac_ip_add(), which adds all or none.
int mac_ip_add(uint64_t key, const struct ip_addr *addrs, unsigned n, struct error *err);
void mac_ip_remove(uint64_t key);
unsigned mac_ip_get(uint64_t key, struct ip_addr out[MAC_IP_MAX]); // in the order in which they were given
