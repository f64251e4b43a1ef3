// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/corelane/corelane/internal/api/apitest"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

func routeFile(t *testing.T, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "10.%d.%d.%d/32 7\n", i>>16&255, i>>8&255, i&255)
	}
	name := filepath.Join(t.TempDir(), "routes.txt")
	if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// A file is sent in batches; the list returns all of it, in a table whose columns stay aligned.
func TestRouteFile(t *testing.T) {
	const n = 10000
	s := fixture(t)
	var sizes []int
	s.Refuse = func(_ string, req proto.Message) error {
		if r, ok := req.(*apiv1.RouteAddRequest); ok {
			sizes = append(sizes, len(r.Routes))
		}
		return nil
	}
	if r := run(s, "", "route", "add", "--vrf", "bulk", "--file", routeFile(t, n), "-o",
		"json"); r.stdout != "{\"changed\":10000}\n" {
		t.Fatal(r)
	}
	if fmt.Sprint(sizes) != "[4096 4096 1808]" {
		t.Error("batches", sizes)
	}
	lines := strings.Split(strings.TrimSuffix(run(s, "", "route", "list", "--vrf", "bulk", "--no-headers").stdout,
		"\n"), "\n")
	if len(lines) != n {
		t.Errorf("%d lines", len(lines))
	}
	column := 0
	for i, line := range lines {
		if at := strings.LastIndex(line, "7  port vm1 10.1.0.5  api"); at < column {
			t.Fatalf("line %d is narrower than those before: %q", i, line)
		} else {
			column = at
		}
	}
}

// When a later batch is refused, the error names the line and what had been done.
func TestRouteFileRefused(t *testing.T) {
	s := fixture(t)
	s.Refuse = func(_ string, req proto.Message) error {
		if r, ok := req.(*apiv1.RouteAddRequest); ok && r.Routes[0].Prefix != "10.0.0.0/32" {
			return apitest.Refusal(codes.ResourceExhausted, &apiv1.Error{Message: "out of memory", Index: 3})
		}
		return nil
	}
	name := routeFile(t, 5000)
	r := run(s, "", "route", "add", "--vrf", "bulk", "--file", name)
	want := name + ":4100: out of memory (4096 routes before it were changed, none after)\n"
	if r.code != 1 || r.stderr != want {
		t.Errorf("%+v\nwant %s", r, want)
	}
}

// Next hops and MAC addresses of files are sent in batches; a refusal names the line.
func TestLoadInBatches(t *testing.T) {
	s := fixture(t)
	var hops, macs strings.Builder
	hops.WriteString("# two kinds\n2000 tunnel --encap vxlan --remote 192.0.2.2 --vni 5001 --dscp 0\n")
	for i := range 1500 {
		fmt.Fprintf(&hops, "%d discard\n", 3000+i)
		fmt.Fprintf(&macs, "02:00:00:01:%02x:%02x nexthop 100\n", i>>8, i&255)
	}
	for _, test := range []struct {
		file *strings.Builder
		args []string
		want string
	}{
		{&hops, []string{"nexthop", "load"}, "{\"added\":1501}\n"},
		{&macs, []string{"mac", "load", "lan"}, "{\"added\":1500}\n"},
	} {
		s.Calls = nil
		if r := run(s, test.file.String(), append(test.args, "-", "-o", "json")...); r.stdout != test.want {
			t.Error(r)
		}
		r := run(s, "# again\n"+strings.SplitN(test.file.String(), "\n", 3)[1], append(test.args, "-")...)
		if r.code != 1 || !strings.HasPrefix(r.stderr, "-:2: ") {
			t.Error(r)
		}
	}
	nh, _ := s.Nexthops.Get(2000)
	if !nh.GetTunnel().GetFixedDscp() || nh.GetTunnel().GetVni() != 5001 {
		t.Error(nh)
	}
	for line, want := range map[string]string{
		"1 tunnel --label 20":       "--encap: missing",
		"1":                         "is not a next hop",
		"1 discard --label 20":      "--label: is for tunnel",
		"1 tunnel --nothing":        "--nothing",
		"02:00:00:00:00:01 port":    "it has 2 words",
		"02:00:00:00:00:01 vrf red": "'vrf' is unknown",
	} {
		args := []string{"nexthop", "load", "-"}
		if strings.Contains(line, ":00") {
			args = []string{"mac", "load", "lan", "-"}
		}
		if r := run(s, line, args...); r.code != 2 || !strings.Contains(r.stderr, want) {
			t.Errorf("%q: %+v", line, r)
		}
	}
}
