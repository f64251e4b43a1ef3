// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/limits"
)

// fieldFlag is a flag that stands for one field of a message.
type fieldFlag struct {
	flag  string
	field string // its name in the message; empty: as the flag, with underscores
	help  string
	names names // completion, may be nil
}

func (f fieldFlag) fieldName() string {
	if f.field != "" {
		return f.field
	}
	return strings.ReplaceAll(f.flag, "-", "_")
}

// bind adds flags that write into msg. What api/*.proto say of a field's limits is part of its help.
func (a *app) bind(cmd *cobra.Command, msg proto.Message, flags []fieldFlag) {
	for _, f := range flags {
		v := &fieldValue{msg: msg.ProtoReflect()}
		v.field = fieldOf(msg, protoreflect.Name(f.fieldName()))
		flag := cmd.Flags().VarPF(v, f.flag, "", helpOf(f.help, v.field))
		flag.DefValue = ""
		complete := f.names
		switch v.field.Kind() {
		case protoreflect.BoolKind:
			flag.NoOptDefVal = "true"
		case protoreflect.EnumKind:
			complete = fixed(enumNames(v.field.Enum())...)
		}
		if complete == nil {
			complete = fixed()
		}
		a.completeFlag(cmd, f.flag, complete)
	}
}

func helpOf(help string, fd protoreflect.FieldDescriptor) string {
	switch l := limits.Help(fd); {
	case l == "":
		return help
	case help == "":
		return l
	default:
		return help + "; " + l
	}
}

// changed lists the fields whose flags were given: what a Set request is to change.
func changed(cmd *cobra.Command, flags []fieldFlag) []string {
	var fields []string
	for _, f := range flags {
		if cmd.Flags().Changed(f.flag) {
			fields = append(fields, f.fieldName())
		}
	}
	return fields
}

// needFields refuses a Set that would change nothing.
func needFields(cmd *cobra.Command, flags []fieldFlag) ([]string, error) {
	fields := changed(cmd, flags)
	if len(fields) == 0 {
		var names []string
		for _, f := range flags {
			names = append(names, "--"+f.flag)
		}
		return nil, input.Errorf("flags", strings.Join(names, " "), "none given, nothing to change")
	}
	return fields, nil
}

// fieldValue is the pflag.Value of a field. Lists take commas, or the flag several times; "" empties them.
type fieldValue struct {
	msg   protoreflect.Message
	field protoreflect.FieldDescriptor
	given bool
}

func (v *fieldValue) String() string { return "" }

func (v *fieldValue) Type() string {
	switch {
	case v.field == nil:
		return ""
	case v.field.IsList():
		return "list"
	case v.field.Kind() == protoreflect.EnumKind:
		return strings.Join(enumNames(v.field.Enum()), "|")
	case v.field.Kind() == protoreflect.StringKind:
		return "text"
	case v.field.Kind() == protoreflect.BoolKind:
		return ""
	}
	return "number"
}

func (v *fieldValue) Set(text string) error {
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

func (v *fieldValue) parse(text string) (protoreflect.Value, error) {
	switch v.field.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(text), nil
	case protoreflect.BoolKind:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return protoreflect.Value{}, input.Errorf("value", "true, false", "'%s' is neither", text)
		}
		return protoreflect.ValueOfBool(b), nil
	case protoreflect.EnumKind:
		n, err := enumParse(v.field.Enum(), text)
		return protoreflect.ValueOfEnum(n), err
	case protoreflect.Uint32Kind:
		n, err := strconv.ParseUint(text, 10, 32)
		return protoreflect.ValueOfUint32(uint32(n)), v.numberError(text, err)
	case protoreflect.Uint64Kind:
		n, err := strconv.ParseUint(text, 10, 64)
		return protoreflect.ValueOfUint64(n), v.numberError(text, err)
	}
	return protoreflect.Value{}, fmt.Errorf("%s: fields of kind %s have no flag", v.field.Name(), v.field.Kind())
}

// numberError is for text that is no number; whether a number is in range the daemon says.
func (v *fieldValue) numberError(text string, err error) error {
	if err == nil {
		return nil
	}
	return input.Errorf("value", limits.Numbers(v.field), "'%s' is not such a number", text)
}

// parseField reads a number that a field of msg takes; what is what it stands for on the command line.
func parseField(what, text string, msg proto.Message, field protoreflect.Name) (uint32, error) {
	fd := fieldOf(msg, field)
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || !limits.Number(fd, n) {
		return 0, input.Errorf(what, limits.Numbers(fd), "'%s' is not such a number", text)
	}
	return uint32(n), nil
}

func fieldOf(msg proto.Message, name protoreflect.Name) protoreflect.FieldDescriptor {
	return msg.ProtoReflect().Descriptor().Fields().ByName(name)
}

func parseNumber(field, text string, least, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, input.Errorf(field, fmt.Sprintf("%d..%d", least, most), "'%s' is not such a number", text)
	}
	return n, nil
}

func parseID(field, text string, least, most uint32) (uint32, error) {
	n, err := parseNumber(field, text, uint64(least), uint64(most))
	return uint32(n), err
}
