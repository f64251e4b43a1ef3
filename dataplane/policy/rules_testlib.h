// SPDX-License-Identifier: Apache-2.0
// Rule lists of tests: rules and keys from text.
#pragma once

#include "policy/rules_private.h"

extern struct error rules_test_err; // of the last call that failed

int rules_test_parse(const char *line, struct rule *r); // "100 allow --protocol tcp --destination-ports 80"
void rules_test_add(struct rule_list *l, const char *line);
void rules_test_del(struct rule_list *l, uint32_t id);
struct flow_key rules_test_key(uint8_t proto, const char *src, uint16_t sport, const char *dst, uint16_t dport);
uint32_t rules_test_decides(const struct rule_list *l, struct flow_key k); // the rule's id, 0: none matches

struct rule_list *rules_test_list(const char *name, bool allow);
void rules_test_settle(void); // waits until all lists are compiled
void rules_test_forget(const char *name);
// A short list is searched rule by rule, a long one is compiled; both must decide alike. Adds 150 rules that match no
// packet of a test, so that the list is compiled.
void rules_test_pad(struct rule_list *l);
