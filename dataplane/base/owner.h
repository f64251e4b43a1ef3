// SPDX-License-Identifier: Apache-2.0
// Owners: a client of the API names one when it says Hello, and everything that it adds belongs to this owner. Clients
// change and delete only what belongs to their own owner, so that the agent and a node file do not undo each other.
#pragma once

#include <stdint.h>

#include "base/error.h"

#define OWNER_API 0 // "api": of clients that name none
#define OWNER_BITS 4
#define OWNERS (1 << OWNER_BITS)

// Owners get their number when they are first named, and keep it until the process ends. -EINVAL, -ENOSPC with err.
int owner_number(const char *name, uint8_t *out, struct error *err);
const char *owner_name(uint8_t owner);
// Returns 0 if an object's owner is the client's, else -EPERM with err: field and value say which object.
int owner_check(uint8_t owner, uint8_t client, const char *field, const char *value, struct error *err);
