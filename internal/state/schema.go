// SPDX-License-Identifier: Apache-2.0
package state

import (
	"encoding/json"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/corelane/corelane/internal/limits"
)

// Schema returns the JSON Schema of the node file, generated from the API (api/*.proto) and the rules of this package.
func Schema() ([]byte, error) {
	defs := map[string]any{}
	props := map[string]any{}
	for _, section := range sections {
		md := newMessage(section).ProtoReflect().Descriptor()
		ref := schemaMessage(md, defs)
		if section == "settings" {
			props[section] = ref
		} else {
			props[section] = map[string]any{"type": []string{"array", "null"}, "items": ref}
		}
	}
	out, err := json.MarshalIndent(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "Corelane node",
		"description": "Desired state of a node: corelane apply -f, corelane export. Made by corelane " +
			"export --schema.",
		"type":                 "object",
		"properties":           props,
		"additionalProperties": false,
		"$defs":                defs,
	}, "", "  ")
	return append(out, '\n'), err
}

// schemaMessage adds a message to defs and returns a reference to it.
func schemaMessage(md protoreflect.MessageDescriptor, defs map[string]any) any {
	name := string(md.Name())
	ref := map[string]any{"$ref": "#/$defs/" + name}
	if defs[name] != nil {
		return ref
	}
	props := map[string]any{}
	def := map[string]any{"type": "object", "properties": props, "additionalProperties": false}
	defs[name] = def
	var required []string
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		rule := ruleOf(fd)
		if rule.readOnly {
			continue
		}
		props[string(fd.Name())] = schemaField(fd, rule, defs)
		if rule.required && fd.ContainingOneof() == nil {
			required = append(required, string(fd.Name()))
		}
	}
	if required != nil {
		def["required"] = required
	}
	if md.Oneofs().Len() == 1 { // no message of the API has two
		def["oneOf"] = schemaOneof(md.Oneofs().Get(0))
	}
	return ref
}

// schemaOneof says that exactly one of the fields is given.
func schemaOneof(of protoreflect.OneofDescriptor) []any {
	var list []any
	for i := range of.Fields().Len() {
		list = append(list, map[string]any{"required": []string{string(of.Fields().Get(i).Name())}})
	}
	return list
}

func schemaField(fd protoreflect.FieldDescriptor, rule rule, defs map[string]any) any {
	value := schemaValue(fd, rule, defs)
	if !fd.IsList() {
		if value, ok := value.(map[string]any); ok && rule.def != nil {
			value["default"] = rule.def
		}
		return value
	}
	list := map[string]any{"type": "array", "items": value}
	if rule.items > 0 {
		list["maxItems"] = rule.items
	}
	if rule.unique {
		list["uniqueItems"] = true
	}
	if rule.def != nil {
		list["default"] = rule.def
	}
	return list
}

func schemaValue(fd protoreflect.FieldDescriptor, rule rule, defs map[string]any) any {
	switch fd.Kind() {
	case protoreflect.MessageKind:
		return schemaMessage(fd.Message(), defs)
	case protoreflect.BoolKind:
		return map[string]any{"type": "boolean"}
	case protoreflect.EnumKind:
		return map[string]any{"enum": enumNames(fd)}
	case protoreflect.StringKind:
		return schemaText(fd, rule)
	}
	value := map[string]any{"type": "integer", "minimum": limits.Of(fd).Min, "maximum": limits.Max(fd)}
	if by := limits.Of(fd).MultipleOf; by > 0 {
		value["multipleOf"] = by
	}
	return value
}

func schemaText(fd protoreflect.FieldDescriptor, rule rule) any {
	value := map[string]any{"type": "string"}
	if rule.format != nil {
		value["pattern"], value["description"] = rule.format.pattern, rule.format.valid
		if rule.format.number {
			value["type"] = []string{"string", "integer"}
		}
	}
	if rule.longest > 0 {
		value["maxLength"] = rule.longest
	}
	return value
}
