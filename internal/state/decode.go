// SPDX-License-Identifier: Apache-2.0
package state

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

// object reads one message of a section, checks it and adds it to the state.
func (l *loader) object(section, path string, n *yaml.Node) {
	if section == "routes" {
		l.route(path, n)
		return
	}
	m := newMessage(section)
	before := len(l.errs)
	l.message(n, m.ProtoReflect(), path)
	if len(l.errs) > before {
		l.broken = append(l.broken, pending{section: section, key: keyOf(m)})
		return
	}
	l.check(section, path, n, m)
	Normalize(m)
	l.define(section, keyOf(m), path, l.at(n))
	l.state.add(m)
}

// define notes that an object exists.
func (l *loader) define(section, key, path string, at position) {
	if first, twice := l.defs[section][key]; twice {
		l.fail(at, path, "", "%s %s is already given in line %d", nounOf[section].name, key, first.line)
		return
	}
	l.defs[section][key] = at
}

// message reads the fields of a message from a mapping.
func (l *loader) message(n *yaml.Node, r protoreflect.Message, path string) {
	md := r.Descriptor()
	if n.Kind != yaml.MappingNode {
		l.fail(l.at(n), path, "a mapping with "+fieldNames(md), "%s", describe(n, "not a mapping"))
		return
	}
	seen := map[protoreflect.Name]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		field := path + "." + k.Value
		fd := md.Fields().ByName(protoreflect.Name(k.Value))
		switch {
		case k.Kind != yaml.ScalarNode || fd == nil:
			l.fail(l.at(k), field, fieldNames(md), "unknown key")
			continue
		case ruleOf(fd).readOnly:
			l.fail(l.at(k), field, fieldNames(md), "read only: only the node sets it")
			continue
		case seen[fd.Name()] > 0:
			l.fail(l.at(k), field, "", "already given in line %d", seen[fd.Name()])
			continue
		}
		seen[fd.Name()] = k.Line + l.line
		if of := fd.ContainingOneof(); of != nil {
			if other := r.WhichOneof(of); other != nil {
				l.fail(l.at(k), field, "one of "+oneofNames(of), "'%s' is already given", other.Name())
				continue
			}
		}
		l.field(v, r, fd, field)
	}
	l.missing(n, r, seen, path)
}

// missing finds required fields that were not given.
func (l *loader) missing(n *yaml.Node, r protoreflect.Message, seen map[protoreflect.Name]int, path string) {
	md := r.Descriptor()
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if rule := ruleOf(fd); rule.required && fd.ContainingOneof() == nil && seen[fd.Name()] == 0 {
			l.fail(l.at(n), path+"."+string(fd.Name()), validOf(fd, rule), "missing")
		} else if rule.zero && seen[fd.Name()] == 0 {
			setDefault(r, fd, rule.def)
		}
	}
	for i := range md.Oneofs().Len() {
		of := md.Oneofs().Get(i)
		if !ruleOf(of).required {
			continue
		}
		given := false
		for j := range of.Fields().Len() {
			given = given || seen[of.Fields().Get(j).Name()] > 0
		}
		if !given {
			l.fail(l.at(n), path, "one of "+oneofNames(of), "%s missing", of.Name())
		}
	}
}

func (l *loader) field(n *yaml.Node, r protoreflect.Message, fd protoreflect.FieldDescriptor, path string) {
	if !fd.IsList() {
		if v, ok := l.value(n, func() protoreflect.Message { return r.Mutable(fd).Message() }, fd, path); ok {
			r.Set(fd, v)
		}
		return
	}
	if n.Kind != yaml.SequenceNode {
		l.fail(l.at(n), path, "a list such as [a, b]", "%s", describe(n, "not a list"))
		return
	}
	list, rule := r.Mutable(fd).List(), ruleOf(fd)
	if rule.items > 0 && len(n.Content) > rule.items {
		l.fail(l.at(n), path, fmt.Sprintf("up to %d", rule.items), "%d values are too many", len(n.Content))
		return
	}
	seen := map[any]bool{}
	for i, item := range n.Content {
		field := fmt.Sprintf("%s[%d]", path, i)
		v, ok := l.value(item, func() protoreflect.Message { return list.AppendMutable().Message() }, fd, field)
		if !ok || fd.Kind() == protoreflect.MessageKind {
			continue
		}
		if rule.unique && seen[v.Interface()] {
			l.fail(l.at(item), field, "", "'%s' is given twice", item.Value)
		}
		seen[v.Interface()] = true
		list.Append(v)
	}
}

// value reads one value of a field. If it is a message, mutable creates it in place.
func (l *loader) value(n *yaml.Node, mutable func() protoreflect.Message, fd protoreflect.FieldDescriptor,
	path string) (protoreflect.Value, bool) {
	rule := ruleOf(fd)
	if fd.Kind() == protoreflect.MessageKind {
		m := mutable()
		l.message(n, m, path)
		return protoreflect.ValueOfMessage(m), true
	}
	var v protoreflect.Value
	ok := false
	if n.Kind == yaml.ScalarNode {
		v, ok = scalar(n, fd, rule)
	}
	if !ok {
		what := describe(n, "wrong type")
		if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
			what = fmt.Sprintf("'%s'%s", n.Value, complaint(n, fd, rule))
		}
		l.fail(l.at(n), path, validOf(fd, rule), "%s", what)
		return v, false
	}
	if rule.ref != "" {
		l.refs = append(l.refs, pending{rule.ref, v.String(), path, l.at(n)})
	}
	return v, true
}

// scalar converts a value; ok is false if it does not fit the field's type, range or notation.
func scalar(n *yaml.Node, fd protoreflect.FieldDescriptor, rule rule) (v protoreflect.Value, ok bool) {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n.Value == "true"), n.Tag == "!!bool" && (n.Value == "true" ||
			n.Value == "false")
	case protoreflect.Uint32Kind:
		u, err := strconv.ParseUint(n.Value, 10, 32)
		return protoreflect.ValueOfUint32(uint32(u)), err == nil && n.Tag == "!!int" && limits.Number(fd, u)
	case protoreflect.Uint64Kind:
		u, err := strconv.ParseUint(n.Value, 10, 64)
		return protoreflect.ValueOfUint64(u), err == nil && n.Tag == "!!int" && limits.Number(fd, u)
	case protoreflect.EnumKind:
		for _, ev := range enumValues(fd) {
			if n.Value == limits.EnumName(fd.Enum(), ev.Number()) || n.Value == string(ev.Name()) {
				return protoreflect.ValueOfEnum(ev.Number()), true
			}
		}
		return v, false
	case protoreflect.StringKind:
		if n.Tag != "!!str" && (n.Tag != "!!int" || rule.format == nil || !rule.format.number) {
			return v, false
		}
		if rule.longest > 0 && len(n.Value) > rule.longest {
			return v, false
		}
		if rule.format == nil {
			return protoreflect.ValueOfString(n.Value), true
		}
		s, ok := rule.format.canon(n.Value)
		return protoreflect.ValueOfString(s), ok
	}
	return v, false
}

// complaint says why scalar() refused a value.
func complaint(n *yaml.Node, fd protoreflect.FieldDescriptor, rule rule) string {
	switch fd.Kind() {
	case protoreflect.StringKind:
		if n.Tag != "!!str" {
			return fmt.Sprintf(" is not text but %s: put it in quotes", tagName(n.Tag))
		}
		if p := hostBits(n.Value); p != "" && takesPrefix(fd) {
			return fmt.Sprintf(" has host bits set: '%s' has none", p)
		}
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		if n.Tag != "!!int" {
			return " is not a number"
		}
		if u, err := strconv.ParseUint(n.Value, 10, 64); err != nil || u < limits.Of(fd).Min || u > limits.Max(fd) {
			return " is out of range"
		}
	case protoreflect.BoolKind:
		return " is neither true nor false"
	}
	return " is not accepted"
}

func takesPrefix(fd protoreflect.FieldDescriptor) bool {
	switch limits.Notation(fd) {
	case apiv1.Notation_NOTATION_PREFIX, apiv1.Notation_NOTATION_HOST_OR_PREFIX, apiv1.Notation_NOTATION_PREFIX_OR_ANY:
		return true
	}
	return false
}

func describe(n *yaml.Node, otherwise string) string {
	switch {
	case n.Kind == yaml.AliasNode:
		return "an alias, which is not supported; write the value"
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return "has no value"
	}
	return otherwise
}

func tagName(tag string) string {
	names := map[string]string{"!!int": "a number", "!!float": "a number", "!!bool": "true or false",
		"!!timestamp": "a date"}
	if name := names[tag]; name != "" {
		return name
	}
	return tag
}

// validOf says in words which values are valid for a field.
func validOf(fd protoreflect.FieldDescriptor, rule rule) string {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return "true or false"
	case protoreflect.EnumKind:
		return strings.Join(enumNames(fd), ", ")
	case protoreflect.MessageKind:
		if fd.IsList() {
			return "a list of mappings with " + fieldNames(fd.Message())
		}
		return "a mapping with " + fieldNames(fd.Message())
	case protoreflect.StringKind:
		text := "text"
		if rule.format != nil {
			text = rule.format.valid
		}
		if rule.longest > 0 {
			text += fmt.Sprintf(" of up to %d bytes", rule.longest)
		}
		return text
	}
	return limits.Numbers(fd)
}

// enumValues are those that a field takes. A file may have their names in short (fabric) or as the API has them
// (PORT_ROLE_FABRIC).
func enumValues(fd protoreflect.FieldDescriptor) []protoreflect.EnumValueDescriptor {
	var values []protoreflect.EnumValueDescriptor
	for i := range fd.Enum().Values().Len() {
		if v := fd.Enum().Values().Get(i); uint64(v.Number()) >= limits.Of(fd).Min {
			values = append(values, v)
		}
	}
	return values
}

func enumNames(fd protoreflect.FieldDescriptor) []string {
	var names []string
	for _, v := range enumValues(fd) {
		names = append(names, limits.EnumName(fd.Enum(), v.Number()))
	}
	return names
}

// fieldNames lists the fields of a message that a file may set.
func fieldNames(md protoreflect.MessageDescriptor) string {
	var names []string
	for i := range md.Fields().Len() {
		if fd := md.Fields().Get(i); !ruleOf(fd).readOnly {
			names = append(names, string(fd.Name()))
		}
	}
	if len(names) == 0 {
		return "no keys: {}"
	}
	return strings.Join(names, " ")
}

func oneofNames(of protoreflect.OneofDescriptor) string {
	var names []string
	for i := range of.Fields().Len() {
		names = append(names, string(of.Fields().Get(i).Name()))
	}
	return strings.Join(names, ", ")
}

// route is object for routes. There may be a million, and the objects that they refer to have been read before.
func (l *loader) route(path string, n *yaml.Node) {
	var m apiv1.Route
	before, refs := len(l.errs), len(l.refs)
	l.message(n, m.ProtoReflect(), path)
	if len(l.errs) > before {
		return
	}
	for _, ref := range l.refs[refs:] {
		l.lookup(ref)
	}
	l.refs = l.refs[:refs]
	r, err := routeOf(&m, l.intern)
	if err != nil {
		return // unreachable: its notation has been checked
	}
	r.Line = uint32(n.Line + l.line)
	l.state.Routes = append(l.state.Routes, r)
}

// intern returns the one copy of a VRF's name that all its routes share.
func (l *loader) intern(vrf string) string {
	if last := len(l.state.Routes) - 1; last >= 0 && l.state.Routes[last].Vrf == vrf {
		return l.state.Routes[last].Vrf
	}
	for _, v := range l.state.Vrfs {
		if v.Name == vrf {
			return v.Name
		}
	}
	if vrf == FabricVrf {
		return FabricVrf
	}
	return strings.Clone(vrf)
}
