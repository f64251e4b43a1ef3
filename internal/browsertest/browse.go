// SPDX-License-Identifier: Apache-2.0
// Package browsertest opens pages in a real browser and returns faults of their layout and what the browser logs.
package browsertest

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"html/template"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

//go:embed measure.html
var measure string

// Layout is what measure.html finds in a frame.
type Layout struct {
	Width    int
	Plots    int
	Problems []string
}

var consoleLine = regexp.MustCompile(`(?m)^.*CONSOLE.*$`)

// Browse opens a page in frames of 1280 and of 390 pixels. console has the lines that the browser logged.
func Browse(t *testing.T, report string) (layouts []Layout, console []string) {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skipf("no browser: %v", err)
	}
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(measure, "REPORT", template.HTMLEscapeString(report))),
		0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
		"--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(), "--enable-logging=stderr",
		"--window-size=1700,1000", "--dump-dom", "file://"+path)
	c.WaitDelay = time.Second // its children may hold the pipe
	var log bytes.Buffer
	c.Stderr = &log
	dom, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, log.String())
	}
	root, err := html.Parse(bytes.NewReader(dom))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Data == "pre" && slices.ContainsFunc(n.Attr, func(a html.Attribute) bool {
			return a.Key == "id" && a.Val == "found"
		}) {
			if err := json.Unmarshal([]byte(n.FirstChild.Data), &layouts); err != nil {
				t.Fatalf("%v: '%s'", err, n.FirstChild.Data)
			}
		}
	}
	return layouts, consoleLine.FindAllString(log.String(), -1)
}
