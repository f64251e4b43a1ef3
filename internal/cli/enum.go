// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/corelane/corelane/internal/input"
)

// enumText is an enum's value as people type it: PORT_ROLE_FABRIC is "fabric".
func enumText(e protoreflect.Enum) string { return enumName(e.Descriptor(), e.Number()) }

func enumName(d protoreflect.EnumDescriptor, n protoreflect.EnumNumber) string {
	v := d.Values().ByNumber(n)
	if v == nil {
		return "unknown"
	}
	return strings.ToLower(strings.TrimPrefix(string(v.Name()), enumPrefix(d)))
}

// enumPrefix is what all names of the enum begin with, up to an underscore.
func enumPrefix(d protoreflect.EnumDescriptor) string {
	prefix := string(d.Values().Get(0).Name())
	for i := range d.Values().Len() {
		name := string(d.Values().Get(i).Name())
		for !strings.HasPrefix(name, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	return prefix[:strings.LastIndexByte(prefix, '_')+1]
}

// enumNames lists what may be typed.
func enumNames(d protoreflect.EnumDescriptor) []string {
	var names []string
	for i := range d.Values().Len() {
		if n := enumName(d, d.Values().Get(i).Number()); n != "unspecified" {
			names = append(names, n)
		}
	}
	return names
}

// enumParse takes a hyphen for an underscore.
func enumParse(d protoreflect.EnumDescriptor, text string) (protoreflect.EnumNumber, error) {
	for i := range d.Values().Len() {
		v := d.Values().Get(i)
		if n := enumName(d, v.Number()); n == strings.ReplaceAll(text, "-", "_") && n != "unspecified" {
			return v.Number(), nil
		}
	}
	return 0, input.Errorf("value", strings.Join(enumNames(d), ", "), "'%s' is unknown", text)
}
