// SPDX-License-Identifier: Apache-2.0
package state

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Write writes a sorted state as YAML. Equal states give the same bytes, and Load reads the same state back.
func Write(w io.Writer, s *State) error {
	y := yamlWriter{bufio.NewWriterSize(w, 64<<10)}
	for _, section := range sections {
		if section == "routes" {
			y.routes(s.Routes)
			continue
		}
		list := s.objects(section)
		switch {
		case section == "settings" && len(list) == 1:
			y.line(section + ":")
			y.block(list[0].ProtoReflect(), "  ", "  ")
		case section == "workers" && s.Workers != nil && len(list) == 0:
			y.line("workers: []")
		case len(list) > 0:
			y.objects(section, list)
		}
	}
	return y.w.Flush()
}

type yamlWriter struct{ w *bufio.Writer } // keeps its first error until Flush

func (y yamlWriter) line(parts ...string) {
	for _, s := range parts {
		_, _ = y.w.WriteString(s)
	}
	_ = y.w.WriteByte('\n')
}

func (y yamlWriter) objects(section string, list []proto.Message) {
	y.line(section, ":")
	for _, m := range list {
		if slices.Contains(nounOf[section].is, "line") {
			y.line("  - ", flow(m.ProtoReflect()))
		} else {
			y.block(m.ProtoReflect(), "  - ", "    ")
		}
	}
}

func (y yamlWriter) routes(list []Route) {
	if len(list) == 0 {
		return
	}
	y.line("routes:")
	for _, r := range list {
		y.line("  - ", flow(r.message().ProtoReflect()))
	}
}

// block writes a message with one field per line.
func (y yamlWriter) block(r protoreflect.Message, first, indent string) {
	lead := first
	eachField(r, func(fd protoreflect.FieldDescriptor) {
		y.line(lead, string(fd.Name()), ": ", fieldText(r, fd))
		lead = indent
	})
}

// eachField calls f for each field that has to be written.
func eachField(r protoreflect.Message, f func(protoreflect.FieldDescriptor)) {
	fields := r.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		rule := ruleOf(fd)
		of := fd.ContainingOneof()
		switch {
		case rule.readOnly, of != nil && r.WhichOneof(of) != fd:
		case rule.written, rule.required, of != nil, !isDefault(r, fd, rule):
			f(fd)
		}
	}
}

// flow returns a message on one line: {a: 1, b: [x, y]}.
func flow(r protoreflect.Message) string {
	var parts []string
	eachField(r, func(fd protoreflect.FieldDescriptor) {
		parts = append(parts, string(fd.Name())+": "+fieldText(r, fd))
	})
	return "{" + strings.Join(parts, ", ") + "}"
}

func fieldText(r protoreflect.Message, fd protoreflect.FieldDescriptor) string {
	if !fd.IsList() {
		return valueText(r.Get(fd), fd)
	}
	list := r.Get(fd).List()
	parts := make([]string, list.Len())
	for i := range parts {
		parts[i] = valueText(list.Get(i), fd)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func valueText(v protoreflect.Value, fd protoreflect.FieldDescriptor) string {
	switch fd.Kind() {
	case protoreflect.MessageKind:
		return flow(v.Message())
	case protoreflect.StringKind:
		return quote(v.String())
	case protoreflect.EnumKind:
		if ev := fd.Enum().Values().ByNumber(v.Enum()); ev != nil {
			return string(ev.Name())
		}
		return strconv.Itoa(int(v.Enum()))
	}
	return fmt.Sprint(v.Interface())
}

var (
	plainWord = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
	plainNet  = regexp.MustCompile(`^[0-9][0-9a-f.:]*/[0-9]+$|^[0-9]{1,3}(\.[0-9]{1,3}){3}$`)
	plainPath = regexp.MustCompile(`^/[A-Za-z0-9_./-]+$`)
)

// reserved has words that some versions of YAML do not read as text.
var reserved = []string{"true", "false", "yes", "no", "on", "off", "y", "n", "null"}

// quote returns a string as it is if every version of YAML reads it as text, otherwise in double quotes.
func quote(s string) string {
	switch {
	case plainNet.MatchString(s), plainPath.MatchString(s):
		return s
	case plainWord.MatchString(s) && !slices.Contains(reserved, strings.ToLower(s)):
		return s
	}
	return `"` + escape(s) + `"`
}

// escape replaces quotes, backslashes and characters other than printable ASCII by escapes of YAML.
func escape(s string) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c >= ' ' && c <= '~':
			b.WriteRune(c)
		case c > 0xffff:
			fmt.Fprintf(&b, `\U%08X`, c)
		default:
			fmt.Fprintf(&b, `\u%04X`, c)
		}
	}
	return b.String()
}
