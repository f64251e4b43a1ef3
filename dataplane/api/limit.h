// SPDX-License-Identifier: Apache-2.0
// What bounds a client of the API: each bound has a name, and counts how often it was reached.
#pragma once

#include <stdint.h>

enum api_limit {
	LIMIT_CONNECTIONS,
	LIMIT_USER_CONNECTIONS,
	LIMIT_STREAMS,
	LIMIT_USER_STREAMS,
	LIMIT_ROLE,
	LIMIT_LONG_MESSAGE,
	LIMIT_HALF_MESSAGE,
	LIMIT_NOT_TTRPC,
	LIMIT_SLOW_READER,
	LIMITS
};

#define API_LIMIT_TEXT 96
const char *api_limit_name(enum api_limit limit);
const char *api_limit_text(enum api_limit limit, char text[API_LIMIT_TEXT]); // what it bounds; returns text
void api_limit_count(enum api_limit limit);                                  // it was reached
uint64_t api_limit_reached(enum api_limit limit);                            // how often

// Limits that tests may lower.
struct api_limits {
	unsigned connections;      // of all users
	unsigned reserved;         // of these, only root can use
	unsigned user_connections; // of one user
	unsigned user_streams;     // of one user
	unsigned stall_ms;         // longest time in which a client reads nothing
	unsigned message_ms;       // to send a whole message
};
extern struct api_limits api_limits;
