// SPDX-License-Identifier: Apache-2.0
package rounds

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func tried(t *testing.T) (seeds []uint64) {
	t.Helper()
	Seeds(t, 3, 5, func(seed uint64) { seeds = append(seeds, seed) })
	return seeds
}

func TestShares(t *testing.T) {
	for _, c := range []struct {
		long, seed string
		want       []uint64
		step       int
	}{{"", "", []uint64{0, 1, 2}, 4}, {"1", "", []uint64{0, 1, 2, 3, 4}, 1}, {"", "77", []uint64{77}, 4},
		{"", "18446744073709551615", []uint64{1<<64 - 1}, 4}} {
		t.Setenv("LONG", c.long)
		t.Setenv("SEED", c.seed)
		if got := tried(t); !slices.Equal(got, c.want) || Step(4) != c.step {
			t.Errorf("LONG=%s SEED=%s: %v, steps of %d", c.long, c.seed, got, Step(4))
		}
	}
}

func TestPairs(t *testing.T) {
	var all [][]string
	for _, a := range []string{"a1", "a2", "a3"} {
		for _, b := range []string{"b1", "b2", "b3"} {
			for _, c := range []string{"c1", "c2", "c3"} {
				if a != "a1" || b != "b1" { // these two do not go together
					all = append(all, []string{a, b, c})
				}
			}
		}
	}
	itself := func(one []string) []string { return one }
	pairs := func(list [][]string) map[string]bool {
		has := map[string]bool{}
		for _, one := range list {
			has[one[0]+one[1]], has[one[0]+one[2]], has[one[1]+one[2]] = true, true, true
		}
		return has
	}
	t.Setenv("LONG", "")
	share := Pairs(all, itself)
	if len(share) > len(all)/2 || !maps.Equal(pairs(share), pairs(all)) {
		t.Errorf("%d of %d combinations have %d of %d pairs: %v", len(share), len(all), len(pairs(share)),
			len(pairs(all)), share)
	}
	if alone := Pairs([][]string{{"a1"}, {"a1"}, {"a2"}}, itself); len(alone) != 2 {
		t.Errorf("of one setting: %v", alone)
	}
	t.Setenv("LONG", "1")
	if got := Pairs(all, itself); len(got) != len(all) {
		t.Errorf("%d of %d with LONG=1", len(got), len(all))
	}
}

func fail(t *testing.T) {
	Seeds(t, 3, 5, func(seed uint64) {
		t.Logf("tried %d", seed)
		if seed == 1 {
			t.Error("wrong")
		}
	})
}

// The child process is this test, too, and fails with the second seed.
func TestSeedOfAFailureIsPrinted(t *testing.T) {
	if os.Getenv("ROUNDS_FAIL") != "" {
		fail(t)
		return
	}
	for _, seed := range []string{"", "1"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestSeedOfAFailureIsPrinted$", "-test.v")
		cmd.Env = append(os.Environ(), "ROUNDS_FAIL=1", "LONG=", "SEED="+seed)
		out, err := cmd.CombinedOutput()
		text := string(out)
		if err == nil || !strings.Contains(text, "SEED=1 repeats it") || strings.Contains(text, "tried 2") ||
			strings.Contains(text, "tried 0") != (seed == "") {
			t.Errorf("SEED=%s: %v\n%s", seed, err, text)
		}
	}
}
