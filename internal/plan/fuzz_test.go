// SPDX-License-Identifier: Apache-2.0
package plan

import (
	"encoding"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/topology/topologytest"
)

// author writes plans and requests by their structs: each byte of an input is a choice, so that most of what it writes
// is valid or nearly so.
type author struct{ choices []byte }

// pick returns a number below n, 0 when no choices are left.
func (a *author) pick(n int) int {
	if len(a.choices) == 0 {
		return 0
	}
	c := int(a.choices[0]) % n
	a.choices = a.choices[1:]
	return c
}

func (a *author) one(list ...string) string { return list[a.pick(len(list))] }

func (a *author) value(t reflect.Type) string {
	if a.pick(48) == 47 {
		return a.one("null", "[]", "{}", "[a, [b]]", "{a: b}", "*x", "&x 1", "1.5", "true", "-1", "9999999999", `"a b"`, "")
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return a.one(`""`, `""`, `"0"`, `"1"`, `"2-3"`, `"1-7"`, `"0,2"`, `"4-1"`, `"9999"`)
	}
	switch t.Kind() {
	case reflect.Struct:
		return a.object(t)
	case reflect.Slice:
		var items []string
		for range a.pick(4) {
			items = append(items, a.value(t.Elem()))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case reflect.Bool:
		return a.one("true", "false")
	case reflect.Int:
		return a.one("0", "1", "2", "3", "-1", "4", "2048", "1048576", "100000")
	}
	return a.one("forwarding", "isolated-rx", "host-path", "service", "guests", "idle", "housekeeping", "eth0",
		`"0000:3b:00.0"`, "x")
}

func (a *author) object(t reflect.Type) string {
	var fields []string
	for i := range t.NumField() {
		key, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		switch {
		case key == "version":
			fields = append(fields, "version: "+a.one("1", "1", "1", "1", "1", "1", "2"))
		case a.pick(3) > 0:
			fields = append(fields, key+": "+a.value(t.Field(i).Type))
		}
	}
	if a.pick(32) == 31 {
		fields = append(fields, a.one("absent: 1", "id: 1, id: 2", "forwarding: 1, forwarding: 1"))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// machinePlan writes a plan whose CPUs are in order, because one choice per number rarely makes such a list.
func (a *author) machinePlan() string {
	var cpus, workers []string
	for id := range 1 + a.pick(6) {
		role := Roles[a.pick(len(Roles))]
		cpus = append(cpus, fmt.Sprintf("{id: %d, role: %s}", id+a.pick(16)/15, role))
		if role.worker() != (a.pick(16) == 15) {
			workers = append(workers, fmt.Sprintf("{id: %d, role: %s, cpu: %d}", len(workers), role, id+a.pick(16)/15))
		}
	}
	return fmt.Sprintf("{version: 1, cpus: [%s], workers: [%s], isolated: %s, irqs: %s, topology: %s, layout: %s}",
		strings.Join(cpus, ", "), strings.Join(workers, ", "), a.one(`""`, `"0"`, `"1-3"`), a.one(`""`, `"0"`, `"9"`),
		a.one(`""`, `x`), a.one(`[]`, `[a, b, c, d, e, f]`))
}

// fixedRequest writes a request of fixed CPUs, which may be siblings.
func (a *author) fixedRequest() string {
	var fields []string
	for _, key := range []string{"forwarding", "isolated_rx", "host_path", "service", "guest", "emulator"} {
		if a.pick(2) == 0 {
			fields = append(fields, fmt.Sprintf("%s_cpus: '%d'", key, a.pick(40)))
		}
	}
	if a.pick(2) == 0 {
		pages := 1 << a.pick(20)
		fields = append(fields, "share_cores: true",
			fmt.Sprintf("hugepages: [{node: -1, kib: 1048576, pages: %d}]", pages))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func checkParse(t *testing.T, m *topology.Machine, text []byte) {
	p, err := Parse("plan.json", text)
	if err != nil {
		if !input.Is(err) {
			t.Fatal(err)
		}
		return
	}
	_ = p.Fits(m)
	_ = Validate(m, p)
	for _, c := range p.CPUs {
		p.Explain(c.ID)
	}
	p.Groups()
	file, err := Format(p)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse("plan.json", file)
	if err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	if again, _ := Format(back); string(again) != string(file) {
		t.Fatalf("%s\n%s", file, again)
	}
}

func checkRequest(t *testing.T, m *topology.Machine, text []byte) {
	w, err := ParseRequest("request.yaml", text)
	if err == nil {
		_, err = Make(m, w)
	}
	if err != nil && !input.Is(err) {
		t.Fatal(err)
	}
}

// FuzzFields is FuzzParse and FuzzRequest of files that an author writes.
func FuzzFields(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		choices := make([]byte, 30+r.IntN(200))
		for i := range choices {
			choices[i] = byte(r.Uint32())
		}
		f.Add(choices)
	}
	small, holes := topologytest.Machine(f, "vm"), topologytest.Machine(f, "holes")
	twins := topologytest.Machine(f, "xeon-4210")
	f.Fuzz(func(t *testing.T, choices []byte) {
		a := &author{choices}
		switch a.pick(4) {
		case 0:
			checkParse(t, small, []byte(a.object(reflect.TypeFor[Plan]())))
		case 1:
			checkParse(t, small, []byte(a.machinePlan()))
		case 2:
			checkRequest(t, holes, []byte(a.object(reflect.TypeFor[Request]())))
		default:
			checkRequest(t, twins, []byte(a.fixedRequest()))
		}
	})
}
