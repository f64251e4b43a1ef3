// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
	"github.com/corelane/corelane/internal/state"
)

// keptNouns are the nouns as the kept state needs them (dataplane/keep/nouns.h), in the order of the node file.
func keptNouns() string {
	var b strings.Builder
	b.WriteString(preamble + "#include \"keep/nouns.h\"\n\nconst struct noun nouns[] = {\n")
	all := state.Nouns()
	for _, n := range all {
		fmt.Fprintf(&b, "\t{.service = %s", quote(string(n.Service.FullName())))
		if set := setMethod(n.Service); set != "" {
			fmt.Fprintf(&b, ", .set = %s", quote(set))
		}
		if add := n.Service.Methods().ByName("Add"); add != nil && byNumber(add.Input())[0].IsList() {
			b.WriteString(", .list = true")
		}
		if n.Service.Methods().ByName("AddAll") != nil {
			b.WriteString(", .add_all = true")
		}
		b.WriteString(keys(n) + parents(n, all) + "},\n")
	}
	return b.String() + "};\nconst unsigned n_nouns = sizeof(nouns) / sizeof(nouns[0]);\n"
}

// setMethod is the method that changes objects of a service; empty: there is none.
func setMethod(s protoreflect.ServiceDescriptor) string {
	for i := range s.Methods().Len() {
		if name := string(s.Methods().Get(i).Name()); strings.HasPrefix(name, "Set") {
			return name
		}
	}
	return ""
}

func keys(n state.Noun) string {
	var kinds []string
	automatic := ""
	for i, fd := range n.Keys {
		if int(fd.Number()) != i+1 {
			panic(fmt.Sprintf("%s is a key, and therefore needs the number %d", fd.FullName(), i+1))
		}
		if limits.Of(fd).Automatic {
			automatic = fmt.Sprintf(", .automatic = %d", fd.Number())
		}
		switch limits.Of(fd).Notation {
		case apiv1.Notation_NOTATION_MAC:
			kinds = append(kinds, "NOUN_KEY_MAC")
		case apiv1.Notation_NOTATION_ADDRESS, apiv1.Notation_NOTATION_HOST, apiv1.Notation_NOTATION_PREFIX:
			kinds = append(kinds, "NOUN_KEY_ADDRESS")
		default:
			kinds = append(kinds, "NOUN_KEY_EXACT")
		}
	}
	if len(kinds) == 0 {
		return ""
	}
	return fmt.Sprintf(", .n_keys = %d, .keys = {%s}%s", len(kinds), strings.Join(kinds, ", "), automatic)
}

// parents are the nouns that an object names by its keys, or by a field with the option `ends`.
func parents(n state.Noun, all []state.Noun) string {
	var list []string
	for _, fd := range byNumber(n.Message) {
		if l := limits.Of(fd); l.Ref != "" && l.Key || l.Ends {
			parent := slices.IndexFunc(all, func(p state.Noun) bool { return p.Section == l.Ref })
			list = append(list, fmt.Sprintf("{.service = %s, .field = %d}",
				quote(string(all[parent].Service.FullName())), fd.Number()))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return ", .n_parents = " + fmt.Sprint(len(list)) + ",\n\t\t.parents = {" + strings.Join(list, ", ") + "}"
}
