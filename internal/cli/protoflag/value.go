// SPDX-License-Identifier: Apache-2.0

// Package protoflag turns fields of messages into flags.
package protoflag

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/limits"
)

// Value is the pflag.Value of a field. A list takes values between commas, or the flag several times; "" empties it.
type Value struct {
	msg   protoreflect.Message
	field protoreflect.FieldDescriptor
	given bool
}

// New makes the Value that writes into a field of a message.
func New(msg proto.Message, field protoreflect.FieldDescriptor) *Value {
	return &Value{msg: msg.ProtoReflect(), field: field}
}

// FieldName is the name of the field that the value is for.
func (v *Value) FieldName() string { return string(v.field.Name()) }

func (v *Value) String() string { return "" }

func (v *Value) Type() string {
	switch {
	case v.field == nil:
		return ""
	case v.field.IsList():
		return "list"
	case v.field.Kind() == protoreflect.EnumKind:
		return strings.Join(limits.EnumNames(v.field.Enum()), "|")
	case v.field.Kind() == protoreflect.StringKind:
		return "text"
	case v.field.Kind() == protoreflect.BoolKind:
		return ""
	}
	return "number"
}

func (v *Value) Set(text string) error {
	if !v.field.IsList() {
		value, err := v.parse(text)
		if err == nil {
			v.msg.Set(v.field, value)
		}
		return err
	}
	if !v.given {
		v.msg.Clear(v.field)
		v.given = true
	}
	list := v.msg.Mutable(v.field).List()
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		value, err := v.parse(part)
		if err != nil {
			return err
		}
		list.Append(value)
	}
	return nil
}

func (v *Value) parse(text string) (protoreflect.Value, error) {
	switch v.field.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(text), nil
	case protoreflect.BoolKind:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return protoreflect.Value{}, input.Errorf("value", "true, false", "'%s' is neither true nor false", text)
		}
		return protoreflect.ValueOfBool(b), nil
	case protoreflect.EnumKind:
		n, err := limits.ParseEnum(v.field.Enum(), text)
		return protoreflect.ValueOfEnum(n), err
	case protoreflect.Uint32Kind:
		n, err := number(v.field, text, 32)
		return protoreflect.ValueOfUint32(uint32(n)), v.numberError(text, err)
	case protoreflect.Uint64Kind:
		n, err := number(v.field, text, 64)
		return protoreflect.ValueOfUint64(n), v.numberError(text, err)
	}
	return protoreflect.Value{}, fmt.Errorf("%s: fields of kind %s have no flag", v.field.Name(), v.field.Kind())
}

// numberError refuses text that is not a number of the field's size. The daemon checks the narrower range of the field.
func (v *Value) numberError(text string, err error) error {
	if err == nil {
		return nil
	}
	valid := limits.Numbers(v.field)
	if isRate(v.field) {
		valid += rates
	}
	return input.NotNumber("value", valid, text)
}

// Rates may be written with a prefix of their unit: 1.5G.
const rates = ", or as 500k, 1.5M, 10G"

var rate = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)([kMGT])$`)

var thousands = map[string]int{"k": 3, "M": 6, "G": 9, "T": 12} // decimal places

func isRate(fd protoreflect.FieldDescriptor) bool { return strings.HasSuffix(limits.Unit(fd), "/s") }

func number(fd protoreflect.FieldDescriptor, text string, bits int) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, bits)
	part := rate.FindStringSubmatch(text)
	if part == nil || !isRate(fd) {
		return n, err
	}
	whole, decimals, _ := strings.Cut(part[1], ".")
	zeros := thousands[part[2]] - len(decimals)
	if zeros < 0 {
		return 0, err
	}
	return strconv.ParseUint(whole+decimals+strings.Repeat("0", zeros), 10, bits)
}

// ParseField reads a number that a field of msg takes; argument is its name on the command line.
func ParseField(argument, text string, msg proto.Message, field protoreflect.Name) (uint32, error) {
	fd := Field(msg, field)
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || !limits.Number(fd, n) {
		return 0, input.NotNumber(argument, limits.Numbers(fd), text)
	}
	return uint32(n), nil
}

// Numbers describes the numbers that a field of msg takes, for help texts.
func Numbers(msg proto.Message, field protoreflect.Name) string {
	return limits.Numbers(Field(msg, field))
}

// Check refuses the number in a field of msg if the field does not take it; argument is its name on the command line.
func Check(argument string, msg proto.Message, field protoreflect.Name) error {
	fd := Field(msg, field)
	n := msg.ProtoReflect().Get(fd).Uint()
	if !limits.Number(fd, n) {
		return input.NotNumber(argument, limits.Numbers(fd), strconv.FormatUint(n, 10))
	}
	return nil
}

// Field of a message, which must have it.
func Field(msg proto.Message, name protoreflect.Name) protoreflect.FieldDescriptor {
	return msg.ProtoReflect().Descriptor().Fields().ByName(name)
}

// Help joins the help text of a flag and the limits of its field.
func Help(help string, fd protoreflect.FieldDescriptor) string {
	l := limits.Help(fd)
	if isRate(fd) {
		l += rates
	}
	switch {
	case l == "":
		return help
	case help == "":
		return l
	default:
		return help + "; " + l
	}
}
