// SPDX-License-Identifier: Apache-2.0
// Says in an error what names an object.
#include "base/referrer.h"

#include <errno.h>

int referrer_error(const struct referrer *list, uint32_t id, uint32_t references, const char *field, const char *name,
		   struct error *err)
{
	return referrer_error_of(list, id, references, field, name, "", err);
}

int referrer_error_of(const struct referrer *list, uint32_t id, uint32_t references, const char *field,
		      const char *name, const char *change, struct error *err)
{
	char text[128];

	while (list && !list->find(id, text, sizeof(text)))
		list = list->next;
	if (list == NULL)
		return error_set(err, EBUSY, field, name, NULL, "%sis in use (references: %u)", change, references);
	if (references > 1)
		return error_set(err, EBUSY, field, name, NULL, "%sis in use by %s (%u references in all)", change,
				 text, references);
	return error_set(err, EBUSY, field, name, NULL, "%sis in use by %s", change, text);
}
