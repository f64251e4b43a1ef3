// SPDX-License-Identifier: Apache-2.0
// Overlays: tables of labels and VNIs.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/field_limits.h"
#include "base/owner.h"

struct address_group;

#define LABEL_MAX (LIMIT_LABEL_LABEL_MAX + 1u)
#define VNI_MAX (LIMIT_VNI_VNI_MAX + 1u)

// The target of a label or VNI: one word, so that workers read it atomically.
enum target_kind { TARGET_NONE, TARGET_VRF, TARGET_BRIDGE, TARGET_NEXTHOP };
#define TARGET(kind, id) ((uint32_t)(kind) << 28 | (id))
#define TARGET_UNIFORM (1u << 27) // RFC 3443: the label's TTL is carried over to the inner header
#define TARGET_SOURCES (1u << 26) // accepted from the outer sources of an address group (tunnel_source_ok())
#define TARGET_ENDS (1u << 25)    // accepted from the remote ends of tunnels; without both: from any source
#define TARGET_FLAGS (TARGET_UNIFORM | TARGET_SOURCES | TARGET_ENDS)
#define TARGET_KIND(t) ((enum target_kind)((t) >> 28))
#define TARGET_OWNER_SHIFT 21 // base/owner.h; ids of next hops have 21 bits
#define TARGET_OWNED(owner) ((uint32_t)(owner) << TARGET_OWNER_SHIFT)
#define TARGET_OWNER(t) ((uint8_t)((t) >> TARGET_OWNER_SHIFT & (OWNERS - 1)))
#define TARGET_ID(t) ((t) & ((1u << TARGET_OWNER_SHIFT) - 1))

extern uint32_t *label_table;              // LABEL_MAX words. Master: rw, workers: ro
extern uint32_t *vni_pages[VNI_MAX >> 12]; // 4096 words each, NULL = no VNI in use. Master: rw, workers: ro (RCU)
extern uint8_t label_stack_depth;

static inline uint32_t vni_target(uint32_t vni)
{
	const uint32_t *page = __atomic_load_n(&vni_pages[vni >> 12], __ATOMIC_ACQUIRE);

	return page ? __atomic_load_n(&page[vni & 4095], __ATOMIC_RELAXED) : TARGET(TARGET_NONE, 0);
}

// Labels and VNIs in one space of numbers.
#define TUNNEL_ID_MAX (LABEL_MAX + VNI_MAX)
#define TUNNEL_ID_LABEL(label) (label)
#define TUNNEL_ID_VNI(vni) (LABEL_MAX + (vni))

// With TARGET_SOURCES or TARGET_ENDS: whether packets are accepted from the source of this outer IP header.
bool tunnel_source_ok(uint32_t tunnel_id, uint32_t target, const uint8_t *outer);

// Control plane: master thread only.
struct tunnel_target {
	uint32_t target;               // without TARGET_SOURCES
	struct address_group *sources; // NULL: none
	bool replace;
};

int overlay_init(struct error *err);
int label_add(uint32_t label, const struct tunnel_target *t, struct error *err); // -EEXIST if it is taken
int label_set(uint32_t label, uint32_t target, struct error *err);               // the same for any outer source
int label_unset(uint32_t label, struct error *err);
int vni_add(uint32_t vni, const struct tunnel_target *t, struct error *err);
int vni_set(uint32_t vni, uint32_t target, struct error *err);
int vni_unset(uint32_t vni, struct error *err);
struct address_group *tunnel_sources(uint32_t tunnel_id); // NULL: any
uint32_t label_next(uint32_t after);                      // the next label in use, LABEL_MAX = none
uint32_t vni_next(uint32_t after);                        // VNI_MAX = none
unsigned label_count(void);
unsigned vni_count(void);
