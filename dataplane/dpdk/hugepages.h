// SPDX-License-Identifier: Apache-2.0
#pragma once

unsigned long hugepages_free_mb(void); // hugepages of the default size; 0: there are none
