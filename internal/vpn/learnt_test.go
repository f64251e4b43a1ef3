// SPDX-License-Identifier: Apache-2.0
package vpn_test

import (
	"fmt"
	"testing"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
	"github.com/corelane/corelane/internal/intent"
	"github.com/corelane/corelane/internal/vpn"
)

// learningEngine is that of a node without guests whose addresses are given, which announces what it learns.
func learningEngine(t *testing.T, change func(*intent.Set)) *vpn.Engine {
	t.Helper()
	return segmentEngine(t, vpn.NewJournal(), func(s *intent.Set) {
		s.Attachments = nil
		s.Segments[0].AnnounceLearnt, s.Segments[0].LearntLimit = true, 2
		if change != nil {
			change(s)
		}
	})
}

// An address that is learnt is announced until it is gone; the data plane has it already.
func TestLearnt(t *testing.T) {
	e := learningEngine(t, nil)
	if !e.Learnt("lan", here, "vm1") || e.Learnt("lan", here, "vm1") || e.Learnt("other", here, "vm1") {
		t.Error("what is news?")
	}
	if got := claims(e) + places(e.Desired()); got != "0 " {
		t.Error(got)
	}
	if g := e.Segments()[0]; g.LearntMacs != 1 || g.Announced != 2 {
		t.Error(g)
	}
	e.Learnt("lan", vpn.Mac{2, 8}, "vm1")
	if e.Learnt("lan", vpn.Mac{2, 9}, "vm1") || e.Segments()[0].LearntMacs != 2 {
		t.Error("beyond the limit:", e.Segments())
	}
	e.SetLearnt(map[string]map[vpn.Mac]string{"lan": {here: "vm2"}})
	if g := e.Segments()[0]; g.LearntMacs != 1 || claims(e) != "0 " {
		t.Error(g)
	}
	e.Gone("lan", here)
	if got := claims(e); got != "" {
		t.Error(got)
	}
}

func TestLearntIsNotAnnounced(t *testing.T) {
	for name, change := range map[string]func(*intent.Set){
		"by default": func(s *intent.Set) { s.Segments[0].AnnounceLearnt = false },
		"at a port whose guest is on its way": func(s *intent.Set) {
			s.Attachments = []*agentv1.Attachment{{Port: &apiv1.Port{Name: "vm1", Bridge: "lan"},
				State: agentv1.AttachmentState_ATTACHMENT_INCOMING}}
		},
	} {
		e := learningEngine(t, change)
		e.Learnt("lan", here, "vm1")
		if got := claims(e); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	e := segmentEngine(t, vpn.NewJournal(), func(s *intent.Set) { // given and learnt, it is announced once
		s.Segments[0].AnnounceLearnt, s.Segments[0].LearntLimit = true, 2
	})
	e.Learnt("lan", here, "vm1")
	e.Gone("lan", here)
	if got := claims(e); got != "0 " {
		t.Error(got)
	}
}

// A guest that invents addresses leaves room for those of others, and is not announced as a router.
func TestLearntIsShared(t *testing.T) {
	e := learningEngine(t, func(s *intent.Set) { s.Segments[0].LearntLimit = 64 })
	for _, m := range []vpn.Mac{{0, 0, 0x5e, 0, 1, 1}, {3}, {}} {
		if e.Learnt("lan", m, "vm1") {
			t.Error("no guest has the address", m)
		}
	}
	for i := range byte(100) {
		e.Learnt("lan", vpn.Mac{2, 1, i}, "vm1")
	}
	if g := e.Segments()[0]; g.LearntMacs != 56 {
		t.Error("of one port:", g)
	}
	for i := range byte(4) {
		if !e.Learnt("lan", vpn.Mac{2, 2, i}, "vm2") {
			t.Error("another port finds no room for number", i)
		}
	}
	for i := range byte(100) {
		e.Learnt("lan", vpn.Mac{2, 1, i}, "vm2") // they move
	}
	if e.Learnt("lan", vpn.Mac{2, 3}, "vm2") || !e.Learnt("lan", vpn.Mac{2, 3}, "vm1") {
		t.Error("those that have moved count where they are")
	}
	for i := range byte(100) {
		e.Gone("lan", vpn.Mac{2, 1, i})
	}
	if !e.Learnt("lan", vpn.Mac{2, 4}, "vm2") || e.Segments()[0].LearntMacs != 6 {
		t.Error("there is room again:", e.Segments())
	}
}

// A guest with a learnt address moves: here, when it is seen, and away, when another host has a later claim.
func TestLearntMoves(t *testing.T) {
	e := learningEngine(t, nil)
	e.EndOfRib(reflector)
	e.Update(macPath(2, here, 3, nil))
	if got := claims(e) + places(e.Desired()); got != "02:00:00:00:00:01 192.0.2.2/100; " {
		t.Error(got)
	}
	e.Seen("lan", here, "vm1")
	if got := claims(e) + places(e.Desired()); got != "4 " {
		t.Error("it is here, and the data plane is to learn it:", got)
	}
	e.Learnt("lan", here, "vm1")
	e.Update(macPath(3, here, 5, nil))
	const away = "02:00:00:00:00:01 192.0.2.3/100; "
	if got := claims(e) + places(e.Desired()); got != away {
		t.Error(got)
	}
	e.Gone("lan", here) // the given address has replaced the learnt one
	if got := claims(e) + places(e.Desired()); got != away {
		t.Error(got)
	}
	e.Seen("lan", here, "vm1")
	if got := claims(e); got != "6 " {
		t.Error("it is back:", got)
	}
	e.Tick(time.Unix(1e9+10, 0)) // it was not learnt, so it was seen for the last time
	if got := claims(e) + places(e.Desired()); got != away {
		t.Error(got)
	}
}

// A guest of an attachment whose address a guest of another host claims gets it back with its next frame.
func TestTakenBack(t *testing.T) {
	e := segmentEngine(t, vpn.NewJournal(), nil)
	e.EndOfRib(reflector)
	if got := claims(e); got != "0 " {
		t.Error(got)
	}
	for i := range uint32(6) {
		e.Update(macPath(2, here, 2*i+1, nil))
		if got := claims(e); got != "" {
			t.Error("another host has a later claim:", got)
		}
		if e.Seen("lan", here, "vm2") {
			t.Error("another port of this node takes the address")
		}
		took := e.Seen("lan", here, "vm1")
		if e.Seen("lan", here, "vm1") || took != (i < 5) {
			t.Error(i, took)
		}
		if got := claims(e); took && got != fmt.Sprintf("%d ", 2*i+2) {
			t.Error("it is back:", got)
		}
	}
	if g := e.Segments()[0]; len(g.DuplicateMacs) != 1 {
		t.Error(g)
	}
}

// Of two guests with one address, which take it from each other, one gives up.
func TestDuplicates(t *testing.T) {
	e := learningEngine(t, nil)
	e.EndOfRib(reflector)
	took := 0
	for i := range uint32(10) {
		e.Update(macPath(2, here, 2*i+1, nil))
		e.Desired()
		e.Gone("lan", here)
		e.Seen("lan", here, "vm1")
		if claims(e) != "" {
			took++
		}
	}
	if g := e.Segments()[0]; took != 5 || len(g.DuplicateMacs) != 1 || g.DuplicateMacs[0] != here.String() {
		t.Errorf("taken %d times; %v", took, g)
	}
	e.Tick(time.Unix(1e9+180, 0))
	e.Seen("lan", here, "vm1")
	if got := claims(e); got != "20 " {
		t.Error("after a while it may come again:", got)
	}
}
