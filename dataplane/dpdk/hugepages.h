// SPDX-License-Identifier: Apache-2.0
#pragma once

// Free hugepages of the default size; 0: there are none.
unsigned long hugepages_free_mb(void);
unsigned long hugepages_free_mb_on(const char *root, unsigned node); // root: "" or a captured tree
