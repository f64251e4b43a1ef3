// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/corelane/corelane/internal/lab"
)

func TestLabList(t *testing.T) {
	hostPath, err := lab.Find("host-path")
	if err != nil {
		t.Fatal(err)
	}
	since := time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)
	overlay, err := lab.Find("overlay")
	if err != nil {
		t.Fatal(err)
	}
	running := []*lab.Lab{
		{Topology: hostPath, Ledger: &lab.Ledger{Status: lab.GoingDown, Underlay: lab.IPv6, Since: since}},
		{Topology: overlay, Ledger: &lab.Ledger{Status: lab.Up, Underlay: lab.IPv4, Since: since,
			Processes: []lab.Process{{Name: "gone", Pid: 1, Start: -1}}}},
	}
	var out bytes.Buffer
	if err := (&app{stdout: &out}).labList(labLines(lab.Topologies(), running)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"LAB STATE UNDERLAY PROCESSES SINCE CONTENTS",
		"two-hosts not running - - - two Corelane hosts on one wire",
		"overlay running ipv4 0 of 1 alive 2026-03-01 12:00:00 two Corelane hosts and a Linux host",
		"host-path being removed ipv6 0 of 0 alive 2026-03-01 12:00:00 a Corelane host with a host port",
	}
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, line := range got {
		if len(got) != len(want) || !strings.HasPrefix(strings.Join(strings.Fields(line), " "), want[i]) {
			t.Fatalf("got:\n%s", out.String())
		}
	}
}

// A lab that a measurement left behind can be removed, but a user cannot bring it up.
func TestLabsOfMeasurements(t *testing.T) {
	if err := checkLab("host-path"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"host-path", "nothing"} {
		if _, err := findLab(name); err == nil || !strings.Contains(err.Error(), "two-hosts, overlay") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := checkLab("nothing"); err == nil {
		t.Error("an unknown lab is accepted")
	}
}
