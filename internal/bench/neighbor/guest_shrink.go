// SPDX-License-Identifier: Apache-2.0
package neighbor

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// shrunkRest is how long a guest stays after it has shortened its memory, so that a worker touches what is not there.
const shrunkRest = time.Millisecond

var errShrunk = errors.New("the guest has shortened its memory")

// shrinkingGuest shortens the file of its memory as soon as the router has taken frames from there.
type shrinkingGuest struct {
	guest
	memory *guestMemory
	keeps  int64 // bytes: the rings, whose frames then have no data; or 0
}

func (g *shrinkingGuest) post() (shortened int, err error) {
	taken, err := g.guest.post()
	if taken == 0 || err != nil {
		return 0, err
	}
	if err := unix.Ftruncate(g.memory.fd, g.keeps); err != nil {
		return 0, err
	}
	if g.keeps > 0 { // otherwise this process must not touch it either
		_, _ = g.guest.post()
	}
	time.Sleep(shrunkRest)
	return 1, errShrunk
}
