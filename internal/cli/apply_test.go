// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"strings"
	"testing"
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
