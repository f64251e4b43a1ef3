// SPDX-License-Identifier: Apache-2.0
package fleet

import (
	"runtime"
	"testing"
	"time"

	"github.com/corelane/corelane/internal/bgp"
)

// Users of GoBGP have reported paths that are missing in tables of some thousands, and memory that grows with the
// number of sessions. Each session brings its whole table here, and what it leaves behind does not grow.
func TestManySessions(t *testing.T) {
	const table, sessions = 9000, 5
	type step struct {
		updates     int
		ended, down bool
	}
	steps := make(chan step, 2*table)
	a := newAgentSide(t, func(e bgp.Event) { steps <- step{len(e.Updates), e.EndOfRib, e.Down} })
	until := func(what string, done func(step) bool) {
		t.Helper()
		for late := time.After(time.Minute); ; {
			select {
			case s := <-steps:
				if done(s) {
					return
				}
			case <-late:
				t.Fatal("no " + what)
			}
		}
	}
	messages := append(announce(unique(table)), endOfRib()...)
	var first uint64
	for n := range sessions {
		p := a.session(t)
		if err := p.send(messages); err != nil {
			t.Fatal(err)
		}
		got := 0
		until("end of the table", func(s step) bool {
			got += s.updates
			return s.ended
		})
		if got != table {
			t.Fatalf("session %d: %d paths of %d came", n, got, table)
		}
		p.close()
		until("end of the session", func(s step) bool { return s.down })
		if n == 1 {
			first = inUse()
		}
	}
	// GoBGP takes a kilobyte a path. Three more sessions would have left three tables.
	if last := inUse(); last > first+1000*table {
		t.Errorf("%d bytes are in use after two sessions, %d after %d", first, last, sessions)
	}
}

func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
