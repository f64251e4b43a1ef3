// SPDX-License-Identifier: Apache-2.0
package vpn

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
)

// Rest is how long the label and the number of an instance stay unused after it has been removed, because other hosts
// may still send with them.
const Rest = 10 * time.Minute

// Journal has what must survive a restart, so that other hosts see no change: the label and the number of each
// instance and segment, how often each MAC address of this node has moved, and what peers do not know.
type Journal struct {
	Instances map[string]Numbers   `json:"instances"`
	Resting   map[string]time.Time `json:"resting"` // instances that ended, and when
	Macs      map[string]Mobility  `json:"macs"`    // by segment and address
	Changed   bool                 `json:"-"`       // since it was written

	Unconstrained map[string]bool `json:"unconstrained"` // addresses of peers that do not know of RT constraint
}

// Mobility is this node's claim to a MAC address.
type Mobility struct {
	Sequence uint32 `json:"sequence"`
	Fresh    bool   `json:"fresh"` // the guest has just come, and no peer has announced yet where it was before
}

// Numbers of an instance.
type Numbers struct {
	Number uint16 `json:"number"` // of its route distinguisher
	Label  uint32 `json:"label"`
}

// NewJournal returns an empty journal.
func NewJournal() *Journal {
	return &Journal{Instances: map[string]Numbers{}, Resting: map[string]time.Time{}, Macs: map[string]Mobility{},
		Unconstrained: map[string]bool{}}
}

// NoteConstraint notes whether a peer knows of RT constraint (RFC 4684).
func (j *Journal) NoteConstraint(peer netip.Addr, known bool) {
	name := peer.String()
	if j.Unconstrained[name] != known {
		return
	}
	if j.Changed = true; known {
		delete(j.Unconstrained, name)
	} else {
		j.Unconstrained[name] = true
	}
}

// release notes which instances still exist, and forgets those that have rested.
func (j *Journal) release(exist map[string]bool, now time.Time) {
	for name := range j.Instances {
		at, resting := j.Resting[name]
		switch {
		case exist[name] && resting:
			delete(j.Resting, name)
		case !exist[name] && !resting:
			j.Resting[name] = now
		case !exist[name] && now.Sub(at) >= Rest:
			delete(j.Resting, name)
			delete(j.Instances, name)
		default:
			continue
		}
		j.Changed = true
	}
}

// claim returns the claim to a MAC address.
func (j *Journal) claim(key string) (Mobility, bool) {
	m, known := j.Macs[key]
	return m, known
}

func (j *Journal) setClaim(key string, m Mobility) {
	if old, known := j.Macs[key]; !known || old != m {
		j.Macs[key], j.Changed = m, true
	}
}

// keepClaims forgets the claims to addresses that are not there any more.
func (j *Journal) keepClaims(exist map[string]bool) {
	for key := range j.Macs {
		if !exist[key] {
			delete(j.Macs, key)
			j.Changed = true
		}
	}
}

// number returns the number of a segment's route distinguisher.
func (j *Journal) number(name string) (uint16, error) {
	n, known := j.Instances[name]
	if !known {
		var err error
		if n.Number, err = j.freeNumber(); err != nil {
			return 0, err
		}
		j.Instances[name], j.Changed = n, true
	}
	return n.Number, nil
}

func (j *Journal) freeNumber() (uint16, error) {
	numbers := map[uint16]bool{}
	for _, other := range j.Instances {
		numbers[other.Number] = true
	}
	for n := uint16(1); n > 0; n++ {
		if !numbers[n] {
			return n, nil
		}
	}
	return 0, errors.New("all 65535 numbers of route distinguishers are taken")
}

// get returns the numbers of an instance, and gives it some if it has none that can be used.
func (j *Journal) get(name string, b *agentv1.Bgp, now time.Time) (uint16, uint32, error) {
	n, known := j.Instances[name]
	if known && n.Label >= b.LabelMin && n.Label <= b.LabelMax {
		return n.Number, n.Label, nil
	}
	labels := map[uint32]bool{}
	for _, other := range j.Instances {
		labels[other.Label] = true
	}
	for n.Label = b.LabelMin; labels[n.Label]; n.Label++ {
		if n.Label == b.LabelMax {
			return 0, 0, fmt.Errorf("all labels from %d to %d are taken", b.LabelMin, b.LabelMax)
		}
	}
	if !known {
		var err error
		if n.Number, err = j.freeNumber(); err != nil {
			return 0, 0, err
		}
	}
	j.Instances[name] = n
	j.Changed = true
	return n.Number, n.Label, nil
}
