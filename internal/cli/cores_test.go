// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/cores"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology/topologytest"
)

func runCores(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := New(&out, &errs, Dial).Run(context.Background(), append([]string{"cores"}, args...))
	if code != want {
		t.Fatalf("%v: exit code %d, not %d\n%s%s", args, code, want, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

// A rehearsal on a captured machine: diff, apply, an empty diff, rollback, and a second rollback with nothing to undo.
func TestCoresOnCapturedMachine(t *testing.T) {
	root, file := topologytest.Dir(t, "no-smt-20"), filepath.Join(t.TempDir(), "plan.json")
	p, err := plan.Make(topologytest.Machine(t, "no-smt-20"), plan.Request{Forwarding: 2})
	if err == nil {
		err = plan.Save(file, p)
	}
	if err != nil {
		t.Fatal(err)
	}
	diff, _ := runCores(t, 0, "diff", file, "--root", root)
	if !strings.Contains(diff, "WHEN") || !strings.Contains(diff, "kernel-arguments") || strings.Count(diff, "\n") < 5 {
		t.Error(diff)
	}
	commands, _ := runCores(t, 0, "diff", file, "--root", root, "--commands")
	if !strings.Contains(commands, "taskset -pc ") {
		t.Error(commands)
	}
	if _, err := os.Stat(filepath.Join(root, cores.Dir)); err == nil {
		t.Error("diff has written something")
	}
	applied, _ := runCores(t, 0, "apply", file, "--root", root, "-o", "json")
	lines := strings.Split(strings.TrimSpace(applied), "\n")
	for _, line := range lines[:len(lines)-1] {
		var o cores.Outcome
		if err := json.Unmarshal([]byte(line), &o); err != nil || o.Result == "" || o.Why == "" {
			t.Errorf("%s: %v", line, err)
		}
	}
	if last := lines[len(lines)-1]; !strings.Contains(last, `"missing_kernel_arguments":["isolcpus=`) {
		t.Error(last)
	}
	if back, _ := runCores(t, 0, "rollback", "--root", root); !strings.Contains(back, "restored") {
		t.Error(back)
	}
	if again, _ := runCores(t, 0, "rollback", "--root", root); again != "Nothing to put back.\n" {
		t.Error(again)
	}
	for want, args := range map[string][]string{
		"it was made for":    {"apply", file, "--root", topologytest.Dir(t, "odd-even-16")},
		"regular expression": {"diff", file, "--root", root, "--spare", "("},
		"no such file":       {"diff", file + ".not", "--root", root},
		"cannot be in both":  {"apply", file, "--root", root, "--install", "--reboot-files", "/x"},
		"plan: missing":      {"apply"},
	} {
		if _, err := runCores(t, 2, args...); !strings.Contains(err, want) || strings.Count(err, "\n") != 1 {
			t.Errorf("%v: %q has no '%s'", args, err, want)
		}
	}
}
