// SPDX-License-Identifier: Apache-2.0

// Package limits reads the values that api/*.proto allow for a field (api/options.proto), and describes them in words.
package limits

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// Of returns the limits of a field, never nil.
func Of(fd protoreflect.FieldDescriptor) *apiv1.Limits {
	if l := proto.GetExtension(fd.Options(), apiv1.E_Limits).(*apiv1.Limits); l != nil {
		return l
	}
	return &apiv1.Limits{}
}

// OfChoice returns the limits of a oneof, never nil.
func OfChoice(od protoreflect.OneofDescriptor) *apiv1.Limits {
	if l := proto.GetExtension(od.Options(), apiv1.E_Choice).(*apiv1.Limits); l != nil {
		return l
	}
	return &apiv1.Limits{}
}

// Items is the largest number of items of a list.
func Items(m proto.Message, field protoreflect.Name) int {
	return int(Of(m.ProtoReflect().Descriptor().Fields().ByName(field)).Items)
}

// Encapsulation returns the properties of a kind of tunnel, never nil.
func Encapsulation(e apiv1.Encap) *apiv1.Encapsulation {
	if value := e.Descriptor().Values().ByNumber(e.Number()); value != nil {
		if o := encapsulationOf(value); o != nil {
			return o
		}
	}
	return &apiv1.Encapsulation{}
}

func encapsulationOf(value protoreflect.EnumValueDescriptor) *apiv1.Encapsulation {
	return proto.GetExtension(value.Options(), apiv1.E_Encapsulation).(*apiv1.Encapsulation)
}

// ForMirrorsOnly reports whether a value of an enum is an encapsulation that next hops cannot have.
func ForMirrorsOnly(value protoreflect.EnumValueDescriptor) bool {
	return encapsulationOf(value).GetMirrorsOnly()
}

// Encapsulations lists the encapsulations that next hops can have.
func Encapsulations() []apiv1.Encap {
	var list []apiv1.Encap
	for values, i := apiv1.Encap(0).Descriptor().Values(), 1; i < values.Len(); i++ {
		if e := apiv1.Encap(values.Get(i).Number()); !Encapsulation(e).MirrorsOnly {
			list = append(list, e)
		}
	}
	return list
}

// EncapsulationsWith lists the encapsulations that use a field of a tunnel, such as "label" or "vni".
func EncapsulationsWith(field string) []apiv1.Encap {
	return slices.DeleteFunc(Encapsulations(), func(e apiv1.Encap) bool {
		return !slices.Contains(Encapsulation(e).Fields, field)
	})
}

// EncapsulationFields lists the fields that only some kinds of tunnels have.
func EncapsulationFields() []string {
	var all []string
	for _, e := range Encapsulations() {
		all = append(all, Encapsulation(e).Fields...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Notation of a text field. A reference is a name.
func Notation(fd protoreflect.FieldDescriptor) apiv1.Notation {
	l := Of(fd)
	if l.Ref != "" && fd.Kind() == protoreflect.StringKind {
		return apiv1.Notation_NOTATION_NAME
	}
	return l.Notation
}

// Text describes the text of a notation; nil: any text.
func Text(n apiv1.Notation) *apiv1.Text {
	if n == apiv1.Notation_NOTATION_ANY {
		return nil
	}
	value := n.Descriptor().Values().ByNumber(n.Number())
	return proto.GetExtension(value.Options(), apiv1.E_Text).(*apiv1.Text)
}

// Pattern is the regular expression of a notation, for RE2 and for the JSON schema. For notations with a parser it is
// only necessary: text that matches may still be wrong.
func Pattern(t *apiv1.Text) string {
	if t.Pattern != "" {
		return t.Pattern
	}
	most := ""
	if t.Longest > 0 {
		most = fmt.Sprint(int(t.Longest) - len(t.First))
	}
	least := 1 - len(t.First)
	return fmt.Sprintf("^%s[%s]{%d,%s}$", regexp.QuoteMeta(t.First), t.Characters, least, most)
}

// Max is the largest number that a field takes.
func Max(fd protoreflect.FieldDescriptor) uint64 {
	switch l := Of(fd); {
	case l.Max > 0:
		return l.Max
	case fd.Kind() == protoreflect.Uint64Kind:
		return 1<<64 - 1
	}
	return 1<<32 - 1
}

// Number says whether n is one of the numbers that a field takes.
func Number(fd protoreflect.FieldDescriptor, n uint64) bool {
	l := Of(fd)
	return n >= l.Min && n <= Max(fd) && (!l.PowerOfTwo || n&(n-1) == 0) && (l.MultipleOf == 0 || n%l.MultipleOf == 0)
}

// Numbers says in words which numbers a field takes: "576 to 9600", "a power of two from 64 to 4194304".
func Numbers(fd protoreflect.FieldDescriptor) string {
	l := Of(fd)
	switch {
	case l.PowerOfTwo:
		return fmt.Sprintf("a power of two from %d to %d", l.Min, Max(fd))
	case l.MultipleOf > 0:
		return fmt.Sprintf("a multiple of %d from %d to %d", l.MultipleOf, l.Min, Max(fd))
	}
	return fmt.Sprintf("%d to %d", l.Min, Max(fd))
}

// wellKnown are the notations that a help text does not explain.
var wellKnown = map[apiv1.Notation]bool{
	apiv1.Notation_NOTATION_ANY: true, apiv1.Notation_NOTATION_LINE: true, apiv1.Notation_NOTATION_MAC: true,
	apiv1.Notation_NOTATION_ADDRESS: true, apiv1.Notation_NOTATION_HOST: true,
	apiv1.Notation_NOTATION_INTERFACE_ADDRESS: true, apiv1.Notation_NOTATION_PREFIX: true,
	apiv1.Notation_NOTATION_HOST_OR_PREFIX: true, apiv1.Notation_NOTATION_PREFIX_OR_ANY: true,
}

// Help describes the limits of a field for the help of its flag: "576 to 9600 bytes, default 1500". Empty: nothing.
func Help(fd protoreflect.FieldDescriptor) string {
	var parts []string
	l := Of(fd)
	switch fd.Kind() {
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		if l.Max > 0 || l.Min > 0 {
			parts = append(parts, strings.TrimSpace(Numbers(fd)+" "+Unit(fd)))
		}
	case protoreflect.StringKind:
		if !wellKnown[l.Notation] {
			parts = append(parts, Text(l.Notation).Valid)
		}
	}
	if l.Items > 0 {
		parts = append(parts, fmt.Sprintf("up to %d", l.Items))
	}
	if len(l.Default) > 0 {
		parts = append(parts, "default "+strings.Trim(fmt.Sprint(l.Default), "[]"))
	}
	return strings.Join(parts, ", ")
}

// Unit of a number, from its options or the end of its name; empty: none.
func Unit(fd protoreflect.FieldDescriptor) string {
	if unit := Of(fd).Unit; unit != "" {
		return unit
	}
	name := string(fd.Name())
	switch unit := name[strings.LastIndexByte(name, '_')+1:]; unit {
	case "packets", "bytes", "cycles", "us", "ns", "ms":
		return unit
	case "seconds":
		return "s"
	case "hz":
		return "Hz"
	}
	return ""
}

// Settable lists the fields and oneofs of a message that a Set may name.
func Settable(md protoreflect.MessageDescriptor) []string {
	var names []string
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		of := fd.ContainingOneof()
		switch l := Of(fd); {
		case l.Key || l.Fixed || l.ReadOnly:
		case of == nil:
			names = append(names, string(fd.Name()))
		case !OfChoice(of).Fixed && of.Fields().Get(0) == fd:
			names = append(names, string(of.Name()))
		}
	}
	return names
}
