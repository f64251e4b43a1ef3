// SPDX-License-Identifier: Apache-2.0
// The names and texts of the bounds, and their counts.
#include "api/limit.h"

#include <stdarg.h>
#include <stdio.h>

#include "api/api.h"
#include "api/api_private.h"

struct api_limits api_limits = {.connections = 1024,
				.reserved = 64,
				.user_connections = 128,
				.user_streams = 512,
				.stall_ms = API_STALL * 1000,
				.message_ms = 30 * 1000};

static const char *const names[LIMITS] = {
	[LIMIT_CONNECTIONS] = "connections",
	[LIMIT_USER_CONNECTIONS] = "user_connections",
	[LIMIT_STREAMS] = "streams",
	[LIMIT_USER_STREAMS] = "user_streams",
	[LIMIT_ROLE] = "role",
	[LIMIT_LONG_MESSAGE] = "long_message",
	[LIMIT_HALF_MESSAGE] = "half_message",
	[LIMIT_NOT_TTRPC] = "not_ttrpc",
	[LIMIT_SLOW_READER] = "slow_reader",
};

static uint64_t counts[LIMITS];

const char *api_limit_name(enum api_limit limit)
{
	return names[limit];
}

static const char *limit_format(char text[API_LIMIT_TEXT], const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static const char *limit_format(char text[API_LIMIT_TEXT], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, API_LIMIT_TEXT, format, args);
	va_end(args);
	return text;
}

const char *api_limit_text(enum api_limit limit, char text[API_LIMIT_TEXT])
{
	const struct api_limits *l = &api_limits;

	switch (limit) {
	case LIMIT_CONNECTIONS:
		return limit_format(text, "connections refused: %u are open, the last %u of which are root's",
				    l->connections, l->reserved);
	case LIMIT_USER_CONNECTIONS:
		return limit_format(text, "connections refused: %u of the same user are open", l->user_connections);
	case LIMIT_STREAMS:
		return limit_format(text, "streams refused: %u are open on the connection", API_STREAMS);
	case LIMIT_USER_STREAMS:
		return limit_format(text, "streams refused: %u of the same user are open", l->user_streams);
	case LIMIT_ROLE:
		return limit_format(text, "requests refused: the user does not have the role");
	case LIMIT_LONG_MESSAGE:
		return limit_format(text, "messages refused: longer than %u MiB", API_MAX_MESSAGE >> 20);
	case LIMIT_HALF_MESSAGE:
		return limit_format(text, "clients disconnected: no whole message within %u s", l->message_ms / 1000);
	case LIMIT_NOT_TTRPC:
		return limit_format(text, "clients disconnected: what they sent is not ttrpc");
	case LIMIT_SLOW_READER:
		return limit_format(text, "clients disconnected: they did not read for %u s", l->stall_ms / 1000);
	default:
		return limit_format(text, "unknown");
	}
}

void api_limit_count(enum api_limit limit)
{
	counts[limit]++;
}

uint64_t api_limit_reached(enum api_limit limit)
{
	return counts[limit];
}
