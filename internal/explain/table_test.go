// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/explain/host"
	"github.com/corelane/corelane/internal/explain/kernel"
)

// declaredKinds are the constants of type Kind, by name, as kind.go has them.
func declaredKinds(t *testing.T) map[string]Kind {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "kind.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Kind{}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		out[v.Names[0].Name] = Kind(text)
		return true
	})
	return out
}

// Each kind in kind.go has a complete row in the table.
func TestTable(t *testing.T) {
	declared := declaredKinds(t)
	if len(declared) != len(rows) {
		t.Errorf("%d kinds and %d rows", len(declared), len(rows))
	}
	for name, kind := range declared {
		r := rowOf(kind) // panics where there is none
		if r.means == "" || r.known == "" || r.colour == "" {
			t.Errorf("%s: the row is not complete: %+v", name, r)
		}
		reported := r.claim != nil || r.counters != nil || r.always != nil || r.losses != nil || r.answers != nil ||
			r.together != nil || r.slower != nil
		remedied := r.remedy != nil || r.noRemedy != ""
		if reported != (r.describe != nil) || reported != remedied {
			t.Errorf("%s: a cause has a source, a description and a remedy or a reason for none; a part has none of "+
				"them: %+v", name, r)
		}
		if (r.limits.loss > 0) != (r.limits.lossRate > 0) {
			t.Errorf("%s: a share of the packets needs a rate below which it does not matter, and the reverse: %+v",
				name, r.limits)
		}
		if !reported && r.part == "" {
			t.Errorf("%s has no source that it is counted from", name)
		}
	}
	seen := map[Kind]bool{}
	for _, r := range rows {
		if seen[r.kind] {
			t.Errorf("%s has two rows", r.kind)
		}
		seen[r.kind] = true
	}
}

// What is special about a cause is a member of its row: no other file than that of the row names its kind.
func TestKindsAreNamedInTheirRows(t *testing.T) {
	declared := declaredKinds(t)
	for name, file := range sources(t) {
		for _, word := range namesIn(file) {
			kind, ok := declared[word]
			if own := "cause_" + strings.ReplaceAll(string(kind), "-", "_") + ".go"; ok && name != own {
				t.Errorf("%s names %s: only %s may", name, word, own)
			}
		}
	}
}

// namesIn returns the names that a file uses, without those of fields.
func namesIn(file *ast.File) (out []string) {
	fields := map[ast.Node]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			fields[n.Sel] = true
		case *ast.KeyValueExpr:
			fields[n.Key] = true
		case *ast.Field:
			for _, name := range n.Names {
				fields[name] = true
			}
		case *ast.Ident:
			if !fields[n] {
				out = append(out, n.Name)
			}
		}
		return true
	})
	return out
}

// sources returns the files of the package by name, without tests and kind.go.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*ast.File{}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") || f.Name() == "kind.go" {
			continue
		}
		if out[f.Name()], err = parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// A loop that is mostly one cause is that cause, and at most one cause can be most of a loop. What the kernel took is
// not the worker's doing.
func TestLongLoopsHaveOneCause(t *testing.T) {
	const ns = 1000
	claimed := map[Kind]int{}
	for _, l := range []LongLoop{{NS: ns, IdleNS: 600, MessagesNS: 400}, {NS: ns, DelayNS: 501, IdleNS: 499},
		{NS: ns, MessagesNS: 900, DelayNS: 100}, {NS: ns, IdleNS: 500, MessagesNS: 500}, {NS: ns, GraphNS: ns}} {
		var kinds []Kind
		for _, r := range rows {
			if r.loop == nil {
				continue
			}
			if taken, name := r.loop(&l); taken > ns/2 && name != "" {
				kinds = append(kinds, r.kind)
				claimed[r.kind]++
			}
		}
		who, ok := classifyLoop(&l)
		if len(kinds) > 1 || ok != (len(kinds) == 1) || ok && who.kind != kinds[0] {
			t.Errorf("%+v: %v, %+v", l, kinds, who)
		}
		l.Taken = true
		if who, ok := classifyLoop(&l); ok {
			t.Errorf("%+v: %+v", l, who)
		}
	}
	for _, r := range rows {
		if r.loop != nil && claimed[r.kind] == 0 {
			t.Errorf("%s: no loop here is this cause; add one", r.kind)
		}
	}
}

// Kinds are constants of kind.go, never bare strings: a kind without a row has no colour on the page.
func TestNoOtherKinds(t *testing.T) {
	for name, file := range sources(t) {
		for _, word := range kindLiterals(file) {
			t.Errorf("%s: the kind %s is a bare string", name, word)
		}
	}
}

// kindLiterals returns the strings that are used as a Kind: converted to one, returned by functions that return one, or
// in a field or argument called kind.
func kindLiterals(file *ast.File) (out []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && strings.EqualFold(key.Name, "kind") {
				out = append(out, literals(n.Value)...)
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "Kind" {
				out = append(out, literals(n.Args...)...)
			}
		case *ast.FuncDecl:
			if n.Type.Results == nil || n.Body == nil {
				return true
			}
			if first, ok := n.Type.Results.List[0].Type.(*ast.Ident); !ok || first.Name != "Kind" {
				return true
			}
			ast.Inspect(n.Body, func(n ast.Node) bool {
				if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) > 0 {
					out = append(out, literals(r.Results[0])...)
				}
				return true
			})
		}
		return true
	})
	return out
}

func literals(list ...ast.Expr) (out []string) {
	for _, e := range list {
		if b, ok := e.(*ast.BasicLit); ok && b.Kind == token.STRING && b.Value != `""` {
			out = append(out, b.Value)
		}
	}
	return out
}

// Each kernel event belongs to at most one row, and those that take a worker's time to exactly one.
func TestOneRowClaimsAnEvent(t *testing.T) {
	for _, throttled := range []int64{0, 3} {
		for _, idle := range []string{"spin", "yield", "sleep"} {
			e := loaded(1)
			e.Host.Cgroup = host.Cgroup{Throttled: throttled}
			e.Threads = []OwnThreadState{{TID: 2}}
			w := &e.Workers[0]
			w.Idle = idle
			for _, ev := range allEvents() {
				var kinds []Kind
				for _, r := range rows {
					if r.claim == nil {
						continue
					}
					if _, ok := r.claim(e, w, ev); ok {
						kinds = append(kinds, r.kind)
					}
				}
				who, _ := classify(e, w, ev)
				if len(kinds) > 1 || len(kinds) == 0 && takesTime(ev) || len(kinds) == 1 && who.kind != kinds[0] {
					t.Errorf("%+v (throttled %d, idle %s): %v", ev, throttled, idle, kinds)
				}
			}
		}
	}
}

func takesTime(ev event) bool {
	switch ev.kind {
	case kernel.KindThread:
		return ev.why == kernel.WhyTaken
	case kernel.KindGap:
		return ev.why > kernel.WhyTaken
	case kernel.KindIRQ, kernel.KindSoftirq, kernel.KindFault:
		return true
	case kernel.KindVector:
		return ev.id > 0
	}
	return false
}

func allEvents() (out []event) {
	for kind := kernel.KindGap; kind <= kernel.KindFreezer; kind++ {
		for why := kernel.Why(0); why <= kernel.WhyMoved; why++ {
			for id := range 7 {
				for _, name := range []string{"x", "ksoftirqd/1"} {
					out = append(out, event{kind: kind, why: why, id: id, pid: id, name: name})
				}
			}
		}
	}
	return out
}

// An event is the same cause in the account and on the timeline, since both use the one classifier.
func TestAccountAndTimelineAgree(t *testing.T) {
	for _, c := range []struct {
		kind kernel.Kind
		why  kernel.Why
		id   int
		want Kind
	}{
		{kernel.KindVector, 0, kernel.VectorFlush, TLBShootdown},
		{kernel.KindVector, 0, kernel.VectorCall, IPI},
		{kernel.KindVector, 0, kernel.VectorTimer, TimerTick},
		{kernel.KindSoftirq, 0, 3, Softirq},
		{kernel.KindIRQ, 0, 36, IRQ},
		{kernel.KindThread, kernel.WhyTaken, hog, ForeignThread},
		{kernel.KindThread, kernel.WhyTaken, 0, Gap},
	} {
		e := loaded(1)
		e.sum(kernel.Sum{Kind: c.kind, Why: c.why, ID: c.id, NS: sec, Count: 1, Longest: sec, Name: "x"})
		e.away(1, kernel.Gap{NS: sec, Kind: c.kind, Why: c.why, ID: c.id, Name: "x"})
		r := Explain(*e)
		if r.Causes[0].Kind != c.want || len(r.Workers[0].Gaps) != 1 || r.Workers[0].Gaps[0].Kind != c.want {
			t.Errorf("%+v: %s in the account, %+v on the timeline", c, r.Causes[0].Kind, r.Workers[0].Gaps)
		}
	}
}

// docs/cores.md has the table of the causes. With UPDATE=1 the test writes it.
func TestDocumentedTable(t *testing.T) {
	const path, begin, end = "../../docs/cores.md", "<!-- causes: written from internal/explain by UPDATE=1 -->\n",
		"<!-- end of causes -->\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	had, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("docs/cores.md has no place for the table")
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(head+begin+Markdown()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if had != Markdown() {
		t.Errorf("docs/cores.md differs from the table; UPDATE=1 tools/go.sh test ./internal/explain/ -run "+
			"TestDocumentedTable writes it:\n%s", Markdown())
	}
}

// A worker that was moved polls on the other CPU: it loses only the time for which it waited there, and what its core
// can do does not change.
func TestMovedWorkerKeepsItsRate(t *testing.T) {
	e := loaded(0.5)
	e.sum(kernel.Sum{Kind: kernel.KindGap, Why: kernel.WhyMoved, NS: 9 * sec, Count: 1, Longest: 9 * sec})
	e.away(1, kernel.Gap{NS: 9 * sec, Kind: kernel.KindThread, Why: kernel.WhyMoved})
	e.Host.Waited[tid] = 3 * sec
	r := Explain(*e)
	c := r.Causes[0]
	if c.Kind != Moved || c.LostNS != 3*sec || c.Minor || r.Workers[0].Model.Expected > 15e6 || c.PPS > 5e6 {
		t.Errorf("%+v, %+v", c, r.Workers[0].Model)
	}
}
