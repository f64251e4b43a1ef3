// SPDX-License-Identifier: Apache-2.0
// A daemon whose only objects are VRFs, and files of changes.
#pragma once

#include "keep/keep_private.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
#define TEXT(s) ((char *)(uintptr_t)(s))

extern char keep_test_made[256]; // the VRFs of this process, "owner/name/id "
extern char keep_test_dir[64];   // the state directory

int keep_test_setup(void **state);
int keep_test_teardown(void **state);
char *keep_test_path(const char *name); // of a file there, until the next call

struct bytes keep_test_file(void); // without changes
void keep_test_append(struct bytes *file, const char *method, const ProtobufCMessage *req);
// Routes.Add or Routes.Del: both requests have the same fields.
void keep_test_append_routes(struct bytes *file, const char *method, const char *const *prefixes, uint32_t nexthop);
void keep_test_append_vrf(struct bytes *file, const char *method, const char *name);
