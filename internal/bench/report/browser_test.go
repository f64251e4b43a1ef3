// SPDX-License-Identifier: Apache-2.0
package report

import (
	"bytes"
	"context"
	"encoding/json"
	"html/template"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

// layout is what testdata/measure.html finds in a frame.
type layout struct {
	Width    int
	Plots    int
	Problems []string
}

var consoleLine = regexp.MustCompile(`(?m)^.*CONSOLE.*$`)

// browse opens a report in frames of 1280 and of 390 pixels. Console are the lines that the browser logged.
func browse(t *testing.T, report string) (layouts []layout, console []string) {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skipf("no browser: %v", err)
	}
	page, err := os.ReadFile("testdata/measure.html")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(page), "REPORT", template.HTMLEscapeString(report))), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(), "--enable-logging=stderr", "--window-size=1700,1000", "--dump-dom", "file://"+path)
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
		if n.Data == "pre" && attribute(n, "id") == "found" {
			if err := json.Unmarshal([]byte(text(n)), &layouts); err != nil {
				t.Fatalf("%v: '%s'", err, text(n))
			}
		}
	}
	return layouts, consoleLine.FindAllString(log.String(), -1)
}

func TestInABrowser(t *testing.T) {
	r := load(t)
	report := render(t, r)
	layouts, console := browse(t, report)
	if len(console) != 1 || !strings.Contains(console[0], "measured") {
		t.Errorf("the browser's console: %q", console)
	}
	if len(layouts) != 2 || layouts[0].Width < 1200 || layouts[1].Width > 390 || layouts[1].Width < 350 {
		t.Fatalf("not the frames that were asked for: %+v", layouts)
	}
	for _, l := range layouts {
		if l.Plots != strings.Count(report, `class="plot"`) || l.Plots == 0 {
			t.Errorf("%d plots at %d pixels", l.Plots, l.Width)
		}
		for _, p := range l.Problems {
			t.Errorf("at %d pixels: %s", l.Width, p)
		}
	}
}

// The test above is worth something: it finds a layout that is broken and a script that fails.
func TestBrowserFindsWhatIsWrong(t *testing.T) {
	report := render(t, load(t))
	report = strings.Replace(report, "<main>", `<main><div style="width: 2000px">wide</div><svg class="plot" width="9" height="9"></svg><img src="http://192.0.2.1/x.png">`, 1)
	layouts, console := browse(t, report)
	if len(console) < 2 {
		t.Errorf("a picture from the network went unseen: %q", console)
	}
	for _, l := range layouts {
		if found := strings.Join(l.Problems, "\n"); !strings.Contains(found, "wider than the window") || !strings.Contains(found, "plot of 9 x 9") {
			t.Errorf("at %d pixels only: %s", l.Width, found)
		}
	}
}
