// SPDX-License-Identifier: Apache-2.0
// The kinds of objects of the API, in the order in which a start makes them. `make api` writes nouns.c from the options
// of api/*.proto, in the order of `internal/state`.
//
// An object is field 1 of the requests that add and change it, and its keys are fields 1, 2 and so on of it and of the
// request that deletes it (unless that has a list of objects).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define NOUN_KEYS 3
#define NOUN_PARENTS 2

enum noun_key {
	NOUN_KEY_EXACT,
	NOUN_KEY_ADDRESS, // the same address or prefix may be written in several ways
	NOUN_KEY_MAC,     // in upper or lower case
};

struct noun {
	const char *service;
	const char *set; // the method that changes an object; NULL: there is none
	uint8_t n_keys;
	uint8_t keys[NOUN_KEYS]; // enum noun_key
	uint8_t automatic;       // number of the key that a request may leave to the daemon; 0: none
	bool list;               // Add and Del have many objects
	bool add_all;            // there is a method AddAll, which has many objects
	uint8_t n_parents;
	struct {
		const char *service;
		uint8_t field;
	} parents[NOUN_PARENTS]; // objects end with those of these services that these fields of them name
};

extern const struct noun nouns[];
extern const unsigned n_nouns;
