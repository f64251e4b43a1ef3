// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// What export writes is what the node has: applying it changes nothing.
func TestExportThenApplyIsNoDifference(t *testing.T) {
	s := fixture(t)
	file := run(s, "", "export")
	if file.code != 0 || !strings.Contains(file.stdout, "\nvrfs:\n") {
		t.Fatalf("%+v", file)
	}
	if r := run(s, file.stdout, "apply", "--dry-run", "-f", "-"); r.code != 0 || r.stdout != "No difference.\n" {
		t.Errorf("%+v", r)
	}
	if again := run(s, "", "export"); again.stdout != file.stdout {
		t.Errorf("the second export differs:\n%s\n%s", file.stdout, again.stdout)
	}
}

// The exit code tells whether what was done is taken back: if so, it is that of the error; 3 if not.
func TestApplyTakesBack(t *testing.T) {
	const where = "\n  done before and taken back: 1 added, 0 changed, 0 deleted; the router is as it was before\n"
	busy := grpcstatus.Error(codes.FailedPrecondition, "busy")
	wrong := grpcstatus.Error(codes.InvalidArgument, "wrong")
	for _, test := range []struct {
		name   string
		refuse map[string]error
		code   int
		stdout string
		text   string
	}{
		{"wrong", map[string]error{"Meters.Add": wrong}, 2, "+ vrf new\nTaken back:\n- vrf new\n",
			"+ meter more: packet_rate 5\n  refused: wrong" + where},
		{"busy", map[string]error{"Meters.Add": busy}, 1, "+ vrf new\nTaken back:\n- vrf new\n",
			"+ meter more: packet_rate 5\n  refused: busy" + where},
		{"half", map[string]error{"Meters.Add": wrong, "Vrfs.Del": busy}, 3, "+ vrf new\n",
			"+ meter more: packet_rate 5\n  refused: wrong\n  done before: 1 added, 0 changed, 0 deleted\n" +
				"  not taken back; the router would be as before after:\n    - vrf new\n      refused: busy\n"},
		{"nothing", map[string]error{"Vrfs.Add": wrong}, 2, "", "+ vrf new\n  refused: wrong\n  nothing was changed\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := fixture(t)
			before := run(s, "", "export").stdout
			s.Lock()
			s.Refuse = func(method string, _ proto.Message) error { return test.refuse[method] }
			s.Unlock()
			want := strings.NewReplacer("\nvrfs:\n", "\nvrfs:\n  - name: new\n", "\nmeters:\n",
				"\nmeters:\n  - name: more\n    packet_rate: 5\n").Replace(before)
			r := run(s, want, "apply", "-f", "-")
			if r.code != test.code || r.stdout != test.stdout || r.stderr != test.text {
				t.Errorf("code %d\n%s\n%s", r.code, r.stdout, r.stderr)
			}
			if now := run(s, "", "export").stdout; (now == before) != (test.code != 3) {
				t.Errorf("before:\n%s\nnow:\n%s", before, now)
			}
		})
	}
}
