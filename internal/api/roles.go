// SPDX-License-Identifier: Apache-2.0
package api

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// Method is a method of a daemon, and the role that a client needs for it.
type Method struct {
	Service protoreflect.FullName // "corelane.v1.Routes"
	Name    string                // "Add"
	Role    apiv1.Role
}

// String is the short name, "Routes.Add".
func (m Method) String() string { return string(m.Service.Name()) + "." + m.Name }

// Methods lists the methods of api/*.proto by name.
func Methods() []Method {
	var all []Method
	protoregistry.GlobalFiles.RangeFilesByPackage("corelane.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			for j := range s.Methods().Len() {
				m := s.Methods().Get(j)
				role := proto.GetExtension(m.Options(), apiv1.E_Role).(apiv1.Role)
				all = append(all, Method{s.FullName(), string(m.Name()), role})
			}
		}
		return true
	})
	slices.SortFunc(all, func(a, b Method) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// Groups are those whose members have a role, unless the daemon is started with others.
var Groups = map[apiv1.Role]string{
	apiv1.Role_ROLE_READ:       "corelane-read",
	apiv1.Role_ROLE_OPERATE:    "corelane-operate",
	apiv1.Role_ROLE_ADMINISTER: "corelane-admin",
}
