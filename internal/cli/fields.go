// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/corelane/corelane/internal/cli/protoflag"
	"github.com/corelane/corelane/internal/input"
)

// fieldFlag is a flag that stands for one field of a message.
type fieldFlag struct {
	flag  string
	field string // its name in the message; empty: the flag's name with underscores
	help  string
	names names // completion, may be nil
}

func (f fieldFlag) fieldName() string {
	if f.field != "" {
		return f.field
	}
	return strings.ReplaceAll(f.flag, "-", "_")
}

// bind adds flags that write into msg. Their help includes the limits that api/*.proto state for the field.
func (a *app) bind(cmd *cobra.Command, msg proto.Message, flags []fieldFlag) {
	for _, f := range flags {
		field := protoflag.Field(msg, protoreflect.Name(f.fieldName()))
		flag := cmd.Flags().VarPF(protoflag.New(msg, field), f.flag, "", protoflag.Help(f.help, field))
		flag.DefValue = ""
		complete := f.names
		switch field.Kind() {
		case protoreflect.BoolKind:
			flag.NoOptDefVal = "true"
		case protoreflect.EnumKind:
			complete = fixed(protoflag.EnumNames(field.Enum())...)
		}
		if complete == nil {
			complete = fixed()
		}
		a.completeFlag(cmd, f.flag, complete)
	}
}

// required refuses a command without this flag.
func required(cmd *cobra.Command, flag string) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f := cmd.Flags().Lookup(flag); !f.Changed {
			return input.Errorf("--"+flag, f.Usage, "missing")
		}
		return run(cmd, args)
	}
}

// changed lists the fields whose flags were given, which a Set request changes.
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
		return nil, input.Errorf("flags", strings.Join(names, " "), "missing, so there is nothing to change")
	}
	return fields, nil
}

func parseNumber(field, text string, least, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, input.NotNumber(field, fmt.Sprintf("%d to %d", least, most), text)
	}
	return n, nil
}

func parseID(field, text string, least, most uint32) (uint32, error) {
	n, err := parseNumber(field, text, uint64(least), uint64(most))
	return uint32(n), err
}
