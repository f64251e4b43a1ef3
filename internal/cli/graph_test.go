// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bufio"
	"strings"
	"testing"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

func TestFoldNodes(t *testing.T) {
	var out strings.Builder
	w := bufio.NewWriter(&out)
	writePaths(w, foldNodes([]*apiv1.Node{
		{Name: "port_rx", Next: []string{"drop", "ip4_forward", "ip6_forward"}},
		{Name: "ip4_forward", Next: []string{"drop", "port_output", "encap_vxlan4", "ip4_fragment"}},
		{Name: "ip6_forward", Next: []string{"drop", "port_output", "encap_vxlan6"}},
		{Name: "ip4_fragment", Next: []string{"drop", "port_output", "encap_vxlan4", "encap_geneve6"}},
		{Name: "encap_vxlan4", Next: []string{"drop", "port_tx"}},
		{Name: "drop"},
		{Name: "port_tx"},
	}))
	_ = w.Flush()
	want := `	"next hop" [shape=ellipse];
	"encap_*" -> "port_tx";
	"ip_forward" -> "ip_fragment";
	"ip_forward" -> "next hop";
	"ip_fragment" -> "next hop";
	"next hop" -> "encap_*";
	"next hop" -> "port_output";
	"port_rx" -> "ip_forward";
	"port_tx";
`
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
}

func TestFoldNeedsDot(t *testing.T) {
	if r := run(fixture(t), "", "graph", "--fold"); r.code != 2 || !strings.Contains(r.stderr, "--dot") {
		t.Error(r)
	}
}
