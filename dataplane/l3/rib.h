// SPDX-License-Identifier: Apache-2.0
// RIB: the control plane's copy of the routes of one VRF and family, ordered by prefix (address, then length).
// Master thread only. A Patricia trie: exact match, next shorter cover, ordered iteration that survives changes.
#pragma once

#include <stdint.h>

#include "base/ip.h"

// ROUTE_OWNED + N: of the client whose owner is N (base/owner.h); ROUTE_API: of those that name none
enum route_origin { ROUTE_API, ROUTE_CONNECTED, ROUTE_LOCAL, ROUTE_GUEST, ROUTE_OWNED };

struct rib_route {
	uint32_t nexthop;
	uint8_t origin; // enum route_origin
};

struct rib;

struct rib *rib_create(enum family family); // NULL: no memory
void rib_destroy(struct rib *rib);
uint32_t rib_count(const struct rib *rib);
uint64_t rib_memory(void); // bytes of all RIBs

// The route of exactly this prefix, or NULL.
struct rib_route *rib_get(const struct rib *rib, const struct ip_prefix *p);
// Adds the prefix, or returns its entry if it has one; *created says which. NULL: no memory.
struct rib_route *rib_add(struct rib *rib, const struct ip_prefix *p, bool *created);
int rib_del(struct rib *rib, const struct ip_prefix *p); // -ENOENT
// The longest route that is shorter than p and contains it, or NULL; its prefix goes to *cover.
struct rib_route *rib_cover(const struct rib *rib, const struct ip_prefix *p, struct ip_prefix *cover);
// The longest route that contains addr, or NULL.
struct rib_route *rib_match(const struct rib *rib, const struct ip_addr *addr, struct ip_prefix *match);
// The first route after *p in order (p = NULL: the first one), or NULL; *p may have been deleted meanwhile.
struct rib_route *rib_next(const struct rib *rib, const struct ip_prefix *p, struct ip_prefix *out);
