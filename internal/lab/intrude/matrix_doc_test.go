// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/explain"
)

// What a run printed as JSON becomes the table of docs/cores.md; a second file replaces the cases that it has.
func TestDocument(t *testing.T) {
	lines := func(list ...Outcome) string {
		var b strings.Builder
		for _, o := range list {
			if err := json.NewEncoder(&b).Encode(o); err != nil {
				t.Fatal(err)
			}
		}
		return b.String()
	}
	hog := Outcome{Case: "hog", Passed: true, Found: explain.Cause{Kind: explain.ForeignThread, Name: "cl-hog", PID: 7},
		Seconds: 3.2, Before: 10e6, Offered: 10e6, During: 6e6, Said: 4.1e6, After: 9.9e6}
	wrong := Outcome{Case: "tlb", Found: explain.Cause{Kind: explain.Steal, Name: "hypervisor"}, Seconds: 3,
		Why: "steal is not\ntlb-shootdown"}
	all, err := Outcomes(nil, strings.NewReader(lines(wrong, Outcome{Case: "hog", Why: "old"},
		Outcome{Case: "gdb", Passed: true, Skipped: "needs the program gdb"})))
	if err == nil {
		all, err = Outcomes(all, strings.NewReader(lines(hog)))
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := Into("# x\n"+tableBegin+"old\n"+tableEnd+"end\n", Document(all))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# x\n" + tableBegin + "| case |",
		"| `hog` | a thread that never sleeps, bound to the worker's CPU | foreign-thread: cl-hog | 3.2 | 4.10 | 4.00 | " +
			"0.99 | 1 of 1 |\n| `tlb` |",
		"| steal: hypervisor | 3.0 | 0.00 | 0.00 | not run | 0 of 1 |\n| `gdb` |",
		"| not run: needs the program gdb | | | | | |\n\n1 of 2 runs passed. The median of 1 costs is off by 2 %.\n\n" +
			"- `tlb`: steal is not tlb-shootdown\n" + tableEnd + "end\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no '%s' in\n%s", want, text)
		}
	}
	if strings.Contains(text, "old") {
		t.Errorf("what was there before stays:\n%s", text)
	}
	for _, bad := range []string{"{", "{}", `{"case": 3}`, `{"case": "gone"}`} {
		if _, err := Outcomes(nil, strings.NewReader(bad)); err == nil {
			t.Errorf("'%s' is taken for a run", bad)
		}
	}
	if _, err := Into("# x\n", ""); err == nil {
		t.Error("a document without a place for the table is changed")
	}
}

// The table of docs/cores.md has its place.
func TestDocumentHasAPlace(t *testing.T) {
	text, err := os.ReadFile("../../../docs/cores.md")
	if err == nil {
		_, err = Into(string(text), "")
	}
	if err != nil {
		t.Error(err)
	}
}
