// SPDX-License-Identifier: Apache-2.0
package router

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/bench/scenario"
)

// variants returns the setups of all catalogue scenarios and their variants that can be built.
func variants(t *testing.T, supports func(*scenario.Scenario) error) map[string]*scenario.Setup {
	t.Helper()
	setups := map[string]*scenario.Setup{}
	for _, s := range scenario.List() {
		for i, change := range []func(*scenario.Scenario){
			func(*scenario.Scenario) {},
			func(s *scenario.Scenario) { s.Stateful, s.Tenants, s.Routes = true, 3, 1 },
			func(s *scenario.Scenario) { s.IPv6, s.Sizes = true, []int{100} },
			func(s *scenario.Scenario) { s.Underlay6 = true },
			func(s *scenario.Scenario) { s.IPv6, s.Underlay6, s.Tenants, s.Sizes = true, true, 2, []int{9000} },
		} {
			v := s
			change(&v)
			b, err := scenario.Build(v, "/tmp", 1024)
			if err == nil && supports(&v) == nil {
				setups[fmt.Sprintf("%s/%d", s.Name, i)] = b
			}
		}
	}
	return setups
}

func TestOVSFlowsAreUnderstood(t *testing.T) {
	if _, err := exec.LookPath("ovs-ofctl"); err != nil {
		t.Skip(err)
	}
	for name, b := range variants(t, (&OVS{}).Supports) {
		lists := [][]byte{ovsTenantFlows(b)}
		if len(b.Tunnels) > 0 {
			lists = append(lists, ovsWireFlows(b))
		}
		for _, list := range lists {
			cmd := exec.CommandContext(t.Context(), "ovs-ofctl", "--protocols=OpenFlow15", "parse-flows", "-")
			cmd.Stdin = bytes.NewReader(list)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s in\n%s", name, err, out, list)
			}
		}
	}
}

func TestOVSFlows(t *testing.T) {
	setups := variants(t, (&OVS{}).Supports)
	for _, c := range []struct{ scenario, want string }{
		{"routed/0", "table=0,in_port=1,dl_dst=02:c1:00:00:01:00,ip actions=load:0->NXM_NX_REG0[],goto_table:2"},
		{"routed/0", "table=2,priority=1024,reg0=0,ip,nw_dst=10.0.1.0/24 actions=load:2->NXM_NX_REG1[],goto_table:3"},
		{"routed/0", "table=3,reg1=2,ip " +
			"actions=dec_ttl,mod_dl_src:02:c1:00:00:01:01,mod_dl_dst:02:c1:00:00:02:01,output:2"},
		{"routed/1", "table=0,in_port=3,dl_dst=02:c1:00:00:01:02,ip actions=load:1->NXM_NX_REG0[],goto_table:1"},
		{"routed/1", "table=1,ct_state=-trk,ip actions=ct(table=1,zone=NXM_NX_REG0[0..15])"},
		{"bridged/0", "table=2,reg0=0,dl_dst=02:c1:00:00:02:01 actions=load:2->NXM_NX_REG1[],goto_table:3"},
		{"vxlan-encap/0", "table=3,reg1=1001,ip " +
			"actions=dec_ttl,mod_dl_src:02:c1:00:00:01:01,mod_dl_dst:02:c1:00:00:04:00," +
			"set_field:1001->tun_id,set_field:192.0.2.1->tun_src,set_field:198.51.100.1->tun_dst,output:1000"},
		{"vxlan-decap/2", "table=0,in_port=1000,tun_id=2001,dl_dst=02:c1:00:00:01:01,ipv6 " +
			"actions=load:0->NXM_NX_REG0[],goto_table:2"},
		{"vxlan-bridge-decap/0", "table=0,in_port=1000,tun_id=2001,ip actions=load:0->NXM_NX_REG0[],goto_table:2"},
		{"mplsogre-decap/2", "table=0,in_port=1000,mpls,mpls_label=2001,mpls_bos=1 " +
			"actions=pop_mpls:0x86dd,load:0->NXM_NX_REG0[],goto_table:2"},
	} {
		if b := setups[c.scenario]; !strings.Contains(string(ovsTenantFlows(b)), c.want+"\n") {
			t.Errorf("%s: no %q in\n%s", c.scenario, c.want, ovsTenantFlows(b))
		}
	}
	want := "table=0,in_port=LOCAL,ipv6,nw_proto=17,tp_dst=4789 actions=output:2\n" +
		"table=0,in_port=2,ipv6,nw_proto=17,tp_dst=4789,ipv6_dst=3fff::1 actions=LOCAL\n"
	if got := string(ovsWireFlows(setups["vxlan-encap/3"])); got != want {
		t.Errorf("wire: %q; want %q", got, want)
	}
}
