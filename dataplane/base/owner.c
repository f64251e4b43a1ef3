// SPDX-License-Identifier: Apache-2.0
#include "base/owner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/field_limits.h"

static char names[OWNERS][NOTATION_NAME_LONGEST + 1] = {[OWNER_API] = "api"};

// Lists of routes and next hops say by these words who has added them (route_origin_name()).
static const char *const reserved[] = {"system", "connected", "local", "guest"};

int owner_number(const char *name, uint8_t *out, struct error *err)
{
	unsigned i;

	for (i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
		if (strcmp(name, reserved[i]) == 0)
			return error_set(err, EINVAL, "owner", name, "another name",
					 "stands for what the router adds by itself");
	for (i = 0; i < OWNERS && names[i][0] && strcmp(names[i], name) != 0; i++)
		;
	if (i == OWNERS)
		return error_set(err, ENOSPC, "owner", name, "an owner that was named before",
				 "all %u owners of this process are taken", OWNERS);
	snprintf(names[i], sizeof(names[i]), "%s", name);
	*out = (uint8_t)i;
	return 0;
}

const char *owner_name(uint8_t owner)
{
	return names[owner];
}

int owner_check(uint8_t owner, uint8_t client, const char *field, const char *value, struct error *err)
{
	if (owner == client)
		return 0;
	return error_set(err, EPERM, field, value, NULL,
			 "belongs to owner '%s', and this client changes what belongs to '%s'", owner_name(owner),
			 owner_name(client));
}
