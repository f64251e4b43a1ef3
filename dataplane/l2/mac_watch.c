// SPDX-License-Identifier: Apache-2.0
#include "l2/mac_watch.h"

#include <stddef.h>

#include "base/notify.h"

static struct mac_change mac_changes[MAC_CHANGES];
static uint64_t mac_changes_n;
static struct mac_change_listener *listeners;

void mac_change_note(enum mac_change_kind kind, uint64_t key, uint64_t target)
{
	const struct mac_change_listener *l;

	mac_changes[mac_changes_n++ % MAC_CHANGES] = (struct mac_change){.key = key, .target = target, .kind = kind};
	for (l = listeners; l; l = l->next)
		l->noted();
}

uint64_t mac_change_last(void)
{
	return mac_changes_n;
}

const struct mac_change *mac_change_get(uint64_t number)
{
	if (number == 0 || number > mac_changes_n || mac_changes_n - number >= MAC_CHANGES)
		return NULL;
	return &mac_changes[(number - 1) % MAC_CHANGES];
}

void mac_change_listen(struct mac_change_listener *l)
{
	LISTEN(listeners, l);
}
