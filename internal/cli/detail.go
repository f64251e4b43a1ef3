// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/corelane/corelane/internal/api"
	"github.com/corelane/corelane/internal/limits"
)

// writeJSON writes a message with all its fields, under the names of the API, as one line.
func writeJSON(w io.Writer, m proto.Message) error {
	text, err := api.JSON(m, true)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// details writes a message field by field, with units. get fetches it again for every round of --watch.
func details[T proto.Message](ctx context.Context, a *app, get func(context.Context) (T, error)) error {
	var before map[string]uint64
	var at time.Time
	return a.repeat(ctx, func(w io.Writer, watching bool) error {
		m, err := get(ctx)
		if err != nil {
			return err
		}
		if a.json() {
			return writeJSON(w, m)
		}
		d := detail{before: before, counters: map[string]uint64{}}
		if before != nil {
			d.seconds = time.Since(at).Seconds()
		}
		d.message(m.ProtoReflect(), "", "")
		if watching {
			before, at = d.counters, time.Now()
		}
		_, err = io.WriteString(w, d.out.String())
		return err
	})
}

// one returns the first object of a list that is filtered by a key.
func one[T any](ctx context.Context, f fetch[T], field, value, valid string) (T, error) {
	found, err := all(ctx, f)
	if err == nil && len(found) == 0 {
		err = missing(field, value, valid)
	}
	if err != nil {
		var none T
		return none, err
	}
	return found[0], nil
}

// missing is the error of an object that does not exist.
func missing(field, value, valid string) error {
	return &api.Error{Field: field, Value: value, Valid: valid, Code: codes.NotFound,
		Message: fmt.Sprintf("%s: '%s' does not exist", field, value)}
}

// all collects a list that is known to be small.
func all[T any](ctx context.Context, f fetch[T]) ([]T, error) {
	var objs []T
	err := f(ctx, func(obj T) error {
		objs = append(objs, obj)
		return nil
	})
	return objs, err
}

type detail struct {
	out      strings.Builder
	before   map[string]uint64
	counters map[string]uint64 // by path
	seconds  float64
}

func (d *detail) message(m protoreflect.Message, indent, path string) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !shown(m, f) {
			continue
		}
		name := string(f.Name())
		switch {
		case f.IsList() && f.Message() != nil:
			fmt.Fprintf(&d.out, "%s%s:\n", indent, name)
			d.list(m.Get(f).List(), indent+"  ", path+"."+name)
		case f.IsList():
			d.values(f, m.Get(f).List(), indent, name)
		case f.Message() != nil:
			fmt.Fprintf(&d.out, "%s%s:\n", indent, name)
			d.message(m.Get(f).Message(), indent+"  ", path+"."+name)
		default:
			fmt.Fprintf(&d.out, "%s%s: %s\n", indent, name, d.value(f, m.Get(f), path+"."+name))
		}
	}
}

// shown leaves out what was never set: absent messages, empty text and lists, and zeros that stand for a default.
func shown(m protoreflect.Message, f protoreflect.FieldDescriptor) bool {
	if m.Has(f) {
		return true
	}
	switch m.Descriptor().Name() {
	case "Port", "TapDevice", "MemifDevice", "SubportDevice", "PortNexthop", "TunnelNexthop":
		return false
	}
	return f.ContainingOneof() == nil && !f.IsList() && f.Message() == nil && f.Kind() != protoreflect.StringKind
}

// list writes each message of a list on a line of its own.
func (d *detail) list(l protoreflect.List, indent, path string) {
	for i := range l.Len() {
		m := l.Get(i).Message()
		var parts []string
		for j := range m.Descriptor().Fields().Len() {
			f := m.Descriptor().Fields().Get(j)
			if f.IsList() || f.Message() != nil || f.Kind() == protoreflect.BoolKind && !m.Has(f) {
				continue
			}
			if f.Kind() == protoreflect.BoolKind {
				parts = append(parts, string(f.Name()))
				continue
			}
			parts = append(parts, string(f.Name())+" "+
				d.value(f, m.Get(f), fmt.Sprintf("%s[%d].%s", path, i, f.Name())))
		}
		fmt.Fprintf(&d.out, "%s- %s\n", indent, strings.Join(parts, ", "))
	}
}

// values writes a list of single values on one line, or sentences on a line each.
func (d *detail) values(f protoreflect.FieldDescriptor, l protoreflect.List, indent, name string) {
	text := joined(f, l)
	if f.Kind() != protoreflect.StringKind || len(text) <= longList || l.Len() == 1 {
		fmt.Fprintf(&d.out, "%s%s: %s\n", indent, name, text)
		return
	}
	fmt.Fprintf(&d.out, "%s%s:\n", indent, name)
	for i := range l.Len() {
		fmt.Fprintf(&d.out, "%s  - %s\n", indent, l.Get(i).String())
	}
}

const longList = 70 // characters

func joined(f protoreflect.FieldDescriptor, l protoreflect.List) string {
	var parts []string
	for i := range l.Len() {
		parts = append(parts, scalar(f, l.Get(i)))
	}
	return strings.Join(parts, ", ")
}

func scalar(f protoreflect.FieldDescriptor, v protoreflect.Value) string {
	if f.Enum() != nil {
		return limits.EnumName(f.Enum(), v.Enum())
	}
	return v.String()
}

// value adds the unit that the field's name ends with, the size in MiB of large byte counts, and a counter's rate.
func (d *detail) value(f protoreflect.FieldDescriptor, v protoreflect.Value, path string) string {
	s := scalar(f, v)
	name := string(f.Name())
	if unit := unitOf(f); unit != "" {
		s += " " + unit
	}
	if f.Kind() != protoreflect.Uint64Kind {
		return s
	}
	if strings.HasSuffix(name, "_bytes") && v.Uint() >= 1<<20 {
		s += " (" + mebibytes(v.Uint()) + ")"
	}
	if isGauge[name] {
		return s
	}
	d.counters[path] = v.Uint()
	if before, ok := d.before[path]; ok && d.seconds > 0 {
		s += ", " + rate(v.Uint(), before, d.seconds) + "/s"
	}
	return s
}

func unitOf(f protoreflect.FieldDescriptor) string {
	switch f.Name() {
	case "rx_missed", "tx_refused", "dropped", "waiting":
		return "packets"
	}
	return limits.Unit(f)
}

// isGauge names the 64-bit fields that go down as well as up; all others are counters.
var isGauge = map[string]bool{
	"memory_bytes": true, "fib_bytes": true, "rib_bytes": true, "tsc_hz": true, "routes_ipv4": true,
	"routes_ipv6": true,
	"busy_p99_ns": true, "longest_loop_ns": true, "nexthops": true, "labels": true, "vnis": true, "bridges": true,
	"macs": true, "neighbors": true,
}

func mebibytes(n uint64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
