// SPDX-License-Identifier: Apache-2.0
// proto3 text must be UTF-8, and decoders in Go refuse a whole message for one wrong byte; protobuf-c does not check.
// A name in a wrong encoding in a table would make each list that contains it unreadable for all clients.
#pragma once

#include <stdbool.h>

bool utf8_valid(const char *s);
char *utf8_repair(char *s); // each wrong byte becomes '?', in place; returns s
