// SPDX-License-Identifier: Apache-2.0
package api

import (
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// checkText finds a text that is not UTF-8: such a message cannot be sent.
func checkText(m protoreflect.Message) error {
	var found error
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		each := func(v protoreflect.Value) {
			switch fd.Kind() {
			case protoreflect.StringKind:
				if found == nil && !utf8.ValidString(v.String()) {
					found = &Error{Field: string(fd.Name()), Value: v.String(), Valid: "text in UTF-8",
						Message: string(fd.Name()) + ": is not text in UTF-8", Code: codes.InvalidArgument}
				}
			case protoreflect.MessageKind:
				if err := checkText(v.Message()); found == nil {
					found = err
				}
			}
		}
		switch {
		case fd.IsMap():
		case fd.IsList():
			for i := range v.List().Len() {
				each(v.List().Get(i))
			}
		default:
			each(v)
		}
		return found == nil
	})
	return found
}
