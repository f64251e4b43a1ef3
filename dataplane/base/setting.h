// SPDX-License-Identifier: Apache-2.0
// Settings of the node: the fields of message Settings (api/system.proto). The module that keeps a value registers it,
// under the name of its field:
//
//	uint32_t mac_age_seconds = LIMIT_SETTINGS_MAC_AGE_SECONDS_DEFAULT;
//	SETTING(mac_age_seconds, mac_age_seconds);
//
// The accepted values of a field, its unit and its default are options of the field and stated nowhere else
// (base/field_limits.h has the numbers): a value that arrives here is in range. The order of registration does not
// matter. Master thread only.
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/field_limits.h"

#define SETTING_LIST_MAX LIMIT_SETTINGS_VXLAN_PORTS_ITEMS // of every list

enum setting_type { SETTING_BOOL, SETTING_UINT8, SETTING_UINT16, SETTING_UINT32, SETTING_LIST };

struct setting_list {
	uint32_t n;
	uint32_t values[SETTING_LIST_MAX];
};

struct setting {
	const char *name; // of the field
	enum setting_type type;
	void *value;                                // bool, uintN_t or struct setting_list
	const char *exclusive;                      // lists with the same word here have no value in common; NULL: any
	void (*changed)(const struct setting *own); // after the value was set; may be NULL
	struct setting *next;
};

void setting_register(struct setting *s); // before main()

const struct setting *setting_next(const struct setting *after); // by name; NULL gives the first; NULL: no more
const struct setting *setting_find(const char *name);            // NULL: unknown

// For all types but SETTING_LIST; a bool is 0 or 1. Workers may read a value while it is set: they see the old or the
// new one.
uint32_t setting_get(const struct setting *s);
void setting_set(const struct setting *s, uint32_t value);

// For SETTING_LIST; n <= SETTING_LIST_MAX.
const struct setting_list *setting_get_list(const struct setting *s);
void setting_set_list(const struct setting *s, const uint32_t *values, uint32_t n);

#define SETTING_TYPE(variable)              \
	_Generic((variable), bool           \
		 : SETTING_BOOL, uint8_t    \
		 : SETTING_UINT8, uint16_t  \
		 : SETTING_UINT16, uint32_t \
		 : SETTING_UINT32)

// Further members of struct setting may follow: SETTING(depth, label_depth, .changed = depth_changed).
#define SETTING(field, variable, ...)                                                               \
	static struct setting setting_##field = {                                                   \
		.name = #field, .type = SETTING_TYPE(variable), .value = &(variable), __VA_ARGS__}; \
	__attribute__((constructor)) static void setting_##field##_register(void)                   \
	{                                                                                           \
		setting_register(&setting_##field);                                                 \
	}                                                                                           \
	static_assert(1, "")
