// SPDX-License-Identifier: Apache-2.0
package fleet

import (
	"path/filepath"
	"testing"

	"github.com/corelane/corelane/internal/bgp"
	"github.com/corelane/corelane/internal/vpn"
)

// The next run of the agent knows which peers do not know of RT constraint.
func TestUnconstrainedPeersAreRemembered(t *testing.T) {
	f := segmentFleet(nil)
	f.Journal, f.journal = t.TempDir(), vpn.NewJournal()
	for _, unconstrained := range []bool{true, false} {
		f.event(bgp.Event{Peer: reflector, Up: true, Unconstrained: unconstrained})
		f.enter() // the engine is told
		f.mu.Unlock()
		if !f.journal.Changed {
			t.Fatal("nothing is to be written")
		}
		if err := f.saveJournal(); err != nil {
			t.Fatal(err)
		}
		j, err := loadJournal(filepath.Join(f.Journal, journalFile))
		if err != nil || j.Unconstrained[reflector.String()] != unconstrained {
			t.Errorf("%v: the journal has %v, error %v", unconstrained, j, err)
		}
	}
}
