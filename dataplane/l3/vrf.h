// SPDX-License-Identifier: Apache-2.0
// VRFs: routing instances, each with a RIB and a FIB per family. VRF 0, "fabric", is the underlay's.
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/field_limits.h"
#include "base/ip.h"
#include "base/referrer.h"
#include "l3/fib.h"
#include "l3/rib.h"

#define VRF_MAX (LIMIT_VRF_ID_MAX + 1)
#define VRF_NAME (NOTATION_NAME_LONGEST + 1)
#define VRF_FABRIC 0

struct vrf_fibs { // what workers see, indexed by VRF
	const struct fib *fib4, *fib6;
};
extern struct vrf_fibs vrf_fibs[VRF_MAX]; // workers: ro (RCU); an unknown VRF has the empty FIBs

struct vrf {
	char name[VRF_NAME];
	uint16_t id;
	uint8_t owner;      // base/owner.h
	struct fib *fib[2]; // IPv4, IPv6
	struct rib *rib[2];
	uint32_t refs; // held by the modules of vrf_refer()
	// Deleted, and being taken apart:
	struct vrf *next;
	uint64_t token;  // its readers have gone when this has passed (rcu_passed())
	uint64_t serial; // vrf_deletions when it was deleted
};

int vrf_init(struct error *err);
struct vrf *vrf_add(const char *name, uint32_t id, struct error *err); // id 0: the next free one
// Nobody finds the VRF any more. Its routes and their references to next hops go in shares of a few milliseconds.
int vrf_del(const char *name, struct error *err);
extern uint64_t vrf_deletions;          // so many VRFs were deleted; master only
bool vrf_has_routes(uint64_t serial);   // of the VRF deleted as this one: takes a share away; true: some are left
bool vrf_del_share(void);               // true: something is left of the VRFs that were deleted
void vrf_poll(void);                    // from the master's loop
struct vrf *vrf_get(uint16_t id);       // NULL if there is none
struct vrf *vrf_find(const char *name); // NULL if there is none
struct vrf *vrf_find_err(const char *name, const char *field, struct error *err); // NULL with err
struct vrf *vrf_next(const struct vrf *v);
unsigned vrf_count(void);

static inline unsigned family_index(uint8_t family)
{
	return family == IPV6;
}

// A prefix has one route. An origin replaces only its own route; another's is refused with -EEXIST.
int route_set(struct vrf *v, const struct ip_prefix *p, const struct rib_route *route, struct error *err);
int route_unset(struct vrf *v, const struct ip_prefix *p, uint8_t origin, struct error *err);
int route_check(struct vrf *v, const struct ip_prefix *p, uint8_t origin,
		struct error *err); // as route_set() would refuse it

// Other modules follow the routes.
struct vrf_listener {
	void (*route_changed)(uint16_t vrf); // decisions by its routes are stale
	struct vrf_listener *next;
};
void vrf_listen(struct vrf_listener *l);
void vrf_refer(struct referrer *r); // of a module that counts in vrf.refs

uint64_t route_count(uint8_t family);
const char *route_origin_name(uint8_t origin);
uint8_t route_origin_of(uint8_t owner); // of routes that a client adds (base/owner.h)
bool route_is_given(uint8_t origin);    // by a client; else the router has added it
