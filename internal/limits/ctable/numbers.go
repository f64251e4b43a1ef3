// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"regexp"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

// header has the numbers by name, LIMIT_PORT_MTU_MAX, and in words, LIMIT_PORT_MTU_VALID.
func header() string {
	var b strings.Builder
	b.WriteString(preamble + "#pragma once\n\nenum notation {\n")
	values := apiv1.Notation(0).Descriptor().Values()
	for i := range values.Len() {
		fmt.Fprintf(&b, "\t%s = %d,\n", values.Get(i).Name(), values.Get(i).Number())
	}
	fmt.Fprintf(&b, "};\n#define NOTATIONS %d\n", values.Get(values.Len()-1).Number()+1)
	for i := range values.Len() {
		if t := limits.Text(apiv1.Notation(values.Get(i).Number())); t != nil {
			fmt.Fprintf(&b, "#define %s_VALID %s\n", values.Get(i).Name(), quote(t.Valid))
			if t.Longest > 0 {
				fmt.Fprintf(&b, "#define %s_LONGEST %d\n", values.Get(i).Name(), t.Longest)
			}
		}
	}
	for _, md := range messages() {
		b.WriteString(numbers(md))
	}
	return b.String()
}

func numbers(md protoreflect.MessageDescriptor) string {
	var b strings.Builder
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		l := limits.Of(fd)
		name := "LIMIT_" + snake(md.Name()) + "_" + strings.ToUpper(string(fd.Name()))
		put := func(what string, n uint64) {
			suffix := ""
			if n > 1<<31-1 {
				suffix = "u"
			}
			if n > 1<<32-1 {
				suffix = "ull"
			}
			fmt.Fprintf(&b, "#define %s_%s %d%s\n", name, what, n, suffix)
		}
		if l.Min > 0 {
			put("MIN", l.Min)
		}
		if l.Max > 0 {
			put("MAX", l.Max)
		}
		if l.MultipleOf > 0 {
			put("MULTIPLE_OF", l.MultipleOf)
		}
		if len(l.Default) > 0 {
			put("DEFAULT", l.Default[0])
		}
		if l.Items > 0 {
			put("ITEMS", uint64(l.Items))
		}
		if k := fd.Kind(); (k == protoreflect.Uint32Kind || k == protoreflect.Uint64Kind) && l.Min+l.Max > 0 {
			fmt.Fprintf(&b, "#define %s_VALID %s\n", name, quote(limits.Numbers(fd)))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return fmt.Sprintf("\n// %s\n%s", md.Name(), b.String())
}

var hump = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// snake: MemifDevice is MEMIF_DEVICE.
func snake(name protoreflect.Name) string {
	return strings.ToUpper(hump.ReplaceAllString(string(name), "${1}_$2"))
}

// notations: which characters a text may have. Those that a parser reads have none.
func notations() string {
	var b strings.Builder
	b.WriteString(preamble + "#include \"base/check.h\"\n\nconst struct notation_text notation_texts[NOTATIONS] = {\n")
	values := apiv1.Notation(0).Descriptor().Values()
	for i := range values.Len() {
		t := limits.Text(apiv1.Notation(values.Get(i).Number()))
		if t == nil {
			continue
		}
		fmt.Fprintf(&b, "\t[%s] = {.valid = %s_VALID", values.Get(i).Name(), values.Get(i).Name())
		if t.Characters != "" {
			fmt.Fprintf(&b, ", .first = %s, .longest = %d,\n\t\t.characters = {%s}", quote(t.First), t.Longest,
				bitmap(t.Characters))
		}
		b.WriteString("},\n")
	}
	return b.String() + "};\n"
}

// bitmap of the bytes that the inside of a bracket expression takes: those of other letters than ASCII alike.
func bitmap(characters string) string {
	re := regexp.MustCompile("^[" + characters + "]$")
	var words [4]uint64
	for c := range 256 {
		text := string(rune(c))
		if c >= 0x80 {
			text = "é"
		}
		if re.MatchString(text) {
			words[c/64] |= 1 << (c % 64)
		}
	}
	return fmt.Sprintf("%#x, %#x, %#x, %#x", words[0], words[1], words[2], words[3])
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
