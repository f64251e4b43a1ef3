// SPDX-License-Identifier: Apache-2.0
#include "api/utf8.h"

#include <stdint.h>

// Length of the character at s, 0 when it is not one (RFC 3629: shortest form, no surrogates, up to U+10FFFF).
static unsigned utf8_char(const uint8_t *s)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned i, n = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf8 ? 4 : 0;
	uint32_t c;

	if (n < 2)
		return n;
	c = s[0] & (0x7fu >> n);
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	return c < least[n] || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ? 0 : n;
}

bool utf8_valid(const char *s)
{
	const uint8_t *p = (const uint8_t *)s;
	unsigned n;

	for (; *p; p += n) {
		n = utf8_char(p);
		if (n == 0)
			return false;
	}
	return true;
}

char *utf8_repair(char *s)
{
	uint8_t *p = (uint8_t *)s;
	unsigned n;

	for (; *p; p += n) {
		n = utf8_char(p);
		if (n == 0) {
			*p = '?';
			n = 1;
		}
	}
	return s;
}
