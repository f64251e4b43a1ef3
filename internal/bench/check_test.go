// SPDX-License-Identifier: Apache-2.0
package bench

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

func TestWrongWork(t *testing.T) {
	p := &apiv1.GeneratorProfile{Streams: []*apiv1.GeneratorStream{{Name: "a"},
		{Name: "b", Expected: []byte{1, 2, 3}, ExpectedMask: []byte{255, 15, 255}}}}
	decode := func(frame []byte) string { return fmt.Sprintf("<%x>", frame) }
	for want, w := range map[string]*apiv1.GeneratorWindow{
		"":                                 {Sent: 9, Received: 9},
		"the router takes no frames":       {},
		"none of 9 frames came back":       {Sent: 9},
		"but 4 others, the first one <0a>": {Sent: 9, Foreign: 4, ForeignFrame: []byte{10}},
		"2 frames left by the wrong port":  {Sent: 9, Received: 9, Misplaced: 2},
		"2 frames were damaged":            {Sent: 9, Received: 7, Corrupt: 2},
		"2 frames were received twice":     {Sent: 9, Received: 9, Duplicated: 2},
		"one in b: <01f204>; byte 2 is 0x04, not 0x03": {Sent: 9, WrongHeader: 1, WrongStream: "b",
			WrongFrame: []byte{1, 0xf2, 4}},
		"in b: <01>; it has 1 bytes": {Sent: 9, WrongHeader: 1, WrongStream: "b", WrongFrame: []byte{1}},
		"in c: <01>":                 {Sent: 9, WrongHeader: 1, WrongStream: "c", WrongFrame: []byte{1}},
	} {
		err := cmp.Or(wrong(w, p, decode), silent(w, decode))
		switch {
		case want == "" && err != nil:
			t.Error(err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestLosingWork(t *testing.T) {
	decode := func([]byte) string { return "a frame" }
	for want, w := range map[string]*apiv1.GeneratorWindow{
		"":                  {Due: 1000, Sent: 1000, Lost: 10},
		"11 of 1000 frames": {Due: 1000, Sent: 1000, Lost: 11},
		"600 of 1000":       {Due: 1000, Sent: 400, NoRoom: 600},
		"second; the generator received 3 others, the first one": {Due: 1000, Sent: 1000, Lost: 20, Foreign: 3},
	} {
		if err := losing(w, decode); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
