// SPDX-License-Identifier: Apache-2.0
package report

import (
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/corelane/corelane/internal/bench/result"
)

func load(t *testing.T) *result.Result {
	t.Helper()
	r, err := result.Load("testdata/result.json")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func render(t *testing.T, r *result.Result) string {
	t.Helper()
	var out strings.Builder
	if err := Write(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// elements returns the elements of a page by name. The page must close every element where it was opened.
func elements(t *testing.T, page string) map[string][]*html.Node {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
	}
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]*html.Node{}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			found[n.Data] = append(found[n.Data], n)
		}
	}
	return found
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func text(n *html.Node) string {
	var out strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			out.WriteString(d.Data)
		}
	}
	return out.String()
}

// selfContained checks that a page runs nothing, fetches nothing, and uses no id twice.
func selfContained(t *testing.T, found map[string][]*html.Node) {
	t.Helper()
	for _, name := range []string{"script", "img", "link", "iframe", "object", "embed", "image", "use", "form",
		"base"} {
		if n := len(found[name]); n > 0 {
			t.Errorf("%d of %s", n, name)
		}
	}
	ids := map[string]bool{}
	for _, list := range found {
		for _, n := range list {
			if id := attribute(n, "id"); id != "" && ids[id] {
				t.Errorf("id %s is not unique", id)
			} else if id != "" {
				ids[id] = true
			}
			for _, a := range n.Attr {
				if a.Key == "src" || strings.HasPrefix(a.Key, "on") ||
					a.Key == "href" && !strings.HasPrefix(a.Val, "#") {
					t.Errorf("%s has %s=%s", n.Data, a.Key, a.Val)
				}
				if strings.Contains(a.Val, "NaN") || strings.Contains(a.Val, "Inf") {
					t.Errorf("%s has %s=%s", n.Data, a.Key, a.Val)
				}
			}
		}
	}
	for _, a := range found["a"] {
		if !ids[strings.TrimPrefix(attribute(a, "href"), "#")] {
			t.Errorf("a link to %s, which does not exist", attribute(a, "href"))
		}
	}
}

// described checks that each plot has a title and a description, and a table with its figures.
func described(t *testing.T, found map[string][]*html.Node) {
	t.Helper()
	for _, f := range found["figure"] {
		plots, tables := 0, 0
		for n := range f.Descendants() {
			if n.Data == "table" {
				tables++
			}
			if n.Data != "svg" || attribute(n, "role") != "img" {
				continue
			}
			plots++
			title, description := n.FirstChild, n.FirstChild.NextSibling
			if title.Data != "title" || description.Data != "desc" || text(title) == "" || text(description) == "" ||
				attribute(n, "aria-labelledby") != attribute(title, "id")+" "+attribute(description, "id") {
				t.Errorf("a plot without title and description")
			}
		}
		if plots != 1 || tables != 1 {
			t.Errorf("a figure with %d plots and %d tables", plots, tables)
		}
	}
	for _, list := range found["table"] {
		var rows []*html.Node
		for n := range list.Descendants() {
			if n.Data == "tr" {
				rows = append(rows, n)
			}
		}
		for _, row := range rows {
			if width(row) != width(rows[0]) {
				t.Errorf("a row of %d columns in a table of %d: %s", width(row), width(rows[0]), text(row))
			}
		}
	}
}

func width(row *html.Node) int {
	n := 0
	for c := range row.ChildNodes() {
		span, err := strconv.Atoi(attribute(c, "colspan"))
		if err != nil {
			span = 1
		}
		n += span
	}
	return n
}
