// SPDX-License-Identifier: Apache-2.0
package limits

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/corelane/corelane/internal/input"
)

// EnumText is an enum's value as users type it: PORT_ROLE_FABRIC is "fabric".
func EnumText(e protoreflect.Enum) string { return EnumName(e.Descriptor(), e.Number()) }

// EnumName is one value of an enum as users type it.
func EnumName(d protoreflect.EnumDescriptor, n protoreflect.EnumNumber) string {
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

// typed reports whether a value may be typed. No flag is for an encapsulation that only mirrors have: they name it
// otherwise.
func typed(v protoreflect.EnumValueDescriptor) bool {
	return !strings.HasSuffix(string(v.Name()), "_UNSPECIFIED") && !ForMirrorsOnly(v)
}

// EnumNames lists what may be typed for an enum.
func EnumNames(d protoreflect.EnumDescriptor) []string {
	var names []string
	for i := range d.Values().Len() {
		if v := d.Values().Get(i); typed(v) {
			names = append(names, EnumName(d, v.Number()))
		}
	}
	return names
}

// ParseEnum reads what was typed for an enum. It takes a hyphen for an underscore.
func ParseEnum(d protoreflect.EnumDescriptor, text string) (protoreflect.EnumNumber, error) {
	for i := range d.Values().Len() {
		v := d.Values().Get(i)
		if EnumName(d, v.Number()) == strings.ReplaceAll(text, "-", "_") && typed(v) {
			return v.Number(), nil
		}
	}
	return 0, input.Errorf("value", strings.Join(EnumNames(d), ", "), "'%s' is unknown", text)
}
