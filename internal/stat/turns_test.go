// SPDX-License-Identifier: Apache-2.0
package stat

import (
	"slices"
	"testing"
)

func TestTurns(t *testing.T) {
	for repetition, want := range [][]int{{0, 1, 2}, {2, 1, 0}, {0, 1, 2}} {
		if got := Turns(repetition, 3); !slices.Equal(got, want) {
			t.Errorf("repetition %d: %v, not %v", repetition, got, want)
		}
	}
	if got := Turns(1, 0); len(got) != 0 {
		t.Error(got)
	}
}
