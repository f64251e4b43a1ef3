// SPDX-License-Identifier: Apache-2.0
package state

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/api"
	"github.com/corelane/corelane/internal/rounds"
)

// exported returns what the node has, as export writes it.
func exported(t *testing.T, c *api.Client) (*State, string) {
	t.Helper()
	s, err := Read(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return s, write(t, s)
}

// become makes the node match a state.
func become(t *testing.T, c *api.Client, want *State) (have *State, text string) {
	t.Helper()
	have, err := Read(t.Context(), c)
	if err == nil {
		_, err = Apply(t.Context(), c, Diff(want, have), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return exported(t, c)
}

// anyTwo makes a node of the model, brings it into a random state, and returns the way to another one.
func anyTwo(t *testing.T, r *rand.Rand) (m *model, c *api.Client, before *State, text string, ops []Op) {
	t.Helper()
	m = newModel()
	c = m.serve(t)
	before, text = become(t, c, randomState(r))
	return m, c, before, text, Diff(randomState(r), before)
}

// Whichever step is refused, and with it any step of the way back once, the node is as it was before.
func TestWholeOrNothing(t *testing.T) {
	rounds.Seeds(t, 4, 40, func(seed uint64) {
		r := rand.New(rand.NewPCG(seed, 5))
		m, c, before, text, ops := anyTwo(t, r)
		for step := 1; ; step += rounds.Step(2) {
			m.failAt = []int{m.calls + step, m.calls + step + 1 + r.IntN(step+1)}
			first := m.failAt[0]
			_, err := ApplyWhole(t.Context(), c, before, ops, nil)
			if m.calls < first {
				if err != nil || step == 1 {
					t.Fatalf("seed %d: %v", seed, err)
				}
				return // each step of the way was refused once
			}
			var whole *WholeError
			if !errors.As(err, &whole) || whole.Back != nil || !strings.Contains(err.Error(), "told to refuse call") {
				t.Fatalf("seed %d step %d: %v\nplan:\n%s", seed, step, err, planned(t, ops))
			}
			if _, now := exported(t, c); now != text {
				t.Fatalf("seed %d step %d: before:\n%s\nnow:\n%s", seed, step, text, now)
			}
		}
	})
}

// An interruption between any two steps is taken back, too; what has begun is finished before.
func TestWholeOrNothingInterrupted(t *testing.T) {
	stop := errors.New("stopped by a test")
	rounds.Seeds(t, 2, 20, func(seed uint64) {
		_, c, before, text, ops := anyTwo(t, rand.New(rand.NewPCG(seed, 6)))
		for last := range ops[1:] {
			ctx, cancel := context.WithCancelCause(t.Context())
			n := 0
			_, err := ApplyWhole(ctx, c, before, ops, func(Op, bool) {
				if n++; n == last+1 {
					cancel(stop)
				}
			})
			if _, now := exported(t, c); err != nil && now != text {
				t.Fatalf("seed %d after %d: %v: before:\n%s\nnow:\n%s", seed, last+1, err, text, now)
			}
			if err == nil { // it came in the last batch
				if batchSize(ops[last:]) < len(ops)-last {
					t.Fatalf("seed %d after %d: it was not noticed", seed, last+1)
				}
				become(t, c, before)
			} else if !errors.Is(err, stop) {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	})
}

// What cannot be taken back is named, with the reason, and all the rest is taken back.
func TestWholeNamesWhatIsLeft(t *testing.T) {
	m := newModel()
	c := m.serve(t)
	before, _ := become(t, c, load(t, baseYAML))
	want := load(t, strings.NewReplacer("net_null0", "net_null1", "vni: 7", "vni: 8", "name: red}",
		"name: red}\n  - {name: blue}").Replace(baseYAML))
	ops := Diff(want, before)
	m.failOn = "put ports fab0"
	var lines []string
	_, err := ApplyWhole(t.Context(), c, before, ops, func(op Op, back bool) {
		lines = append(lines, fmt.Sprint(back, " ", string(rune(op.Verb)), op.Noun, op.Key))
	})
	var whole *WholeError
	if !errors.As(err, &whole) || whole.Back == nil {
		t.Fatal(err)
	}
	for _, part := range []string{"+ port fab0: role fabric, dpdk {devargs: net_null1}",
		"\n  refused: ports: told to refuse 'put ports fab0'\n  done before: 1 added, 1 changed, 1 deleted\n",
		"\n  not taken back; ",
		"\n    + port fab0: role fabric, dpdk {devargs: net_null0}", "\n      refused: ports: told to refuse",
		"\n    ~ nexthop 1: kind discard {} -> port "} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in:\n%v", part, err)
		}
	}
	if strings.Contains(err.Error(), "blue") || !slices.Contains(lines, "true -vrfblue") {
		t.Errorf("the rest was not taken back: %q\n%v", lines, err)
	}
	m.failOn = ""
	if err := Back(t.Context(), c, before, nil); err != nil {
		t.Error(err)
	}
	if now, _ := exported(t, c); len(Diff(before, now)) > 0 {
		t.Errorf("still different:\n%s", planned(t, Diff(before, now)))
	}
}

// The texts of what is taken back whole: nothing was done, or what was done is undone and something was lost by it.
func TestWholeTexts(t *testing.T) {
	m := newModel()
	c := m.serve(t)
	before, _ := become(t, c, load(t, baseYAML))
	ops := Diff(load(t, strings.ReplaceAll(baseYAML, "net_null0", "net_null1")), before)
	for call, want := range map[int]string{
		1: "\n  nothing was changed",
		4: "\n  done before and taken back: 1 added, 1 changed, 1 deleted; the router is as it was before\n" +
			"  deleted and added again, without their counters, connections and what they had learnt: port fab0",
	} {
		m.failAt = []int{m.calls + call}
		_, err := ApplyWhole(t.Context(), c, before, ops, nil)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("call %d: %v", call, err)
		}
	}
}

func TestNounsThatGather(t *testing.T) {
	for _, name := range gathers {
		if nounByName[name] == nil {
			t.Errorf("there is no noun '%s'", name)
		}
	}
}

// A daemon that has gone is said to be gone.
func TestWholeWithoutDaemon(t *testing.T) {
	m := newModel()
	c := m.serve(t)
	before, _ := become(t, c, load(t, "vrfs: []\n"))
	n := 0
	_, err := ApplyWhole(t.Context(), c, before, Diff(load(t, baseYAML), before), func(Op, bool) {
		if n++; n == 2 {
			m.stop()
		}
	})
	var gone *api.Unavailable
	if !errors.As(err, &gone) || !strings.Contains(err.Error(), "done before: 2 added, 0 changed, 0 deleted\n"+
		"  not taken back: settings: corelaned") {
		t.Errorf("%v", err)
	}
}
