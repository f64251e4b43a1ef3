// SPDX-License-Identifier: Apache-2.0
// Made by `make api` from the options in api/*.proto. Change them there.
// clang-format off
#include "keep/nouns.h"

const struct noun nouns[] = {
	{.service = "corelane.v1.System", .set = "SetSettings"},
	{.service = "corelane.v1.Workers", .set = "Set", .n_keys = 1, .keys = {NOUN_KEY_EXACT}},
	{.service = "corelane.v1.Vrfs", .n_keys = 1, .keys = {NOUN_KEY_EXACT}},
	{.service = "corelane.v1.Bridges", .set = "Set", .n_keys = 1, .keys = {NOUN_KEY_EXACT}},
	{.service = "corelane.v1.Meters", .set = "Set", .n_keys = 1, .keys = {NOUN_KEY_EXACT}},
	{.service = "corelane.v1.AddressGroups", .set = "Set", .n_keys = 1, .keys = {NOUN_KEY_EXACT}},
	{.service = "corelane.v1.RuleLists", .set = "Set", .n_keys = 1, .keys = {NOUN_KEY_EXACT}},
	{.service = "corelane.v1.Rules", .list = true, .n_keys = 2, .keys = {NOUN_KEY_EXACT, NOUN_KEY_EXACT}, .n_parents = 1,
		.parents = {{.service = "corelane.v1.RuleLists", .field = 1}}},
	{.service = "corelane.v1.Ports", .set = "Set", .n_keys = 1, .keys = {NOUN_KEY_EXACT}},
	{.service = "corelane.v1.Mirrors", .set = "Set", .n_keys = 1, .keys = {NOUN_KEY_EXACT}},
	{.service = "corelane.v1.Nexthops", .add_all = true, .n_keys = 1, .keys = {NOUN_KEY_EXACT}},
	{.service = "corelane.v1.Labels", .n_keys = 1, .keys = {NOUN_KEY_EXACT}},
	{.service = "corelane.v1.Vnis", .n_keys = 1, .keys = {NOUN_KEY_EXACT}},
	{.service = "corelane.v1.Nat", .set = "Set", .n_keys = 1, .keys = {NOUN_KEY_EXACT}},
	{.service = "corelane.v1.Services", .set = "Set", .n_keys = 1, .keys = {NOUN_KEY_EXACT}},
	{.service = "corelane.v1.Endpoints", .set = "Set", .n_keys = 3, .keys = {NOUN_KEY_EXACT, NOUN_KEY_ADDRESS, NOUN_KEY_EXACT}, .n_parents = 1,
		.parents = {{.service = "corelane.v1.Services", .field = 1}}},
	{.service = "corelane.v1.Routes", .list = true, .n_keys = 2, .keys = {NOUN_KEY_EXACT, NOUN_KEY_ADDRESS}, .n_parents = 1,
		.parents = {{.service = "corelane.v1.Vrfs", .field = 1}}},
	{.service = "corelane.v1.Macs", .add_all = true, .n_keys = 2, .keys = {NOUN_KEY_EXACT, NOUN_KEY_MAC}, .n_parents = 2,
		.parents = {{.service = "corelane.v1.Bridges", .field = 1}, {.service = "corelane.v1.Ports", .field = 3}}},
	{.service = "corelane.v1.Neighbors", .n_keys = 2, .keys = {NOUN_KEY_EXACT, NOUN_KEY_ADDRESS}, .n_parents = 1,
		.parents = {{.service = "corelane.v1.Ports", .field = 1}}},
	{.service = "corelane.v1.HostSteers", .n_keys = 2, .keys = {NOUN_KEY_ADDRESS, NOUN_KEY_EXACT}, .automatic = 2, .n_parents = 1,
		.parents = {{.service = "corelane.v1.Ports", .field = 2}}},
};
const unsigned n_nouns = sizeof(nouns) / sizeof(nouns[0]);
