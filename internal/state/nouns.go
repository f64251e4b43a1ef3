// SPDX-License-Identifier: Apache-2.0
package state

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

// State holds normalised messages: addresses in canonical notation, defaults filled in.
//
// It is the table of nouns. The tag `file` is the section of the node file; sections are written and read in this
// order, with most names before their uses. The service of a noun is the one whose requests have the message, and its
// keys are options of its fields (api/options.proto). The tag `is` says how Diff and Write handle a section:
//
//	named  added before objects that refer to it, deleted when none refers to it any more
//	leaf   no object refers to it: deleted first and added last; replaced if it cannot be changed in place
//	line   written with one object per line, otherwise with one field per line
//
// Diff handles sections that are neither named nor leaf one by one.
type State struct {
	Settings  *apiv1.Settings       `file:"settings"`
	Workers   []*apiv1.Worker       `file:"workers"` // nil: not changed; empty: no workers
	Vrfs      []*apiv1.Vrf          `file:"vrfs"`
	Bridges   []*apiv1.Bridge       `file:"bridges"`
	Meters    []*apiv1.Meter        `file:"meters" is:"named"`
	Groups    []*apiv1.AddressGroup `file:"address_groups" is:"named"`
	RuleLists []*apiv1.RuleList     `file:"rule_lists" is:"named,line"`
	Rules     []*apiv1.Rule         `file:"rules" is:"line"`
	Ports     []*apiv1.Port         `file:"ports"`
	Mirrors   []*apiv1.Mirror       `file:"mirrors"`
	Nexthops  []*apiv1.Nexthop      `file:"nexthops"`
	Labels    []*apiv1.Label        `file:"labels" is:"leaf,line"`
	Vnis      []*apiv1.Vni          `file:"vnis" is:"leaf,line"`
	Nat       []*apiv1.NatRule      `file:"nat" is:"leaf" noun:"nat"` // before the routes of its flows
	Services  []*apiv1.Service      `file:"services" is:"leaf,line"`
	Endpoints []*apiv1.Endpoint     `file:"endpoints" is:"leaf,line"` // after their services
	Routes    []Route               `file:"routes" is:"leaf,line"`    // sorted by CompareRoutes
	Macs      []*apiv1.Mac          `file:"macs" is:"leaf,line"`
	Neighbors []*apiv1.Neighbor     `file:"neighbors" is:"leaf,line"`
	Steers    []*apiv1.HostSteer    `file:"host_steers" is:"leaf"`
}

type noun struct {
	section string // "address_groups"
	name    string // of one object: "address-group"
	field   int    // of State
	message protoreflect.MessageType
	service protoreflect.ServiceDescriptor
	keys    []protoreflect.FieldDescriptor
	is      []string
}

// Noun is a row of the table of nouns, for programs that write it in other languages.
type Noun struct {
	Section string
	Message protoreflect.MessageDescriptor
	Service protoreflect.ServiceDescriptor
	Keys    []protoreflect.FieldDescriptor
}

// Nouns returns all nouns in the order of State.
func Nouns() []Noun {
	var all []Noun
	for _, n := range nouns {
		all = append(all, Noun{n.section, n.message.Descriptor(), n.service, n.keys})
	}
	return all
}

var (
	nouns                                   = readNouns()
	sections, nounOf, nounByName, byMessage = indexNouns(nouns)
)

func readNouns() []*noun {
	var all []*noun
	t := reflect.TypeFor[State]()
	for i := range t.NumField() {
		f := t.Field(i)
		n := &noun{section: f.Tag.Get("file"), name: f.Tag.Get("noun"), field: i,
			message: messageOf(f.Type).ProtoReflect().Type(), is: strings.Split(f.Tag.Get("is"), ",")}
		md := n.message.Descriptor()
		if n.name == "" {
			n.name = kebab(string(md.Name()))
		}
		n.service = serviceOf(md)
		for j := range md.Fields().Len() {
			if fd := md.Fields().Get(j); limits.Of(fd).Key {
				n.keys = append(n.keys, fd)
			}
		}
		all = append(all, n)
	}
	return all
}

func messageOf(t reflect.Type) proto.Message {
	if t == reflect.TypeFor[[]Route]() {
		return &apiv1.Route{}
	}
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return reflect.New(t.Elem()).Interface().(proto.Message)
}

// kebab turns "AddressGroup" into "address-group".
func kebab(name string) string {
	var b strings.Builder
	for i, c := range name {
		if c >= 'A' && c <= 'Z' && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(c)
	}
	return strings.ToLower(b.String())
}

// serviceOf returns the service whose requests have a message.
func serviceOf(md protoreflect.MessageDescriptor) protoreflect.ServiceDescriptor {
	for _, service := range services() {
		for i := range service.Methods().Len() {
			fields := service.Methods().Get(i).Input().Fields()
			for j := range fields.Len() {
				if fields.Get(j).Message() == md {
					return service
				}
			}
		}
	}
	panic(fmt.Sprintf("no service takes a %s", md.FullName()))
}

func services() []protoreflect.ServiceDescriptor {
	var all []protoreflect.ServiceDescriptor
	protoregistry.GlobalFiles.RangeFilesByPackage("corelane.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			all = append(all, f.Services().Get(i))
		}
		return true
	})
	return all
}

func indexNouns(all []*noun) (list []string, section, name map[string]*noun,
	message map[protoreflect.MessageDescriptor]*noun) {
	section, name, message = map[string]*noun{}, map[string]*noun{}, map[protoreflect.MessageDescriptor]*noun{}
	for _, n := range all {
		list = append(list, n.section)
		section[n.section], name[n.name], message[n.message.Descriptor()] = n, n, n
	}
	return list, section, name, message
}

// sectionsWith returns the sections that have a word in their tag `is`.
func sectionsWith(is string) []string {
	var list []string
	for _, n := range nouns {
		if slices.Contains(n.is, is) {
			list = append(list, n.section)
		}
	}
	return list
}

// nounOfMessage returns the noun of an object.
func nounOfMessage(m proto.Message) *noun { return byMessage[m.ProtoReflect().Descriptor()] }

// newMessage returns an empty object of a section.
func newMessage(section string) proto.Message { return nounOf[section].message.New().Interface() }

// add adds a normalised object to its section.
func (s *State) add(m proto.Message) {
	field := reflect.ValueOf(s).Elem().Field(nounOfMessage(m).field)
	if field.Kind() == reflect.Slice {
		field.Set(reflect.Append(field, reflect.ValueOf(m)))
	} else {
		field.Set(reflect.ValueOf(m))
	}
}

// objects returns the messages of a section; none for routes, which are not messages.
func (s *State) objects(section string) []proto.Message {
	field := reflect.ValueOf(s).Elem().Field(nounOf[section].field)
	switch {
	case section == "routes" || field.IsNil():
		return nil
	case field.Kind() != reflect.Slice:
		return []proto.Message{field.Interface().(proto.Message)}
	}
	list := make([]proto.Message, field.Len())
	for i := range list {
		list[i] = field.Index(i).Interface().(proto.Message)
	}
	return list
}

// Sort sorts each section by its keys, which is the order in which it is written.
func (s *State) Sort() {
	for _, n := range nouns {
		if list := reflect.ValueOf(s).Elem().Field(n.field); list.Kind() == reflect.Slice && n.section != "routes" {
			objects := s.objects(n.section)
			slices.SortStableFunc(objects, n.compare)
			for i, m := range objects {
				list.Index(i).Set(reflect.ValueOf(m))
			}
		}
	}
	if !slices.IsSortedFunc(s.Routes, CompareRoutes) {
		slices.SortStableFunc(s.Routes, CompareRoutes)
	}
}

func (n *noun) compare(a, b proto.Message) int {
	x, y := a.ProtoReflect(), b.ProtoReflect()
	for _, fd := range n.keys {
		c := 0
		if fd.Kind() == protoreflect.StringKind {
			c = strings.Compare(x.Get(fd).String(), y.Get(fd).String())
		} else {
			c = cmp.Compare(x.Get(fd).Uint(), y.Get(fd).Uint())
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// keyOf returns the name of an object in texts and comparisons: "red", "5", "office 02:00:00:00:00:01".
func keyOf(m proto.Message) string {
	var parts []string
	for _, fd := range nounOfMessage(m).keys {
		parts = append(parts, m.ProtoReflect().Get(fd).String())
	}
	return strings.Join(parts, " ")
}
