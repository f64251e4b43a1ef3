// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

// apiFiles returns the files api/*.proto, sorted by name.
func apiFiles() []protoreflect.FileDescriptor {
	var all []protoreflect.FileDescriptor
	protoregistry.GlobalFiles.RangeFilesByPackage("corelane.v1", func(f protoreflect.FileDescriptor) bool {
		all = append(all, f)
		return true
	})
	slices.SortFunc(all, func(a, b protoreflect.FileDescriptor) int { return strings.Compare(a.Path(), b.Path()) })
	return all
}

func messages() []protoreflect.MessageDescriptor {
	var all []protoreflect.MessageDescriptor
	for _, f := range apiFiles() {
		for i := range f.Messages().Len() {
			all = append(all, f.Messages().Get(i))
		}
	}
	return all
}

type writer struct {
	b    strings.Builder
	done map[protoreflect.FullName]bool // whether it has limits, its own or those of a message in it
}

// tables of the requests, each after the tables of its messages.
func tables() string {
	w := writer{done: map[protoreflect.FullName]bool{}}
	var requests []string
	for _, f := range apiFiles() {
		for i := range f.Services().Len() {
			for j := range f.Services().Get(i).Methods().Len() {
				md := f.Services().Get(i).Methods().Get(j).Input()
				_, seen := w.done[md.FullName()]
				if w.message(md) && !seen {
					requests = append(requests, table(md))
				}
			}
		}
	}
	var head strings.Builder
	head.WriteString(preamble + "#include \"api/check.h\"\n\n")
	for _, f := range apiFiles() {
		if f.Services().Len() > 0 {
			fmt.Fprintf(&head, "#include \"%s.pb-c.h\"\n", strings.TrimSuffix(f.Path(), ".proto"))
		}
	}
	return head.String() + w.b.String() + "\nconst struct message_limits *const api_requests[] = {\n\t&" +
		strings.Join(requests, ",\n\t&") +
		",\n};\nconst unsigned n_api_requests = sizeof(api_requests) / sizeof(api_requests[0]);\n"
}

func table(md protoreflect.MessageDescriptor) string {
	return strings.ToLower(snake(md.Name())) + "_limits"
}

// message writes the table of a message that has limits.
func (w *writer) message(md protoreflect.MessageDescriptor) bool {
	if has, seen := w.done[md.FullName()]; seen {
		return has
	}
	w.done[md.FullName()] = false // a message within itself would end here
	var rows, choices []string
	for _, fd := range byNumber(md) {
		if row := w.field(fd); row != "" {
			rows = append(rows, row)
		}
	}
	for i := range md.Oneofs().Len() {
		if of := md.Oneofs().Get(i); limits.OfChoice(of).Required {
			choices = append(choices, fmt.Sprintf("{%s, %d}", quote(string(of.Name())),
				slices.Index(byNumber(md), of.Fields().Get(0))))
		}
	}
	if len(rows) == 0 {
		return false
	}
	w.done[md.FullName()] = true
	name := strings.ToLower(snake(md.Name()))
	fmt.Fprintf(&w.b, "\nstatic const struct field_limits %s_fields[] = {\n\t%s,\n};\n", name,
		strings.Join(rows, ",\n\t"))
	extra := ""
	if len(choices) > 0 {
		fmt.Fprintf(&w.b, "static const struct choice_limits %s_choices[] = {%s};\n", name, strings.Join(choices, ", "))
		extra += fmt.Sprintf(", .choices = %s_choices, .n_choices = %d", name, len(choices))
	}
	if settable := limits.Settable(md); isSet[md.FullName()] {
		fmt.Fprintf(&w.b, "static const char *const %s_settable[] = {\"%s\", NULL};\n", name,
			strings.Join(settable, "\", \""))
		extra += fmt.Sprintf(", .settable = %s_settable", name)
	}
	fmt.Fprintf(&w.b, "static const struct message_limits %s = {\n"+
		"\t.type = &corelane__v1__%s__descriptor, .fields = %s_fields, .n_fields = %d%s};\n",
		table(md), name, name, len(rows), extra)
	return true
}

// isSet are the messages of which a Set request names fields.
var isSet = func() map[protoreflect.FullName]bool {
	all := map[protoreflect.FullName]bool{}
	for _, md := range messages() {
		for i := range md.Fields().Len() {
			if fd := md.Fields().Get(i); limits.Of(fd).Partial && md.Fields().ByName("fields") != nil {
				all[fd.Message().FullName()] = true
			}
		}
	}
	return all
}()

// byNumber gives the fields as protobuf-c's descriptors have them.
func byNumber(md protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	var list []protoreflect.FieldDescriptor
	for i := range md.Fields().Len() {
		list = append(list, md.Fields().Get(i))
	}
	slices.SortFunc(list, func(a, b protoreflect.FieldDescriptor) int { return int(a.Number() - b.Number()) })
	return list
}

// field is a row; empty when there is nothing to check. Enums are always checked. A reference is looked up, so that its
// notation says nothing more.
func (w *writer) field(fd protoreflect.FieldDescriptor) string {
	l := limits.Of(fd)
	if l.ReadOnly {
		return ""
	}
	var parts []string
	if fd.Kind() == protoreflect.MessageKind && w.message(fd.Message()) {
		parts = append(parts, ".of = &"+table(fd.Message()))
	}
	if flags := flags(fd, l); flags != "" {
		parts = append(parts, ".flags = "+flags)
	}
	for _, n := range []struct {
		name  string
		value uint64
	}{{"min", l.Min}, {"max", l.Max}, {"multiple_of", l.MultipleOf}, {"items", uint64(l.Items)}} {
		if n.value > 0 {
			parts = append(parts, fmt.Sprintf(".%s = %dull", n.name, n.value))
		}
	}
	if l.Notation != apiv1.Notation_NOTATION_ANY {
		parts = append(parts, ".notation = "+l.Notation.String())
	}
	if len(parts) == 0 && fd.Kind() != protoreflect.EnumKind {
		return ""
	}
	parts = append([]string{fmt.Sprintf(".field = %d", slices.Index(byNumber(fd.ContainingMessage()), fd))}, parts...)
	return "{" + strings.Join(parts, ", ") + "}"
}

func flags(fd protoreflect.FieldDescriptor, l *apiv1.Limits) string {
	var names []string
	for _, f := range []struct {
		name string
		set  bool
	}{{"KEY", l.Key}, {"REQUIRED", (l.Key || l.Required) && !l.Automatic}, {"POWER_OF_TWO", l.PowerOfTwo},
		{"DISTINCT", l.Distinct}, {"PARTIAL", l.Partial}} {
		if f.set {
			names = append(names, "LIMIT_"+f.name)
		}
	}
	return strings.Join(names, " | ")
}
