// SPDX-License-Identifier: Apache-2.0
package state

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

// portSettable has the fields of a port that can be changed in place.
var portSettable = limits.Settable((*apiv1.Port)(nil).ProtoReflect().Descriptor())

// changed lists the fields and oneofs in which an object differs from the wanted one. Fields that the wanted object
// leaves to the node do not differ.
func changed(want, have proto.Message) []string {
	if want == have {
		return nil
	}
	w := proto.Clone(want).ProtoReflect()
	h := have.ProtoReflect()
	fill(w, h)
	var names []string
	md := w.Descriptor()
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if fd.ContainingOneof() == nil && !ruleOf(fd).readOnly && !equalField(w, h, fd) {
			names = append(names, string(fd.Name()))
		}
	}
	for i := range md.Oneofs().Len() {
		of := md.Oneofs().Get(i)
		fd := w.WhichOneof(of)
		if fd != h.WhichOneof(of) || fd != nil && !equalField(w, h, fd) {
			names = append(names, string(of.Name()))
		}
	}
	return names
}

func equalField(a, b protoreflect.Message, fd protoreflect.FieldDescriptor) bool {
	return a.Has(fd) == b.Has(fd) && a.Get(fd).Equal(b.Get(fd))
}

// fill copies from have the fields that want leaves to the node.
func fill(want, have protoreflect.Message) {
	fields := want.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		switch {
		case fd.IsList():
		case fd.Kind() == protoreflect.MessageKind:
			if want.Has(fd) && have.Has(fd) {
				fill(want.Mutable(fd).Message(), have.Get(fd).Message())
			}
		case ruleOf(fd).any && !want.Has(fd) && have.Has(fd):
			want.Set(fd, have.Get(fd))
		}
	}
}

// settable says whether all of these fields of a port can be changed in place.
func settable(fields []string) bool {
	for _, f := range fields {
		if !slices.Contains(portSettable, f) {
			return false
		}
	}
	return true
}
