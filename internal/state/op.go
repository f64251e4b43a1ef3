// SPDX-License-Identifier: Apache-2.0
package state

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// RouteBatch is the largest number of routes in a request.
const RouteBatch = 4096

// Verb is what an operation does. Its value is the sign that a plan shows.
type Verb byte

const (
	Add Verb = '+'
	Set Verb = '~'
	Del Verb = '-'
)

// Op changes one object, or a batch of routes.
type Op struct {
	Verb     Verb
	Noun     string // "port", "route"
	Key      string // "fab0"; empty for routes and settings
	New, Old proto.Message
	Fields   []string // Set: top-level fields (and oneofs) that differ
	Routes   []Route  // instead of New and Old
	Was      []Route  // Set: the routes before the change
	Why      string   // reason of an operation that the wanted state alone does not explain
}

// Objects is the number of objects that the operation changes.
func (op Op) Objects() int {
	return max(1, len(op.Routes))
}

// Count sums operations by verb.
type Count struct{ Add, Set, Del int }

func (c *Count) Put(op Op) {
	switch op.Verb {
	case Add:
		c.Add += op.Objects()
	case Set:
		c.Set += op.Objects()
	case Del:
		c.Del += op.Objects()
	}
}

// CountOps counts the operations of a list.
func CountOps(ops []Op) (c Count) {
	for _, op := range ops {
		c.Put(op)
	}
	return c
}

func (c Count) String() string {
	return fmt.Sprintf("%d added, %d changed, %d deleted", c.Add, c.Set, c.Del)
}

// Print writes the operations as a plan, with one line per object.
func Print(w io.Writer, ops []Op) error {
	for _, op := range ops {
		if err := op.print(w); err != nil {
			return err
		}
	}
	return nil
}

func (op Op) print(w io.Writer) error {
	if len(op.Routes) == 0 {
		_, err := fmt.Fprintln(w, op.String())
		return err
	}
	for i := range op.Routes {
		if _, err := fmt.Fprintln(w, op.single(i)); err != nil {
			return err
		}
	}
	return nil
}

// String returns a line of the plan. For a batch of routes it has the first route and the number of the others.
func (op Op) String() string {
	if len(op.Routes) > 0 {
		text := op.single(0).String()
		if n := len(op.Routes); n > 1 {
			text += fmt.Sprintf(" and %d more", n-1)
		}
		return text
	}
	text := string(rune(op.Verb)) + " " + op.Noun
	if op.Key != "" {
		text += " " + op.Key
	}
	switch op.Verb {
	case Add:
		if detail := detailText(op.New); detail != "" {
			text += ": " + detail
		}
	case Set:
		text += ": " + op.changes()
	}
	if op.Why != "" {
		text += " (" + op.Why + ")"
	}
	return text
}

// Line is one object of an operation.
type Line struct {
	Key      string
	Old, New proto.Message
}

// Lines returns the objects of an operation, with one line per route.
func (op Op) Lines() []Line {
	if len(op.Routes) == 0 {
		return []Line{{op.Key, op.Old, op.New}}
	}
	lines := make([]Line, len(op.Routes))
	for i := range op.Routes {
		one := op.single(i)
		lines[i] = Line{one.Key, one.Old, one.New}
	}
	return lines
}

// single returns the operation on one route of a batch.
func (op Op) single(i int) Op {
	one, m := Op{Verb: op.Verb, Noun: op.Noun}, op.Routes[i].message()
	one.Key = keyOf(m)
	switch op.Verb {
	case Del:
		one.Old = m
	case Set:
		one.New, one.Old = m, op.Was[i].message()
		one.Fields = changed(one.New, one.Old)
	default:
		one.New = m
	}
	return one
}

// detailText returns an object without its key: "mtu 9000, addresses [192.0.2.1/24]".
func detailText(m proto.Message) string {
	r := m.ProtoReflect()
	keys := nounOfMessage(m).keys
	var parts []string
	eachField(r, func(fd protoreflect.FieldDescriptor) {
		if !slices.Contains(keys, fd) {
			parts = append(parts, string(fd.Name())+" "+fieldText(r, fd))
		}
	})
	return strings.Join(parts, ", ")
}

// changes returns each field that differs with its old and its new value.
func (op Op) changes() string {
	was, is := op.Old.ProtoReflect(), op.New.ProtoReflect()
	var parts []string
	for _, name := range op.Fields {
		before, after := memberText(was, name), memberText(is, name)
		parts = append(parts, fmt.Sprintf("%s %s -> %s", name, before, after))
	}
	return strings.Join(parts, ", ")
}

// memberText returns the value of a field or of a oneof.
func memberText(r protoreflect.Message, name string) string {
	if fd := r.Descriptor().Fields().ByName(protoreflect.Name(name)); fd != nil {
		return fieldText(r, fd)
	}
	of := r.Descriptor().Oneofs().ByName(protoreflect.Name(name))
	if of == nil || r.WhichOneof(of) == nil {
		return "none"
	}
	fd := r.WhichOneof(of)
	return string(fd.Name()) + " " + fieldText(r, fd)
}
