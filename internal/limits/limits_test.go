// SPDX-License-Identifier: Apache-2.0
package limits_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

// The table of limits in the guide has the numbers of the options, where a field has them.
func TestGuideHasTheLimits(t *testing.T) {
	text, err := os.ReadFile("../../docs/guide.md")
	if err != nil {
		t.Fatal(err)
	}
	most := func(m proto.Message) int {
		return int(limits.Max(m.ProtoReflect().Descriptor().Fields().ByName("id")))
	}
	for _, c := range []struct {
		row, form string
		n         int
	}{
		{"workers", "%s", most(&apiv1.Worker{}) + 1},
		{"address groups", "%s prefixes each", limits.Items(&apiv1.AddressGroup{}, "prefixes")},
		{"next hops", "%s that the operator adds", most(&apiv1.Nexthop{})},
		{"NAT rules", "ids up to %s;", most(&apiv1.NatRule{})},
		{"NAT rules", " %s backends", limits.Items(&apiv1.DestinationNat{}, "backends")},
		{"NAT rules", " %s exceptions", limits.Items(&apiv1.NatRule{}, "except")},
		{"groups", "%s members", limits.Items(&apiv1.GroupNexthop{}, "members")},
	} {
		_, row, found := strings.Cut(string(text), "\n| "+c.row+" | ")
		row, _, _ = strings.Cut(row, "\n")
		if want := fmt.Sprintf(c.form, thousands(c.n)); !found || !strings.Contains(row, want) {
			t.Errorf("docs/guide.md, limits, %s: %q has no %q", c.row, row, want)
		}
	}
}

func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
