// SPDX-License-Identifier: Apache-2.0
// Listeners: how a module tells others what has happened without knowing them. The module that tells declares a struct of callbacks
// (NULL: this listener does not care), keeps the first one of a list, and walks the list when it has something to tell:
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
// Listeners are static memory of their module and stay for the life of the process. The master registers them before workers start.
#pragma once

// Puts l behind those that are listed already, so that they hear in the order in which they registered. A listener that is listed
// keeps its place: registering is idempotent.
#define LISTEN(list, l)                                         \
	do {                                                    \
		__typeof__(l) listener_ = (l), *end_ = &(list); \
		while (*end_ && *end_ != listener_)             \
			end_ = &(*end_)->next;                  \
		*end_ = listener_;                              \
	} while (0)
