// SPDX-License-Identifier: Apache-2.0

// Package rounds decides how many rounds random and exhaustive tests make: a share of them in `make test`, all with
// LONG=1, and a single one with SEED=N, which repeats the round that a failed test has named.
package rounds

import (
	"os"
	"strconv"
	"testing"
)

func long() bool { return os.Getenv("LONG") == "1" }

// Seeds calls f with the seeds below some, or below all with LONG=1, or with that of SEED, until the test has failed.
// Then it prints the seed.
func Seeds(t *testing.T, some, all uint64, f func(seed uint64)) {
	t.Helper()
	seed, end := uint64(0), some
	if long() {
		end = all
	}
	if text := os.Getenv("SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("SEED: %v", err)
		}
		end = seed + 1
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("SEED=%d repeats it", seed)
		}
	})
	for {
		if f(seed); t.Failed() || seed+1 >= end {
			return
		}
		seed++
	}
}

// Step is how far an exhaustive test goes on after each round: 1 with LONG=1, so that it leaves out nothing.
func Step(some int) int {
	if long() {
		return 1
	}
	return some
}

// Pairs returns a share of combinations of settings, all with LONG=1: any two values that occur together in one of all
// do so in one of the share. Values of different settings must differ.
func Pairs[T any](all []T, values func(T) []string) (share []T) {
	if long() {
		return all
	}
	has := map[[2]string]bool{}
	missing := func(one T) (pairs [][2]string) {
		list := values(one)
		for i, a := range list {
			for _, b := range list[i:] {
				if pair := [2]string{a, b}; !has[pair] {
					pairs = append(pairs, pair)
				}
			}
		}
		return pairs
	}
	for {
		var best [][2]string
		at := 0
		for i, one := range all {
			if pairs := missing(one); len(pairs) > len(best) {
				best, at = pairs, i
			}
		}
		if best == nil {
			return share
		}
		share = append(share, all[at])
		for _, pair := range best {
			has[pair] = true
		}
	}
}
