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

	"github.com/corelane/corelane/internal/limits"
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
	b := []byte("  - ")
	for _, r := range list {
		b = append(appendFlow(b[:4], r.message().ProtoReflect()), '\n')
		_, _ = y.w.Write(b)
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
func flow(r protoreflect.Message) string { return string(appendFlow(nil, r)) }

func appendFlow(b []byte, r protoreflect.Message) []byte {
	b = append(b, '{')
	eachField(r, func(fd protoreflect.FieldDescriptor) {
		if b[len(b)-1] != '{' {
			b = append(b, ", "...)
		}
		b = append(append(b, fd.Name()...), ": "...)
		b = appendField(b, r, fd)
	})
	return append(b, '}')
}

func fieldText(r protoreflect.Message, fd protoreflect.FieldDescriptor) string {
	return string(appendField(nil, r, fd))
}

func appendField(b []byte, r protoreflect.Message, fd protoreflect.FieldDescriptor) []byte {
	if !fd.IsList() {
		return appendValue(b, r.Get(fd), fd)
	}
	b = append(b, '[')
	for i, list := 0, r.Get(fd).List(); i < list.Len(); i++ {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendValue(b, list.Get(i), fd)
	}
	return append(b, ']')
}

func appendValue(b []byte, v protoreflect.Value, fd protoreflect.FieldDescriptor) []byte {
	switch fd.Kind() {
	case protoreflect.MessageKind:
		return appendFlow(b, v.Message())
	case protoreflect.StringKind:
		return append(b, quote(v.String())...)
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		return strconv.AppendUint(b, v.Uint(), 10)
	case protoreflect.EnumKind:
		if fd.Enum().Values().ByNumber(v.Enum()) != nil {
			return append(b, quote(limits.EnumName(fd.Enum(), v.Enum()))...)
		}
		return strconv.AppendInt(b, int64(v.Enum()), 10)
	}
	return fmt.Append(b, v.Interface())
}

// charset has true for its characters. A million routes have millions of texts: regular expressions would take most of
// the time.
type charset [256]bool

func charsetOf(characters string) *charset {
	var set charset
	for _, c := range []byte(characters) {
		set[c] = true
	}
	return &set
}

// only says whether all characters of s are in the set.
func (c *charset) only(s string) bool {
	for i := range len(s) {
		if !c[s[i]] {
			return false
		}
	}
	return true
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

var (
	digits       = charsetOf("0123456789")
	wordFirst    = charsetOf("_" + letters)
	wordRest     = charsetOf("0123456789_.-" + letters)
	pathRest     = charsetOf("0123456789_./-" + letters)
	netAddress   = charsetOf("0123456789abcdef.:")
	plainAddress = regexp.MustCompile(`^[0-9]{1,3}(\.[0-9]{1,3}){3}$`)
)

func plainWord(s string) bool {
	return s != "" && wordFirst[s[0]] && wordRest.only(s) && !slices.Contains(reserved, strings.ToLower(s))
}

// plainNet has the prefixes and addresses that begin with a digit, except for IPv6 addresses, which may look like
// numbers of base 60.
func plainNet(s string) bool {
	if s == "" || !digits[s[0]] {
		return false
	}
	address, length, prefix := strings.Cut(s, "/")
	if !prefix {
		return plainAddress.MatchString(s)
	}
	return netAddress.only(address) && length != "" && digits.only(length)
}

func plainPath(s string) bool { return len(s) > 1 && s[0] == '/' && pathRest.only(s) }

// reserved has words that some versions of YAML do not read as text.
var reserved = []string{"true", "false", "yes", "no", "on", "off", "y", "n", "null"}

// quote returns a string as it is if every version of YAML reads it as text, otherwise in double quotes.
func quote(s string) string {
	if plainNet(s) || plainPath(s) || plainWord(s) {
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
