// SPDX-License-Identifier: Apache-2.0
package intent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const good = `
bgp: {asn: 65000, router_id: 192.0.2.1}
peers:
  - address: 192.0.2.100
instances:
  - {vrf: red, import_targets: ["65000:1"], export_targets: ["192.0.2.1:7", "4200000000:5"]}
attachments:
  - port: {name: vm1, role: PORT_ROLE_TENANT, tap: {}, vrf: red, guest_addresses: [10.0.0.1]}
`

func faults(s *Set) map[string]string {
	all := map[string]string{}
	for _, o := range s.Objects {
		if o.Error != "" {
			all[o.Kind+" "+o.Name] = o.Error
		}
	}
	return all
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", good)
	write(t, dir, ".hidden.yaml", "[")
	write(t, dir, "b.yaml.new", "[")
	s, err := Load(dir)
	if err != nil || len(faults(s)) > 0 {
		t.Fatal(err, faults(s))
	}
	if s.Bgp.StaleSeconds != 86400 || s.Bgp.TunnelAddress != "192.0.2.1" || len(s.Bgp.Encaps) != 2 ||
		s.Peers[0].HoldSeconds != 90 || s.Attachments[0].Port.Mtu != 1500 || len(s.Instances) != 1 {
		t.Errorf("%v\n%v\n%v", s.Bgp, s.Peers, s.Attachments)
	}
}

// Each fault is the fault of one object, and says what is valid.
func TestFaultsBlockNoOther(t *testing.T) {
	for _, c := range []struct{ text, object, words string }{
		{"instances:\n  - {vrf: a b}\n", "instance ", "1 to 31 of"},
		{"instances:\n  - {vrf: blue, import_targets: [nonsense]}\n", "instance blue", "valid: AS:NUMBER"},
		{"instances:\n  - {vrf: blue, rd: \"65000:1:2\"}\n", "instance blue", "not a route target or distinguisher"},
		{"instances:\n  - {vrf: fabric}\n", "instance fabric", "belongs to the underlay"},
		{"instances:\n  - {vrf: red}\n", "instance red", "is already given in"},
		{"instances:\n  - {vrf: blue, colour: 1}\n", "instance blue", "unknown key"},
		{"peers:\n  - {address: 224.0.0.1}\n", "peer ", "the address of a host"},
		{"peers:\n  - {address: 192.0.2.9, hold_seconds: 2}\n", "peer 192.0.2.9", "3 to 65535"},
		{"peers:\n  - {address: 192.0.2.9, default_encap: ENCAP_GENEVE}\n", "peer 192.0.2.9", "carries no labels"},
		{"segments:\n  - {bridge: lan}\n", "segment lan", "vni"},
		{"segments:\n  - {bridge: lan, vni: 5, rd: nonsense}\n", "segment lan", "not a route target or distinguisher"},
		{"segments:\n  - {bridge: lan, vni: 5}\n  - {bridge: other, vni: 5}\n", "segment other",
			"that of segment 'lan'"},
		{"segments:\n  - {bridge: lan, vni: 5}\ninstances:\n  - {vrf: blue, vni: 5}\n", "instance blue",
			"that of segment 'lan'"},
		{"attachments:\n  - port: {name: vm2, role: PORT_ROLE_TENANT, tap: {}, vrf: blue}\n", "attachment vm2",
			"waits: there is no instance of VRF 'blue'"},
		{"attachments:\n  - port: {name: f, role: PORT_ROLE_FABRIC, tap: {}}\n", "attachment f", "a port of a tenant"},
		{"attachments:\n  - {}\n", "attachment ", "missing"},
		{"bgp: {asn: 1, router_id: \"2001:db8::1\"}\n", "bgp bgp", "not an IPv4 address"},
		{"bgp: {asn: 1, router_id: 192.0.2.1, label_min: 200, label_max: 100}\n", "bgp bgp", "above label_max"},
		{"nonsense: 1\n", "file z.yaml", "unknown key"},
		{"[\n", "file z.yaml", "not YAML"},
	} {
		dir := t.TempDir()
		write(t, dir, "a.yaml", good)
		write(t, dir, "z.yaml", c.text)
		s, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		got := faults(s)
		if len(got) != 1 || !strings.Contains(got[c.object], c.words) {
			t.Errorf("%q: %q", c.text, got)
		}
		if s.Bgp == nil || len(s.Peers) != 1 || len(s.Instances) != 1 || len(s.Attachments) != 1 {
			t.Errorf("%q took others with it: %v", c.text, s)
		}
	}
}

// An instance with a VNI has targets by default, one with labels has none; a VNI belongs to one object.
func TestVniOfInstances(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", "bgp: {asn: 65000, router_id: 192.0.2.1}\ninstances:\n  - {vrf: red, vni: 5}\n"+
		"  - {vrf: blue, vni: 5}\n  - {vrf: green}\n  - {vrf: grey, vni: 6, import_targets: [\"65000:7\"]}\n")
	s, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := faults(s); len(got) != 1 || !strings.Contains(got["instance blue"], "that of instance 'red'") {
		t.Error(got)
	}
	var targets []string
	for _, i := range s.Instances {
		targets = append(targets, fmt.Sprint(i.Vrf, i.ImportTargets, i.ExportTargets))
	}
	if got := strings.Join(targets, " "); got != "red[65000:5] [65000:5] green[] [] grey[65000:7] [65000:6]" {
		t.Error(got)
	}
}

func TestWithoutBgp(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", "instances:\n  - {vrf: red}\n")
	s, _ := Load(dir)
	if got := faults(s)["instance red"]; !strings.Contains(got, "there is no object 'bgp'") {
		t.Error(got)
	}
}

func TestTargets(t *testing.T) {
	for _, text := range []string{"65000:100", "192.0.2.1:7", "4200000000:5", "0:4294967295"} {
		if target, err := ParseTarget(text); err != nil || target.String() != text {
			t.Errorf("%s: %v, %v", text, target, err)
		}
	}
	for _, text := range []string{"", "1", "1:", ":1", "1:2:3", "192.0.2.1:65536", "4294967296:1",
		"65536:65536", "-1:1"} {
		if target, err := ParseTarget(text); err == nil {
			t.Errorf("%s: %v", text, target)
		}
	}
}

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	changed, err := Watch(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "a.yaml.new", good)
	if err := os.Rename(filepath.Join(dir, "a.yaml.new"), filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	case <-time.After(20 * time.Second):
		t.Fatal("nothing was noticed")
	}
	if _, err := Watch(t.Context(), filepath.Join(dir, "none")); err == nil {
		t.Error("a directory that does not exist is watched")
	}
}
