// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// This process' own thread, without a daemon: text and page say the same.
func TestExplainAThread(t *testing.T) {
	var out, errs bytes.Buffer
	file := filepath.Join(t.TempDir(), "why.html")
	app := New(&out, &errs, Dial)
	if code := app.Run(t.Context(), []string{"explain", "--thread", strconv.Itoa(os.Getpid()), "--window", "200ms",
		"--html", file}); code != 0 {
		t.Fatalf("%d: %s", code, errs.String())
	}
	page, err := os.ReadFile(file)
	first, _, _ := strings.Cut(out.String(), "\n")
	if err != nil || first == "" || !bytes.Contains(page, []byte("Corelane explains")) {
		t.Errorf("%v: %q", err, out.String())
	}
}

func TestExplainRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"--window: 1ms is out of range; valid: 100ms to 1h":                    {"--window", "1ms"},
		"--thread: there is no thread -3; valid: the id of a thread that runs": {"--thread", "-3"},
		"--thread: there is no thread 2147483646; valid: the id of a thread that runs": {"--thread", "2147483646",
			"--window", "100ms"},
	} {
		var out, errs bytes.Buffer
		app := New(&out, &errs, Dial)
		if code := app.Run(t.Context(), append([]string{"explain"}, args...)); code != 2 ||
			strings.TrimSpace(errs.String()) != want {
			t.Errorf("%v: %d, %q", args, code, errs.String())
		}
	}
}
