// SPDX-License-Identifier: Apache-2.0
package state

import (
	"context"
	"fmt"
	"strings"

	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

// The methods of a noun's service are found by name: Add, Set, Del, List.

// method returns a method of the noun's service, nil if there is none.
func (n *noun) method(name protoreflect.Name) protoreflect.MethodDescriptor {
	if n.section == "settings" {
		name += "Settings" // methods of the System service: SetSettings
	}
	return n.service.Methods().ByName(name)
}

// canSet says whether an object can be changed in place, by a Set or by an Add that replaces it.
func (n *noun) canSet() bool {
	_, isNeighbor := n.message.New().Interface().(*apiv1.Neighbor) // its Add replaces any entry by a permanent one
	return n.method("Set") != nil || n.method("Add").Input().Fields().ByName("replace") != nil || isNeighbor
}

func (n *noun) add(ctx context.Context, c *api.Client, m proto.Message) error {
	return n.do(ctx, c, "Add", m, nil)
}

// mostOf is the number of objects of one request: AddAll or DelAll.
func (n *noun) mostOf(name protoreflect.Name) int {
	method := n.method(name)
	if method == nil {
		return 1
	}
	return int(limits.Of(method.Input().Fields().Get(0)).Items)
}

// addAll adds the objects of several operations in one request, which adds all of them or none.
func (n *noun) addAll(ctx context.Context, c *api.Client, ops []Op) error {
	method := n.method("AddAll")
	req := newOf(method.Input())
	list := req.ProtoReflect().Mutable(method.Input().Fields().Get(0)).List()
	for _, op := range ops {
		list.Append(protoreflect.ValueOfMessage(op.New.ProtoReflect()))
	}
	return n.request(ctx, c, method, req)
}

// delAll deletes the objects of several operations in one request, which deletes all of them or none. Its only field
// lists their keys: 'ids' those of the field 'id'.
func (n *noun) delAll(ctx context.Context, c *api.Client, ops []Op) error {
	method := n.method("DelAll")
	req := newOf(method.Input())
	keys := method.Input().Fields().Get(0)
	key := n.message.Descriptor().Fields().ByName(protoreflect.Name(strings.TrimSuffix(string(keys.Name()), "s")))
	list := req.ProtoReflect().Mutable(keys).List()
	for _, op := range ops {
		list.Append(op.Old.ProtoReflect().Get(key))
	}
	return n.request(ctx, c, method, req)
}

// set changes fields of an object, by Set or by an Add that replaces it.
func (n *noun) set(ctx context.Context, c *api.Client, m proto.Message, fields []string) error {
	if n.method("Set") != nil {
		return n.do(ctx, c, "Set", m, fields)
	}
	return n.do(ctx, c, "Add", m, fields)
}

func (n *noun) del(ctx context.Context, c *api.Client, m proto.Message) error {
	return n.do(ctx, c, "Del", m, nil)
}

func (n *noun) do(ctx context.Context, c *api.Client, name protoreflect.Name, m proto.Message, fields []string) error {
	method := n.method(name)
	if method == nil {
		return fmt.Errorf("%s has no method %s", n.service.FullName(), name)
	}
	req := newOf(method.Input())
	fillRequest(req.ProtoReflect(), m.ProtoReflect(), fields)
	return n.request(ctx, c, method, req)
}

func (n *noun) request(ctx context.Context, c *api.Client, method protoreflect.MethodDescriptor,
	req proto.Message) error {
	resp := newOf(method.Output())
	_, err := api.Call(ctx, c, sameClient,
		func(t *ttrpc.Client, ctx context.Context, req proto.Message) (proto.Message, error) {
			return resp, t.Call(ctx, string(n.service.FullName()), string(method.Name()), req, resp)
		}, req)
	return err
}

// fillRequest puts an object into a request: the whole object, or only its keys if the request has fields of their
// names (Del). fields names the fields of an existing object that change; nil: the object is new.
func fillRequest(req, m protoreflect.Message, fields []string) {
	for i := range req.Descriptor().Fields().Len() {
		fd := req.Descriptor().Fields().Get(i)
		switch key := m.Descriptor().Fields().ByName(fd.Name()); {
		case fd.Message() == m.Descriptor():
			req.Set(fd, protoreflect.ValueOfMessage(m))
		case fd.Name() == "fields":
			for _, name := range fields {
				req.Mutable(fd).List().Append(protoreflect.ValueOfString(name))
			}
		case fd.Name() == "replace":
			req.Set(fd, protoreflect.ValueOfBool(fields != nil))
		case key != nil && key.Kind() == fd.Kind():
			req.Set(fd, m.Get(key))
		}
	}
}

func newOf(md protoreflect.MessageDescriptor) proto.Message {
	t, err := protoregistry.GlobalTypes.FindMessageByName(md.FullName())
	if err != nil {
		panic(err) // the program is built from this contract
	}
	return t.New().Interface()
}

func sameClient(t *ttrpc.Client) *ttrpc.Client { return t }

// listing is a stream that receives the objects of a List.
type listing struct {
	ttrpc.ClientStream
	of protoreflect.MessageDescriptor
}

func (l listing) Recv() (proto.Message, error) {
	m := newOf(l.of)
	return m, l.RecvMsg(m)
}

// list calls each for every object that the node has.
func (n *noun) list(ctx context.Context, c *api.Client, each func(proto.Message) error) error {
	method := n.method("List")
	open := func(t *ttrpc.Client, ctx context.Context, req proto.Message) (listing, error) {
		stream, err := t.NewStream(ctx, &ttrpc.StreamDesc{StreamingServer: true}, string(n.service.FullName()), "List",
			req)
		return listing{stream, method.Output()}, err
	}
	return api.Stream(ctx, c, sameClient, open, newOf(method.Input()), each)
}
