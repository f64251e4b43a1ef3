// SPDX-License-Identifier: Apache-2.0
package guard

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/verify"
)

// repairer returns a guard that repairs, and a drift of a file that should contain 0.
func repairer(t *testing.T, report func(Event)) (*guard, drift) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	k := key{"net.rps", "rps_cpus eth9/rx-0"}
	fix := &verify.Fix{Path: filepath.Join(t.TempDir(), "setting"), Value: "0"}
	o := Options{Repair: true, Journal: t.TempDir(), Report: report}
	return &guard{Options: o, look: &scanner{}, limit: limiter{}},
		drift{key: k, Item: verify.Item{Verdict: verify.Fail, Subject: k.subject, Fix: fix}, since: time.Unix(1000, 0)}
}

// leaves changes the file of a drift, lets the guard repair it, and asserts what the file contains then.
func leaves(t *testing.T, g *guard, m *topology.Machine, d drift, now time.Time, want string) {
	t.Helper()
	if err := os.WriteFile(d.Fix.Path, []byte("2"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.repair(t.Context(), m, d, now)
	if got, err := os.ReadFile(d.Fix.Path); err != nil || string(got) != want {
		t.Errorf("%v after the drift: '%s' (%v), not '%s'", now.Sub(d.since), got, err, want)
	}
}

// A setting that somebody changes again each second is repaired five times. Then the guard reports it, and leaves it.
func TestRepairsThatAreUndone(t *testing.T) {
	counts := map[Kind]int{}
	g, d := repairer(t, func(e Event) { counts[e.Kind]++ })
	for n := range oscillationRepairs + 3 {
		want := "0"
		if n >= oscillationRepairs {
			want = "2"
		}
		leaves(t, g, &topology.Machine{}, d, d.since.Add(time.Duration(n)*time.Second), want)
	}
	if counts[Repaired] != oscillationRepairs || counts[Oscillating] != 1 || len(counts) != 2 {
		t.Errorf("events: %v", counts)
	}
}

// A data plane moves its own threads back, and gets the time for it.
func TestOwnThreadsAreLeftToTheDataPlane(t *testing.T) {
	g, d := repairer(t, func(Event) {})
	d.PID = 7
	m := &topology.Machine{Threads: []topology.Thread{{PID: 7, TID: 8, Process: "corelaned"}}}
	leaves(t, g, m, d, d.since.Add(ownGrace-time.Nanosecond), "2")
	leaves(t, g, m, d, d.since.Add(ownGrace), "0")
}
