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
		if at := strings.LastIndex(line, "7  api"); at < column {
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
