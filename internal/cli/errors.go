// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/corelane/corelane/internal/api"
	"github.com/corelane/corelane/internal/cli/protoflag"
	"github.com/corelane/corelane/internal/input"
)

// flagError turns an error of pflag into one that reads like all others.
func flagError(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	var required *pflag.ValueRequiredError
	switch {
	case errors.As(err, &value):
		flag := value.GetFlag()
		var own *input.Error
		if errors.As(value.Unwrap(), &own) {
			return &input.Error{Field: "--" + flag.Name, Text: own.Text, Valid: own.Valid}
		}
		return input.Errorf("--"+flag.Name, validOf(flag.Value.Type()), "'%s' is not understood", value.GetValue())
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown.GetSpecifiedName())
	case errors.As(err, &required):
		return input.Errorf("--"+required.GetFlag().Name, required.GetFlag().Usage, "needs a value")
	}
	return input.Errorf("command line", flagNames(cmd), "%v", err)
}

func unknownFlag(cmd *cobra.Command, name string) error {
	known := &cobra.Command{SuggestionsMinimumDistance: 2} // whose commands are the flags
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		known.AddCommand(&cobra.Command{Use: f.Name, Hidden: f.Hidden, Run: func(*cobra.Command, []string) {}})
	})
	near := known.SuggestionsFor(name)
	if len(near) == 0 {
		return input.Errorf("--"+name, flagNames(cmd), "there is no such flag")
	}
	return input.Errorf("--"+name, "see "+cmd.CommandPath()+" --help", "there is no such flag, did you mean --%s?",
		strings.Join(near, " or --"))
}

// validOf describes the values that pflag's own types accept.
func validOf(kind string) string {
	switch kind {
	case "uint32":
		return "0 to 4294967295"
	case "int", "float64":
		return "a number"
	case "bool":
		return "true, false"
	case "duration":
		return "a duration, 500ms or 10s"
	}
	return kind
}

// underscored is a field in a text: its name has an underscore, which no word of English has, and no quotes, which
// values have.
var underscored = regexp.MustCompile(`(^|[ ,(])(?:[a-z0-9_]+\.)*([a-z0-9]+(?:_[a-z0-9]+)+)\b`)

// withFlags names the command's flags in an error of the daemon, in place of the fields that they write.
func withFlags(cmd *cobra.Command, err error) error {
	refused, ok := err.(*api.Error) // not one that is part of another error, about a line of a file
	if !ok {
		return err
	}
	flags := map[string]string{} // by field; empty: several flags have a field of that name
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if v, ok := f.Value.(*protoflag.Value); ok {
			if _, several := flags[v.FieldName()]; several {
				flags[v.FieldName()] = ""
			} else {
				flags[v.FieldName()] = "--" + f.Name
			}
		}
	})
	named := *refused
	field := refused.Field[strings.LastIndexByte(refused.Field, '.')+1:]
	if flag := flags[field]; flag != "" {
		named.Field = flag
		if rest, ok := strings.CutPrefix(refused.Message, refused.Field); ok {
			named.Message = flag + rest
		}
	}
	for _, text := range []*string{&named.Message, &named.Valid} {
		*text = underscored.ReplaceAllStringFunc(*text, func(found string) string {
			part := underscored.FindStringSubmatch(found)
			if flag := flags[part[2]]; flag != "" {
				return part[1] + flag
			}
			return found
		})
	}
	return &named
}

func flagNames(cmd *cobra.Command) string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return strings.Join(names, " ")
}

// noVerb answers a noun without a verb, or with one that it does not have.
func noVerb(cmd *cobra.Command, args []string) error {
	what := "verb"
	if !cmd.HasParent() {
		what = "command"
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			names = append(names, c.Name())
		}
	}
	slices.Sort(names)
	valid := strings.Join(names, ", ") + "; more: " + cmd.CommandPath() + " --help"
	if len(args) == 0 {
		return input.Errorf(what, valid, "missing")
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return input.Errorf(what, valid, "'%s' is unknown, did you mean %s?", args[0], strings.Join(near, " or "))
	}
	return input.Errorf(what, valid, "'%s' is unknown", args[0])
}
