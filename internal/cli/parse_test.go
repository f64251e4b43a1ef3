// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/hex"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

func FuzzGroup(f *testing.F) {
	for _, s := range []string{"100:1 101:3", "7", "1:256", ":", "1:2:3", "1048576"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		specs := strings.Fields(spec)
		group, err := parseGroup(specs)
		if err != nil {
			return
		}
		if len(group.Members) != len(specs) {
			t.Fatalf("%d members of %d", len(group.Members), len(specs))
		}
		for _, m := range group.Members {
			if m.Nexthop < 1 || m.Nexthop > 1048575 || m.Weight < 1 || m.Weight > 256 {
				t.Errorf("%q let %v through", spec, m)
			}
		}
		again, err :=
			parseGroup(strings.Fields(nexthopTarget(&apiv1.Nexthop{Kind: &apiv1.Nexthop_Group{Group: group}})))
		if err != nil || again.String() != group.String() {
			t.Errorf("%q reads back as %v, %v", spec, again, err)
		}
	})
}

func FuzzRouteLine(f *testing.F) {
	for _, s := range []string{"10.0.0.0/8 5", "2001:db8::/32 1048575", "10.0.0.1/8 5", "::ffff:10.0.0.0/104 1",
		"10.1.2.3 1", "#", "fe80::1%eth0 1"} {
		f.Add(s, uint32(0), false)
	}
	f.Add("10.0.0.0/8", uint32(7), true)
	f.Fuzz(func(t *testing.T, line string, nexthop uint32, prefixOnly bool) {
		words := strings.Fields(line)
		if len(words) == 0 {
			return
		}
		route, err := parseRouteLine(words, &apiv1.Route{Nexthop: nexthop}, prefixOnly)
		if err != nil {
			return
		}
		p, err := netip.ParsePrefix(route.Prefix)
		if err != nil || p != p.Masked() || p.String() != route.Prefix {
			t.Errorf("%q became prefix %q", line, route.Prefix)
		}
		if route.Nexthop == 0 && !prefixOnly {
			t.Errorf("%q has no next hop", line)
		}
	})
}

func FuzzRuleLine(f *testing.F) {
	for _, s := range []string{"100 allow --protocol tcp --source 10.0.0.0/8 --destination-ports 80-443 --log",
		"1 deny # x", "2 allow --log=false", "3 allow --", "4 deny --source-group", "16777217 allow", "5 drop",
		"--log 6 deny"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		rule, err := parseRuleLine(line)
		if err != nil {
			if code := exitCode(err); code != exitUsage {
				t.Errorf("%q: %v ends with %d", line, err, code)
			}
			return
		}
		if rule != nil && (rule.Id < 1 || rule.Id > 1<<24) {
			t.Errorf("%q let %v through", line, rule)
		}
	})
}

// FuzzFiles reads files of rules and of routes.
func FuzzFiles(f *testing.F) {
	for _, s := range []string{"100 allow --protocol tcp\n# x\n200 deny\n", "1 allow\n1 deny\n", "1\n", "1 allow x\n",
		"1 allow --x\n",
		"10.0.0.0/8 5\n\n2001:db8::/32 7 # x\n", "10.0.0.0/8\n", "10.0.0.0/8 5 6\n", "10.0.0.1/8 5\n",
		strings.Repeat("10.0.0.0/8 5\n", routeBatch+1)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rules, lines, err := readRules("web", "rules.txt", strings.NewReader(text))
		if err == nil && len(rules) != len(lines) {
			t.Errorf("%d rules in %d lines", len(rules), len(lines))
		}
		sent := 0
		a := &app{stderr: io.Discard}
		send := func(_ context.Context, routes []*apiv1.Route) (*apiv1.RouteReply, error) {
			sent += len(routes)
			return &apiv1.RouteReply{Changed: uint32(len(routes))}, nil
		}
		b := a.bulkRoutes(&apiv1.Route{}, false, send)
		b.name = "routes.txt"
		if err := b.read(t.Context(), strings.NewReader(text)); err == nil {
			err = b.flush(t.Context())
			if err != nil || sent > strings.Count(text, "\n")+1 || b.count != uint64(sent) {
				t.Errorf("%d routes, of which %d are done: %v", sent, b.count, err)
			}
		}
	})
}

func FuzzPacket(f *testing.F) {
	decodeTunnels(&apiv1.Settings{MplsoudpPorts: []uint32{6635}, VxlanPorts: []uint32{4789},
		GenevePorts: []uint32{6081}})
	for _, s := range []string{ping, "0x0102", "ff:ff:ff:ff:ff:ff 02:00:00:00:00:01 08-06.00", "zz",
		strings.Repeat("00", 20000)} {
		f.Add(s)
	}
	head := "\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00"
	f.Add(head + "\x01\x00\x00\x00" +
		"\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x10\x00\x00\x00sixteen.byte.pkt")
	paths, err := filepath.Glob(filepath.Join("..", "..", "tests", "fuzz", "corpus", "*", "*"))
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths { // frames, behind three bytes that direct the target
		folder := filepath.Base(filepath.Dir(path))
		if data, err := os.ReadFile(path); err == nil && len(data) > 17 && (folder == "fabric" || folder == "tenant") {
			f.Add(hex.EncodeToString(data[3:]))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		data, err := parseHex(text)
		if err == nil && 2*len(data) > len(text) {
			t.Errorf("%q became %d bytes", text, len(data))
		}
		_, _ = parsePacket(strings.TrimLeft(text, "@")) // @ names a file
		_ = summary(data)
		_ = summary([]byte(text))
		_, _, _ = firstPacket([]byte(text))
	})
}

func TestReadPacket(t *testing.T) {
	dir := t.TempDir()
	write := func(name, data string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// The global header of a pcap file in microseconds, little endian, and one packet.
	head := "\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00"
	packet := "\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x10\x00\x00\x00sixteen.byte.pkt"
	for _, c := range []struct{ name, file, want, err string }{
		{"ok", head + "\x01\x00\x00\x00" + packet, "sixteen.byte.pkt", ""},
		{"empty", head + "\x01\x00\x00\x00", "", "holds no packet"},
		{"linux-sll", head + "\x71\x00\x00\x00" + packet, "", "not Ethernet"},
		{"text", "hello", "", "neither pcap nor pcapng"},
	} {
		data, err := parsePacket("@" + write(c.name, c.file))
		if string(data) != c.want || (err != nil) != (c.err != "") ||
			err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", c.name, data, err)
		}
	}
}

func TestSummary(t *testing.T) {
	for _, c := range []struct{ hex, want string }{
		{"ffffffffffff0200000000010806" + "0001080006040001" + "0200000000010a010001" + "0000000000000a01000b",
			"02:00:00:00:00:01 > ff:ff:ff:ff:ff:ff / ARP who has 10.1.0.11, tell 10.1.0.1"},
		{"02000000000202000000000181000064" + "0800" +
			"45000028000000004006000001020304050607080050c00100000000000000005012ffff00000000",
			"02:00:00:00:00:01 > 02:00:00:00:00:02 / vlan 100 / 1.2.3.4 > 5.6.7.8 ttl 64 / TCP 80 > 49153 [S.]"},
		{"02000000000202000000000188b7", "02:00:00:00:00:01 > 02:00:00:00:00:02"},
		{"0200", "malformed: Ethernet packet too small"},
	} {
		if got := summary(mustHex(c.hex)); !strings.HasPrefix(got, c.want) {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
