// SPDX-License-Identifier: Apache-2.0
// Referrers: what names an object that must stay while something names it. The module that has the object does not know
// the others; each module whose objects name it registers a referrer in its list, by LISTEN() of base/notify.h.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct referrer {
	// Looks for an object of the module that names object id, and writes which one it is, such as "port 'vm1'".
	// Returns false if there is none.
	bool (*find)(uint32_t id, char *text, size_t size);
	struct referrer *next;
};

// The error of a request to delete an object that has references: "FIELD 'NAME': is in use by port 'vm1'". Returns
// -EBUSY. A request that would make something else of the object says before it what cannot be done, such as "cannot
// become a group, because it ".
int referrer_error(const struct referrer *list, uint32_t id, uint32_t references, const char *field, const char *name,
		   struct error *err);
int referrer_error_of(const struct referrer *list, uint32_t id, uint32_t references, const char *field,
		      const char *name, const char *change, struct error *err);
