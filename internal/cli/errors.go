// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"

	"github.com/corelane/corelane/internal/api"
	"github.com/corelane/corelane/internal/cli/protoflag"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/state"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1   // an object is missing, exists already or is in use, or there is nothing to show
	exitUsage       = 2   // wrong input, found here or by the daemon; no permission; or no daemon
	exitInterrupted = 130 // as in shells
)

// ErrInterrupted is the cause of a context that a signal ended.
var ErrInterrupted = errors.New("interrupted")

func exitCode(err error) int {
	var gone *api.Unavailable
	var refused *api.Error
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &refused) && (refused.Code == codes.InvalidArgument || refused.Code == codes.PermissionDenied):
		return exitUsage
	case input.Is(err), errors.As(err, &gone), state.IsInput(err):
		return exitUsage
	case errors.Is(err, ErrInterrupted):
		return exitInterrupted
	}
	return exitFailed
}

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
		return input.Errorf("--"+unknown.GetSpecifiedName(), flagNames(cmd), "there is no such flag")
	case errors.As(err, &required):
		return input.Errorf("--"+required.GetFlag().Name, required.GetFlag().Usage, "needs a value")
	}
	return input.Errorf("command line", flagNames(cmd), "%v", err)
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

// arguments checks the number of positional arguments against those named in cmd.Use: "add PORT [ADDRESS] NAME...".
func arguments(cmd *cobra.Command, args []string) error {
	names := strings.Fields(cmd.Use)[1:]
	least, most := 0, len(names)
	for _, n := range names {
		if !strings.HasPrefix(n, "[") {
			least++
		}
		if strings.Contains(n, "...") {
			most = 1 << 30
		}
	}
	usage := strings.TrimSuffix(cmd.UseLine(), " [flags]")
	switch {
	case len(args) < least:
		return input.Errorf(strings.ToLower(strings.Trim(names[len(args)], "[].|")), usage, "missing")
	case len(args) > most:
		return input.Errorf("arguments", usage, "'%s' is one too many", args[most])
	}
	return nil
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
	return input.Errorf(what, valid, "'%s' is unknown", args[0])
}
