// SPDX-License-Identifier: Apache-2.0
package fleet

import (
	"sync"

	"github.com/corelane/corelane/internal/bgp"
)

// mostWaiting bounds the paths that wait for the engine.
const mostWaiting = 50000

// inbox keeps what peers did until the engine is told, in order. While the engine works, events would else wait in the
// queue of GoBGP, which takes several kilobytes for each path.
type inbox struct {
	mu     sync.Mutex
	events []bgp.Event
	paths  int
}

// add returns true if so much waits that the engine should be told now.
func (in *inbox) add(ev bgp.Event) (full bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.events = append(in.events, ev)
	in.paths += cap(ev.Updates) + cap(ev.Withdrawn) + 1 // what it takes, also of paths that are of no use here
	return in.paths >= mostWaiting
}

func (in *inbox) take() []bgp.Event {
	in.mu.Lock()
	defer in.mu.Unlock()
	events := in.events
	in.events, in.paths = nil, 0
	return events
}
