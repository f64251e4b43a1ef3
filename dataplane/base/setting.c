// SPDX-License-Identifier: Apache-2.0
// The list of registered settings, and how a value is read from and written to a variable of any width.
#include "base/setting.h"

#include <string.h>

static struct setting *settings; // sorted by name

void setting_register(struct setting *s)
{
	struct setting **at = &settings;

	while (*at && strcmp((*at)->name, s->name) < 0)
		at = &(*at)->next;
	s->next = *at;
	*at = s;
}

const struct setting *setting_next(const struct setting *after)
{
	return after ? after->next : settings;
}

const struct setting *setting_find(const char *name)
{
	const struct setting *s;

	for (s = settings; s && strcmp(s->name, name) != 0; s = s->next)
		;
	return s;
}

uint32_t setting_get(const struct setting *s)
{
	switch (s->type) {
	case SETTING_BOOL:
		return *(bool *)s->value;
	case SETTING_UINT8:
		return *(uint8_t *)s->value;
	case SETTING_UINT16:
		return *(uint16_t *)s->value;
	case SETTING_UINT32:
		return *(uint32_t *)s->value;
	case SETTING_LIST:
		break;
	}
	return 0;
}

static void setting_changed(const struct setting *s)
{
	if (s->changed)
		s->changed(s);
}

void setting_set(const struct setting *s, uint32_t value)
{
	switch (s->type) {
	case SETTING_BOOL:
		*(bool *)s->value = value != 0;
		break;
	case SETTING_UINT8:
		*(uint8_t *)s->value = (uint8_t)value;
		break;
	case SETTING_UINT16:
		*(uint16_t *)s->value = (uint16_t)value;
		break;
	case SETTING_UINT32:
		*(uint32_t *)s->value = value;
		break;
	case SETTING_LIST:
		return;
	}
	setting_changed(s);
}

const struct setting_list *setting_get_list(const struct setting *s)
{
	return s->value;
}

void setting_set_list(const struct setting *s, const uint32_t *values, uint32_t n)
{
	struct setting_list *l = s->value;

	if (n > 0) // values may be NULL
		memcpy(l->values, values, n * sizeof(*values));
	l->n = n;
	setting_changed(s);
}
