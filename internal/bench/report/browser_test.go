// SPDX-License-Identifier: Apache-2.0
package report

import (
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/browsertest"
)

func TestInABrowser(t *testing.T) {
	r := load(t)
	report := render(t, r)
	layouts, console := browsertest.Browse(t, report)
	if len(console) != 1 || !strings.Contains(console[0], "measured") {
		t.Errorf("the browser's console: %q", console)
	}
	if len(layouts) != 2 || layouts[0].Width < 1200 || layouts[1].Width > 390 || layouts[1].Width < 350 {
		t.Fatalf("not the frames of measure.html: %+v", layouts)
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

// The browser test finds a broken layout and a resource that cannot be fetched.
func TestBrowserFindsWhatIsWrong(t *testing.T) {
	report := render(t, load(t))
	report = strings.Replace(report, "<main>",
		`<main><div style="width: 2000px">wide</div><svg class="plot" width="9" height="9"></svg><img src="http://192.0.2.1/x.png">`, 1)
	layouts, console := browsertest.Browse(t, report)
	if len(console) < 2 {
		t.Errorf("the failed fetch of a picture is not in the console: %q", console)
	}
	for _, l := range layouts {
		if found := strings.Join(l.Problems, "\n"); !strings.Contains(found, "wider than the window") ||
			!strings.Contains(found, "plot of 9 x 9") {
			t.Errorf("at %d pixels only: %s", l.Width, found)
		}
	}
}
