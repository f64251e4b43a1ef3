// SPDX-License-Identifier: Apache-2.0
package verify

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/topology/topologytest"
)

var update = flag.Bool("update", false, "rewrite testdata/*.txt")

// TestGolden compares the findings about each described machine, without a plan, with testdata.
func TestGolden(t *testing.T) {
	for _, name := range topologytest.Names() {
		m := topologytest.Machine(t, name)
		var text strings.Builder
		for _, f := range Check(m, nil) {
			fmt.Fprintf(&text, "%-8s%s\n", f.Verdict, f.ID)
			for n, i := range f.Evidence {
				if n < 4 {
					fmt.Fprintf(&text, "        - %s %s\n", i.Verdict, i.Text)
				}
			}
			for n, command := range f.Fix {
				if n < 3 {
					fmt.Fprintf(&text, "        $ %s\n", command)
				}
			}
		}
		path := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if text.String() != string(want) {
			t.Errorf("%s: not as in %s (go test ./internal/verify -run Golden -update writes it):\n%s", name, path,
				text.String())
		}
	}
}
