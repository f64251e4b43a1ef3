// SPDX-License-Identifier: Apache-2.0
package state

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/corelane/corelane/internal/limits"
)

// Object is one object of a file that is not a node file (Objects).
type Object struct {
	Section string        // the field of the root message
	Message proto.Message // what could be read of it, in the form in which states are compared
	Line    int
	Err     error // Errors; nil: it is complete
}

// Objects reads a file whose sections are the fields of root, each of them one message or a list of messages. An object
// with a fault does not hold up the others; the error that is returned beside them is about the file as a whole.
func Objects(name string, src []byte, root protoreflect.MessageDescriptor) ([]Object, error) {
	l := newLoader(name)
	if isEmpty(src) {
		return nil, nil
	}
	top := l.parse(piece{src, 1})
	if top != nil && top.Kind != yaml.MappingNode {
		l.fail(l.at(top), "", "a mapping with "+fieldNames(root), "%s", describe(top, "not a mapping"))
	}
	switch {
	case len(l.errs) > 0:
		return nil, l.errs
	case top == nil:
		return nil, nil
	}
	var list []Object
	var faults Errors
	seen := map[string]bool{}
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		fd := root.Fields().ByName(protoreflect.Name(key.Value))
		l.errs = nil
		switch {
		case fd == nil:
			l.fail(l.at(key), key.Value, fieldNames(root), "unknown key")
		case seen[key.Value]:
			l.fail(l.at(key), key.Value, "", "is already given")
		case fd.IsList() && value.Kind != yaml.SequenceNode:
			l.fail(l.at(value), key.Value, "a list: each item starts with \"- \"", "%s", describe(value, "not a list"))
		case fd.IsList():
			for j, item := range value.Content {
				list = append(list, l.free(fd, fmt.Sprintf("%s[%d]", key.Value, j), item))
			}
		default:
			list = append(list, l.free(fd, key.Value, value))
		}
		seen[key.Value] = true
		faults = append(faults, l.errs...)
	}
	if len(faults) > 0 {
		return list, faults
	}
	return list, nil
}

// free reads one object without the checks that need the objects around it.
func (l *loader) free(fd protoreflect.FieldDescriptor, path string, n *yaml.Node) Object {
	m := newOf(fd.Message())
	l.errs = nil
	l.message(n, m.ProtoReflect(), path)
	o := Object{Section: string(fd.Name()), Message: m, Line: l.at(n).line}
	if len(l.errs) > 0 {
		o.Err = slices.Clone(l.errs)
	} else {
		fillDefaults(m.ProtoReflect())
	}
	l.errs, l.refs = nil, nil
	return o
}

// fillDefaults brings messages into the form of Normalize, also those below.
func fillDefaults(r protoreflect.Message) {
	Normalize(r.Interface())
	r.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.Kind() == protoreflect.MessageKind && !fd.IsList() && !fd.IsMap() {
			fillDefaults(v.Message())
		}
		return true
	})
}

// KeyOf names an object by the fields that are its keys: "red"; "" if it has none.
func KeyOf(m proto.Message) string {
	var parts []string
	r := m.ProtoReflect()
	for i := range r.Descriptor().Fields().Len() {
		if fd := r.Descriptor().Fields().Get(i); limits.Of(fd).Key {
			parts = append(parts, r.Get(fd).String())
		}
	}
	return strings.Join(parts, " ")
}
