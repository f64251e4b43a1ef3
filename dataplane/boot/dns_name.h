// SPDX-License-Identifier: Apache-2.0
// Names of hosts and domains as DNS has them on the wire (RFC 1035, 3.1).
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DNS_NAME_LONGEST 255

// Writes the labels of a name that has been checked ("red.example"), each behind its length, without the empty one that
// ends a whole name. Returns their bytes: two less than DNS_NAME_LONGEST at most for a name of 253 characters.
static inline size_t dns_labels(const char *name, uint8_t out[DNS_NAME_LONGEST])
{
	size_t n, len = 0;

	for (;; name += n + 1) {
		n = strcspn(name, ".");
		if (n == 0)
			return len;
		out[len] = (uint8_t)n;
		memcpy(out + len + 1, name, n);
		len += n + 1;
		if (name[n] == '\0')
			return len;
	}
}
