// SPDX-License-Identifier: Apache-2.0
// Entries of rules compiled by rte_acl.
#pragma once

#include <rte_acl.h>

#include "policy/rules_private.h"

// svc-rules. Compiles the entries of one family (f: 0 = IPv4, 1 = IPv6). Returns NULL with errno.
struct rte_acl_ctx *acl_build(const struct rule_match *m, uint32_t n, unsigned f);
// Workers and master. Returns the number of the first entry that matches, from 1; 0: none. addr: as in flow_key; ports:
// host byte order.
uint32_t acl_classify(const struct rte_acl_ctx *acl, unsigned f, const uint64_t *addr, const uint16_t port[2],
		      uint8_t proto);
