// SPDX-License-Identifier: Apache-2.0
package state

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/corelane/corelane/internal/limits"
)

// author writes node files by the API's fields: each byte of an input is a choice, so that most of what it writes is
// valid or nearly so.
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

// rarely is true for one choice in 32.
func (a *author) rarely() bool { return a.pick(32) == 31 }

var authorTexts = []string{"a", "b", "fabric", "10.0.0.0/8", "10.0.0.1", "10.0.0.1/24", "10.0.0.1/8", "fd00::/64",
	"fd00::1", "fd00::1/64", "any", "02:00:00:00:00:01", "0660", "tcp", "icmp", "58", "80-443", "80", "0", "0:1", "3:2",
	"/tmp/s", "secret", "eth0", "mplsoudp", "not \"one\" of them", "", "::ffff:10.0.0.1", strings.Repeat("long", 100)}

var authorOdd = []string{"null", "[]", "{}", "[a, [b]]", "{a: b}", "*x", "1.5", "true", "2026-01-01", "'1'", "-1",
	"4294967296", "99999999999999999999", "no", "~", "&x 1", "\"\\0\"", "!new x", strings.Repeat("[", 20)}

func (a *author) file() string {
	var b strings.Builder
	for _, section := range sections {
		md := newMessage(section).ProtoReflect().Descriptor()
		switch a.pick(4) {
		case 0:
			continue
		case 1: // a block as people write it
			fmt.Fprintf(&b, "%s:\n", section)
			for range a.pick(4) {
				fmt.Fprintf(&b, "- %s\n", a.message(md, section != "settings"))
			}
		default:
			text := a.message(md, false)
			if section != "settings" {
				text = "[" + text + ", " + a.message(md, false) + "]"
			}
			fmt.Fprintf(&b, "%s: %s\n", section, text)
		}
		if a.rarely() {
			odd := []string{"# why\n", section + ": []\n", "absent: 1\n", "---\n", "  x\n", "- y\n"}
			b.WriteString(odd[a.pick(len(odd))])
		}
	}
	return b.String()
}

// message writes a mapping; in a block it may be one line per field.
func (a *author) message(md protoreflect.MessageDescriptor, block bool) string {
	if a.rarely() {
		return authorOdd[a.pick(len(authorOdd))]
	}
	var fields []string
	given := map[protoreflect.OneofDescriptor]bool{}
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		rule, of := ruleOf(fd), fd.ContainingOneof()
		skip := rule.readOnly || of != nil && given[of] || !rule.required && a.pick(3) == 0
		if skip != a.rarely() {
			continue
		}
		given[of] = true
		fields = append(fields, fmt.Sprintf("%s: %s", fd.Name(), a.field(fd)))
	}
	if a.rarely() {
		fields = append(fields, "name: a", "absent: 1")
	}
	if block && a.pick(2) == 0 && len(fields) > 0 {
		return strings.Join(fields, "\n  ")
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func (a *author) field(fd protoreflect.FieldDescriptor) string {
	if !fd.IsList() || a.rarely() {
		return a.value(fd)
	}
	var items []string
	for range []int{0, 1, 2, 3, 4, 5, 6, 70}[a.pick(8)] {
		items = append(items, a.value(fd))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func (a *author) value(fd protoreflect.FieldDescriptor) string {
	if a.rarely() {
		return authorOdd[a.pick(len(authorOdd))]
	}
	switch fd.Kind() {
	case protoreflect.MessageKind:
		return a.message(fd.Message(), false)
	case protoreflect.BoolKind:
		return []string{"true", "false"}[a.pick(2)]
	case protoreflect.EnumKind:
		return string(fd.Enum().Values().Get(a.pick(fd.Enum().Values().Len())).Name())
	case protoreflect.StringKind:
		return a.text(ruleOf(fd))
	}
	least, most := limits.Of(fd).Min, limits.Max(fd)
	numbers := []uint64{max(1, least), 2, most, least, 64, 4096, 0, most + 1}
	return fmt.Sprint(numbers[a.pick(len(numbers))])
}

// text writes a text that the field's notation takes, with few exceptions.
func (a *author) text(rule rule) string {
	var valid []string
	for _, text := range authorTexts {
		if rule.format == nil {
			break
		}
		if _, ok := rule.format.canon(text); ok {
			valid = append(valid, text)
		}
	}
	if rule.ref != "" || rule.format == nil {
		valid = authorTexts[:3]
	}
	if len(valid) == 0 || a.rarely() {
		valid = authorTexts
	}
	return fmt.Sprintf("%q", valid[a.pick(len(valid))])
}

func checkLoad(t *testing.T, src []byte) {
	s, err := Load("f", src)
	if isEmpty(src) {
		if err == nil {
			t.Fatal("an empty file is accepted")
		}
		return
	}
	l := newLoader("f")
	l.whole(src)
	l.finish()
	if (err == nil) != (len(l.errs) == 0) {
		t.Fatalf("in pieces: %v\nwhole: %v\n%s", err, l.errs, src)
	}
	if err != nil {
		_ = err.Error()
		return
	}
	l.state.Sort()
	if !equalStates(s, l.state) {
		t.Fatalf("pieces and the whole file give different states\n%s", src)
	}
	back, err := Load("written", []byte(write(t, s)))
	if err != nil || !equalStates(s, back) {
		t.Fatalf("a different state after writing and reading: %v\n%s", err, write(t, s))
	}
}

// FuzzFields is FuzzLoad of files that an author writes.
func FuzzFields(f *testing.F) {
	f.Add([]byte{}) // an empty file
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		choices := make([]byte, 100+r.IntN(800))
		for i := range choices {
			choices[i] = byte(r.Uint32())
		}
		f.Add(choices)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		checkLoad(t, []byte((&author{choices}).file()))
	})
}
