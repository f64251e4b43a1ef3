// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"slices"
	"testing"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

// A next hop cannot have an encapsulation that is for mirrors only: neither help nor completion offers it.
func TestEncapsulationsOfNextHops(t *testing.T) {
	cmd, _, err := (&app{}).root().Find([]string{"nexthop", "add"})
	if err != nil {
		t.Fatal(err)
	}
	const want = "mplsoudp|mplsogre|vxlan|geneve"
	if got := cmd.Flags().Lookup("encap").Value.Type(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if slices.Contains(limits.EnumNames(apiv1.Encap(0).Descriptor()), "erspan") {
		t.Error("erspan is offered")
	}
	if err := cmd.Flags().Set("encap", "erspan"); err == nil {
		t.Error("erspan is accepted")
	}
}
