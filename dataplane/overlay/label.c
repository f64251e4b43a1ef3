// SPDX-License-Identifier: Apache-2.0
// Tables of labels and VNIs: one word per entry, which workers read while the master writes.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_malloc.h>

#include "base/field_limits.h"
#include "base/setting.h"
#include "l3/nexthop.h"
#include "l3/vrf.h"
#include "l2/bridge.h"
#include "overlay/overlay.h"

uint32_t *label_table;
uint32_t *vni_pages[VNI_MAX >> 12];
uint8_t label_stack_depth = LIMIT_SETTINGS_LABEL_STACK_DEPTH_DEFAULT;
SETTING(label_stack_depth, label_stack_depth);
static unsigned n_labels, n_vnis;

int overlay_init(struct error *err)
{
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

static void write_word(uint32_t *word, uint32_t target)
{
	target_ref(target, 1);
	target_ref(*word, -1);
	__atomic_store_n(word, target, __ATOMIC_RELAXED);
}

int label_set(uint32_t label, uint32_t target, struct error *err)
{
	if (label_table[label])
		return label_refuse(EEXIST, "label.label", label, "a free label", "is taken", err);
	write_word(&label_table[label], target);
	n_labels++;
	return 0;
}

int label_unset(uint32_t label, struct error *err)
{
	if (label >= LABEL_MAX || label_table[label] == 0)
		return label_refuse(ENOENT, "label.label", label, NULL, "there is no such label", err);
	write_word(&label_table[label], TARGET(TARGET_NONE, 0));
	n_labels--;
	return 0;
}

int vni_set(uint32_t vni, uint32_t target, struct error *err)
{
	uint32_t *page;

	if (vni_target(vni))
		return label_refuse(EEXIST, "vni.vni", vni, "a free VNI", "is taken", err);
	page = vni_pages[vni >> 12];
	if (page == NULL) {
		page = rte_zmalloc("vnis", 4096 * sizeof(*page), RTE_CACHE_LINE_SIZE);
		if (page == NULL)
			return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for a VNI");
		__atomic_store_n(&vni_pages[vni >> 12], page, __ATOMIC_RELEASE); // never freed
	}
	write_word(&page[vni & 4095], target);
	n_vnis++;
	return 0;
}

int vni_unset(uint32_t vni, struct error *err)
{
	if (vni >= VNI_MAX || vni_target(vni) == 0)
		return label_refuse(ENOENT, "vni.vni", vni, NULL, "there is no such VNI", err);
	write_word(&vni_pages[vni >> 12][vni & 4095], TARGET(TARGET_NONE, 0));
	n_vnis--;
	return 0;
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
