// SPDX-License-Identifier: Apache-2.0
// rte_acl for entries of rules.
#pragma once

#include <rte_acl.h>

#include "policy/rules_private.h"

// svc-rules. Returns NULL with errno: the entries of one family, of which the first that matches is found.
struct rte_acl_ctx *acl_build(const struct rule_match *m, uint32_t n, unsigned f);
// Workers and master. The number of the first entry that matches, from 1; 0: none. addr: as flow_key has it; ports: host byte order.
uint32_t acl_classify(const struct rte_acl_ctx *acl, unsigned f, const uint64_t *addr, const uint16_t port[2], uint8_t proto);
