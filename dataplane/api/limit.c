// SPDX-License-Identifier: Apache-2.0
#include "api/limit.h"

#include "api/api.h"

struct api_limits api_limits = {.connections = 1024,
				.reserved = 64,
				.user_connections = 128,
				.user_streams = 512,
				.stall_ms = API_STALL * 1000,
				.message_ms = 30 * 1000};

static const struct api_limit_info limits[LIMITS] = {
	[LIMIT_CONNECTIONS] = {"connections", "connections refused: 1024 are open, the last 64 of which are root's"},
	[LIMIT_USER_CONNECTIONS] = {"user_connections", "connections refused: 128 of the same user are open"},
	[LIMIT_STREAMS] = {"streams", "streams refused: 128 are open on the connection"},
	[LIMIT_USER_STREAMS] = {"user_streams", "streams refused: 512 of the same user are open"},
	[LIMIT_ROLE] = {"role", "requests refused: the user does not have the role"},
	[LIMIT_LONG_MESSAGE] = {"long_message", "messages refused: longer than 4 MiB"},
	[LIMIT_HALF_MESSAGE] = {"half_message", "clients disconnected: no whole message within 30 s"},
	[LIMIT_NOT_TTRPC] = {"not_ttrpc", "clients disconnected: what they sent is not ttrpc"},
	[LIMIT_SLOW_READER] = {"slow_reader", "clients disconnected: they did not read for 60 s"},
};

static uint64_t counts[LIMITS];

const struct api_limit_info *api_limit_info(enum api_limit limit)
{
	return &limits[limit];
}

void api_limit_count(enum api_limit limit)
{
	counts[limit]++;
}

uint64_t api_limit_reached(enum api_limit limit)
{
	return counts[limit];
}
