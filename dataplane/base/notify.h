// SPDX-License-Identifier: Apache-2.0
// Listeners: a module notifies others without knowing them. It declares a struct of callbacks (NULL: this listener does
// not need the call), keeps the head of a list, and walks the list when something has happened:
//
//	struct vrf_listener {
//		void (*route_changed)(uint16_t vrf);
//		struct vrf_listener *next;
//	};
//	void vrf_listen(struct vrf_listener *l);
//
//	static struct vrf_listener *listeners;
//
//	void vrf_listen(struct vrf_listener *l)
//	{
//		LISTEN(listeners, l);
//	}
//	...
//	for (l = listeners; l; l = l->next)
//		if (l->route_changed)
//			l->route_changed(v->id);
//
// Listeners are static memory of their module and stay for the life of the process. The master registers them before it
// starts workers.
#pragma once

// Appends l, so that listeners are called in the order of registration. A listener that is already in the list keeps
// its place: registering is idempotent.
#define LISTEN(list, l)                                         \
	do {                                                    \
		__typeof__(l) listener_ = (l), *end_ = &(list); \
		while (*end_ && *end_ != listener_)             \
			end_ = &(*end_)->next;                  \
		*end_ = listener_;                              \
	} while (0)
