// SPDX-License-Identifier: Apache-2.0
// Tables of labels and VNIs: one word per entry, which workers read while the master writes.
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_malloc.h>

#include "base/field_limits.h"
#include "base/rcu.h"
#include "base/setting.h"
#include "l3/nexthop.h"
#include "l3/tunnel_end.h"
#include "l3/vrf.h"
#include "l2/bridge.h"
#include "overlay/overlay.h"
#include "policy/address_set.h"

uint32_t *label_table;
uint32_t *vni_pages[VNI_MAX >> 12];
uint8_t label_stack_depth = LIMIT_SETTINGS_LABEL_STACK_DEPTH_DEFAULT;
SETTING(label_stack_depth, label_stack_depth);
static unsigned n_labels, n_vnis;

static_assert(NEXTHOP_MAX <= 1 << TARGET_OWNER_SHIFT, "a target has no bits for the ids of next hops");
static_assert(TARGET_OWNER_SHIFT + OWNER_BITS <= 25, "owners overlap the flags of a target");

// Ids of the address groups of labels and VNIs with TARGET_SOURCES, by tunnel id; NULL: none on that page. Pages are
// never freed. Master: rw, workers: ro.
#define SOURCES_PAGE 4096
static uint16_t *source_pages[TUNNEL_ID_MAX / SOURCES_PAGE];

// --- Which label or VNI names an object. ---

// Does the label or VNI of a word name object id?
typedef bool (*label_match)(uint32_t word, uint32_t tunnel_id, uint32_t id);

static bool label_find(label_match match, uint32_t id, char *text, size_t size)
{
	uint32_t label = label_next(0), vni = vni_next(0);

	while (label < LABEL_MAX && !match(label_table[label], TUNNEL_ID_LABEL(label), id))
		label = label_next(label);
	if (label < LABEL_MAX) {
		snprintf(text, size, "label %u", label);
		return true;
	}
	while (vni < VNI_MAX && !match(vni_target(vni), TUNNEL_ID_VNI(vni), id))
		vni = vni_next(vni);
	snprintf(text, size, "VNI %u", vni);
	return vni < VNI_MAX;
}

static bool label_leads_to(uint32_t word, enum target_kind kind, uint32_t id)
{
	return TARGET_KIND(word) == kind && TARGET_ID(word) == id;
}

static bool label_has_vrf(uint32_t word, uint32_t tunnel_id, uint32_t id)
{
	return label_leads_to(word, TARGET_VRF, id);
}

static bool label_has_bridge(uint32_t word, uint32_t tunnel_id, uint32_t id)
{
	return label_leads_to(word, TARGET_BRIDGE, id);
}

static bool label_has_nexthop(uint32_t word, uint32_t tunnel_id, uint32_t id)
{
	return label_leads_to(word, TARGET_NEXTHOP, id);
}

static bool label_has_sources(uint32_t word, uint32_t tunnel_id, uint32_t id)
{
	return (word & TARGET_SOURCES) && tunnel_sources(tunnel_id)->id == id;
}

static bool label_find_vrf(uint32_t id, char *text, size_t size)
{
	return label_find(label_has_vrf, id, text, size);
}

static bool label_find_bridge(uint32_t id, char *text, size_t size)
{
	return label_find(label_has_bridge, id, text, size);
}

static bool label_find_nexthop(uint32_t id, char *text, size_t size)
{
	return label_find(label_has_nexthop, id, text, size);
}

static bool label_find_sources(uint32_t id, char *text, size_t size)
{
	return label_find(label_has_sources, id, text, size);
}

static void labels_refer(void)
{
	static struct referrer of_vrfs = {.find = label_find_vrf}, of_bridges = {.find = label_find_bridge},
			       of_nexthops = {.find = label_find_nexthop}, of_groups = {.find = label_find_sources};

	vrf_refer(&of_vrfs);
	bridge_refer(&of_bridges);
	nexthop_refer(&of_nexthops);
	address_group_refer(&of_groups);
}

int overlay_init(struct error *err)
{
	labels_refer();
	label_table = rte_zmalloc("labels", LABEL_MAX * sizeof(*label_table), RTE_CACHE_LINE_SIZE);
	return label_table ? 0 : error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for the label table");
}

static void target_ref(uint32_t target, int step)
{
	uint32_t id = TARGET_ID(target);

	switch (TARGET_KIND(target)) {
	case TARGET_NONE:
		break;
	case TARGET_VRF:
		vrf_get((uint16_t)id)->refs += (uint32_t)step;
		break;
	case TARGET_BRIDGE:
		bridge_get((uint16_t)id)->refs += (uint32_t)step;
		break;
	case TARGET_NEXTHOP:
		step > 0 ? nexthop_ref(id) : nexthop_unref(id);
		break;
	}
}

static int label_refuse(int code, const char *field, uint32_t value, const char *valid, const char *text,
			struct error *err)
{
	char buf[16];

	snprintf(buf, sizeof(buf), "%u", value);
	return error_set(err, code, field, buf, valid, "%s", text);
}

static uint16_t sources_get(uint32_t tunnel_id)
{
	const uint16_t *page = __atomic_load_n(&source_pages[tunnel_id / SOURCES_PAGE], __ATOMIC_ACQUIRE);

	return page ? __atomic_load_n(&page[tunnel_id % SOURCES_PAGE], __ATOMIC_RELAXED) : 0;
}

bool tunnel_source_ok(uint32_t tunnel_id, uint32_t target, const uint8_t *outer)
{
	struct ip_addr source =
		(outer[0] >> 4) == 4 ? ip4_addr(*(const unaligned_uint32_t *)(outer + 12)) : ip6_addr(outer + 8);
	const struct address_set *s;

	if ((target & TARGET_ENDS) && tunnel_end_sends(&source))
		return true;
	if (!(target & TARGET_SOURCES))
		return false;
	__atomic_thread_fence(__ATOMIC_ACQUIRE); // target_write() wrote the group before the word
	s = rcu_read(address_sets[sources_get(tunnel_id)]);
	return s && address_set_has(s, &source); // none: the label was changed a moment ago
}

struct address_group *tunnel_sources(uint32_t tunnel_id)
{
	return address_group_get(sources_get(tunnel_id));
}

static int sources_page_add(uint32_t tunnel_id, struct error *err)
{
	uint16_t **page = &source_pages[tunnel_id / SOURCES_PAGE], *added;

	if (*page)
		return 0;
	added = calloc(SOURCES_PAGE, sizeof(*added));
	if (added == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for the sources of a label or VNI");
	__atomic_store_n(page, added, __ATOMIC_RELEASE);
	return 0;
}

static void sources_set(uint32_t tunnel_id, uint16_t group)
{
	if (source_pages[tunnel_id / SOURCES_PAGE])
		__atomic_store_n(&source_pages[tunnel_id / SOURCES_PAGE][tunnel_id % SOURCES_PAGE], group,
				 __ATOMIC_RELAXED);
}

// Workers must find the group whenever they read a word with TARGET_SOURCES.
static int target_write(uint32_t *word, uint32_t tunnel_id, const struct tunnel_target *t, struct error *err)
{
	struct address_group *old = tunnel_sources(tunnel_id);
	int ret = t->sources ? sources_page_add(tunnel_id, err) : 0;

	if (ret == 0 && t->sources)
		ret = address_group_hold(t->sources, err);
	if (ret < 0)
		return ret;
	target_ref(t->target, 1);
	target_ref(*word & ~TARGET_SOURCES, -1);
	if (t->sources)
		sources_set(tunnel_id, t->sources->id);
	__atomic_store_n(word, t->target | (t->sources ? TARGET_SOURCES : 0), __ATOMIC_RELEASE);
	if (t->sources == NULL)
		sources_set(tunnel_id, 0);
	if (old)
		address_group_release(old);
	return 0;
}

static int target_clear(uint32_t *word, uint32_t tunnel_id)
{
	return target_write(word, tunnel_id, &(struct tunnel_target){.target = TARGET(TARGET_NONE, 0)}, NULL);
}

int label_add(uint32_t label, const struct tunnel_target *t, struct error *err)
{
	bool added = label_table[label] == 0;
	int ret;

	if (!added && !t->replace)
		return label_refuse(EEXIST, "label.label", label, "a free label, or replace", "is taken", err);
	ret = target_write(&label_table[label], TUNNEL_ID_LABEL(label), t, err);
	n_labels += ret == 0 && added;
	return ret;
}

int label_set(uint32_t label, uint32_t target, struct error *err)
{
	return label_add(label, &(struct tunnel_target){.target = target}, err);
}

int label_unset(uint32_t label, struct error *err)
{
	if (label >= LABEL_MAX || label_table[label] == 0)
		return label_refuse(ENOENT, "label.label", label, NULL, "there is no such label", err);
	n_labels--;
	return target_clear(&label_table[label], TUNNEL_ID_LABEL(label));
}

int vni_add(uint32_t vni, const struct tunnel_target *t, struct error *err)
{
	bool added = vni_target(vni) == 0;
	uint32_t *page;
	int ret;

	if (!added && !t->replace)
		return label_refuse(EEXIST, "vni.vni", vni, "a free VNI, or replace", "is taken", err);
	page = vni_pages[vni >> 12];
	if (page == NULL) {
		page = rte_zmalloc("vnis", 4096 * sizeof(*page), RTE_CACHE_LINE_SIZE);
		if (page == NULL)
			return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a VNI");
		__atomic_store_n(&vni_pages[vni >> 12], page, __ATOMIC_RELEASE); // never freed
	}
	ret = target_write(&page[vni & 4095], TUNNEL_ID_VNI(vni), t, err);
	n_vnis += ret == 0 && added;
	return ret;
}

int vni_set(uint32_t vni, uint32_t target, struct error *err)
{
	return vni_add(vni, &(struct tunnel_target){.target = target}, err);
}

int vni_unset(uint32_t vni, struct error *err)
{
	if (vni >= VNI_MAX || vni_target(vni) == 0)
		return label_refuse(ENOENT, "vni.vni", vni, NULL, "there is no such VNI", err);
	n_vnis--;
	return target_clear(&vni_pages[vni >> 12][vni & 4095], TUNNEL_ID_VNI(vni));
}

uint32_t label_next(uint32_t after)
{
	uint32_t i = after + 1;

	while (i < LABEL_MAX && label_table[i] == 0)
		i++;
	return i;
}

uint32_t vni_next(uint32_t after)
{
	uint32_t i = after + 1;

	while (i < VNI_MAX) {
		if (vni_pages[i >> 12] == NULL)
			i = ((i >> 12) + 1) << 12;
		else if (vni_target(i) == 0)
			i++;
		else
			break;
	}
	return i;
}

unsigned label_count(void)
{
	return n_labels;
}

unsigned vni_count(void)
{
	return n_vnis;
}
