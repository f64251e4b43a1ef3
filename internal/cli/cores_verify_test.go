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

	"github.com/corelane/corelane/internal/topology/topologytest"
)

// runVerify is 'corelane cores verify' without a daemon.
func runVerify(t *testing.T, arguments ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = New(&stdout, &stderr, Dial).Run(context.Background(), append([]string{"cores", "verify"}, arguments...))
	return code, stdout.String(), stderr.String()
}

func TestVerifyCaptured(t *testing.T) {
	good := topologytest.Dir(t, "xeon-4210")
	code, out, errs := runVerify(t, "--root", good)
	if code != 0 || errs != "" || !strings.Contains(out, "PASS    Isolation is not partial\n") ||
		!strings.Contains(out, " 0 FAIL, ") {
		t.Errorf("%d, %s\n%s", code, errs, out)
	}
	if code, out, _ = runVerify(t, "--root", good, "--all"); code != 0 ||
		!strings.Contains(out, "full isolation of workers' CPUs") {
		t.Errorf("%d\n%s", code, out)
	}

	// The same machine with Nova's CPUs isolated only.
	spec := topologytest.Describe(t, "xeon-4210")
	spec.Cmdline = strings.ReplaceAll(spec.Cmdline, "1-9,11-19,21-29,31-39", "6-9,11-19,26-29,31-39")
	half := spec.Dir(t)
	code, out, errs = runVerify(t, "--root", half)
	for _, want := range []string{"FAIL    Isolation is not partial", "workers' CPUs 1-4 are left out", "0.165 Mpps",
		"fix: corelane cores apply"} {
		if code != 1 || !strings.Contains(out, want) {
			t.Errorf("%d, no '%s' in %s\n%s", code, want, errs, out)
		}
	}
	code, out, _ = runVerify(t, "--root", half, "-o", "json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range lines {
		var f struct{ ID, Verdict, Title, Why, Source string }
		if err := json.Unmarshal([]byte(line), &f); err != nil || f.ID == "" || f.Verdict == "" || f.Why == "" ||
			f.Source == "" {
			t.Errorf("%v: %s", err, line)
		}
	}
	if code != 1 || len(lines) < 40 {
		t.Errorf("%d, %d lines", code, len(lines))
	}
}

// The commands that fix something name the plan that was verified.
func TestVerifyNamesThePlan(t *testing.T) {
	good := topologytest.Dir(t, "xeon-4210")
	spec := topologytest.Describe(t, "xeon-4210")
	spec.Cmdline = "quiet"
	file := filepath.Join(t.TempDir(), "it's a plan.json")
	var stdout, stderr bytes.Buffer
	if code := New(&stdout, &stderr, Dial).Run(context.Background(), []string{"plan", "make", "--root", good,
		"--forwarding", "4", "--boot", "--out", file}); code != 0 {
		t.Fatalf("%d, %s", code, stderr.String())
	}
	_, out, errs := runVerify(t, "--root", spec.Dir(t), "--plan", file)
	want := "fix: corelane cores apply '" + strings.ReplaceAll(file, "'", `'\''`) + "'   # writes the arguments"
	if !strings.Contains(out, want) || strings.Contains(out, "/etc/corelane/plan.json") {
		t.Errorf("no %q in %s\n%s", want, errs, out)
	}
}

// A plan for another machine is refused: the checks would be about CPUs that are not there.
func TestVerifyForeignPlan(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plan.json")
	var stdout, stderr bytes.Buffer
	code := New(&stdout, &stderr, Dial).Run(context.Background(), []string{"plan", "make", "--forwarding", "2",
		"--root", topologytest.Dir(t, "xeon-4210"), "--out", file})
	if code != 0 {
		t.Fatal(stderr.String())
	}
	code, _, errs := runVerify(t, "--root", topologytest.Dir(t, "vm"), "--plan", file)
	if code != 2 || !strings.Contains(errs, "it was made for compute-0, not for guest") {
		t.Errorf("%d, %s", code, errs)
	}
}

func TestVerifyBadInput(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, arguments := range map[string][]string{
		"no such file or directory": {"--root", "/nonexistent"},
		"plan.json":                 {"--plan", broken},
		"--window":                  {"--window", "-1s"},
		"settings show no intent":   {"--root", topologytest.Dir(t, "no-smt-20")},
	} {
		code, _, errs := runVerify(t, arguments...)
		if code != 2 || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: %d, %s", arguments, code, errs)
		}
	}
}
