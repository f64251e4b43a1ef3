// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"

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
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	near := nearest(name, names)
	if len(near) == 0 {
		return input.Errorf("--"+name, flagNames(cmd), "there is no such flag")
	}
	return input.Errorf("--"+name, "see "+cmd.CommandPath()+" --help", "there is no such flag, did you mean --%s?",
		strings.Join(near, " or --"))
}

// nearest lists the names that may be meant by a word: they differ in up to two letters, or in case, or one is the
// beginning of the other.
func nearest(word string, names []string) []string {
	var near []string
	word = strings.ToLower(word)
	for _, name := range names {
		other := strings.ToLower(name)
		distance := input.Distance(word, other)
		if distance <= 2 && distance < len(word) || len(word) > 1 && strings.HasPrefix(other, word) ||
			len(name) > 2 && strings.HasPrefix(word, other) {
			near = append(near, name)
		}
	}
	return near
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

// inOwnWords makes an error of the daemon speak of the command line: of its flags and arguments in place of the fields
// that they write, and of the names that exist in place of "one that exists".
func (a *app) inOwnWords(cmd *cobra.Command, err error) error {
	refused, ok := err.(*api.Error) // not one that is part of another error, about a line of a file
	if !ok {
		return err
	}
	named, flags := *refused, flagsOfFields(cmd)
	flag := flagOf(cmd, flags, refused)
	argument, i := "", -1
	if flag == "" {
		if argument, i = argumentOf(cmd, refused); i < 0 {
			flag = unboundFlag(cmd, refused.Field)
		}
	}
	if name := cmp.Or(flag, argument); name != "" {
		named.Field = name
		if rest, ok := strings.CutPrefix(refused.Message, refused.Field); ok {
			named.Message = name + rest
		}
	}
	if refused.Code == codes.NotFound && refused.Value != "" {
		a.sayWhatExists(cmd, &named, strings.TrimPrefix(flag, "--"), i)
	}
	for _, text := range []*string{&named.Message, &named.Valid} {
		*text = underscored.ReplaceAllStringFunc(*text, func(found string) string {
			part := underscored.FindStringSubmatch(found)
			if flag := flags[part[2]]; flag != "" {
				return part[1] + flag
			}
			return found
		})
		if flag := flags["replace"]; flag != "" {
			*text = strings.ReplaceAll(*text, ", or replace", ", or "+flag)
		}
	}
	return &named
}

// flagsOfFields lists the command's flags by the field that they write; empty: several flags have a field of that name.
func flagsOfFields(cmd *cobra.Command) map[string]string {
	flags := map[string]string{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if v, ok := f.Value.(*protoflag.Value); ok {
			if _, several := flags[v.FieldName()]; several {
				flags[v.FieldName()] = ""
			} else {
				flags[v.FieldName()] = "--" + f.Name
			}
		}
	})
	return flags
}

// flagOf returns the flag that an error of the daemon is about, as far as its field or its value tells; else "".
func flagOf(cmd *cobra.Command, flags map[string]string, refused *api.Error) string {
	path := strings.Split(refused.Field, ".")
	last := path[len(path)-1]
	if flag := flags[last]; flag != "" {
		return flag
	}
	if _, several := flags[last]; several && len(path) > 1 { // of a kind that gives its name to the flag
		return unboundFlag(cmd, path[len(path)-2])
	}
	if f := cmd.LocalFlags().Lookup(strings.ReplaceAll(last, "_", "-")); f != nil && f.Changed && refused.Value != "" &&
		f.Value.String() == refused.Value {
		return "--" + f.Name
	}
	return ""
}

// unboundFlag returns the command's own flag that has the name of a field; else "".
func unboundFlag(cmd *cobra.Command, field string) string {
	name := strings.ReplaceAll(field[strings.LastIndexByte(field, '.')+1:], "_", "-")
	if cmd.LocalFlags().Lookup(name) == nil {
		return ""
	}
	return "--" + name
}

// argumentOf returns the name and the place of the positional argument that the daemon has refused; place -1: none. An
// id has the name of its noun.
func argumentOf(cmd *cobra.Command, refused *api.Error) (string, int) {
	names, found, at := strings.Fields(cmd.Use), "", -1
	for i, arg := range cmd.Flags().Args() {
		if arg != refused.Value || arg == "" || len(names) < 2 {
			continue
		}
		name := strings.ToLower(strings.Trim(names[min(1+i, len(names)-1)], "[].|"))
		if at < 0 || strings.HasSuffix("."+refused.Field, "."+name) {
			found, at = name, i
		}
	}
	if found == "id" && cmd.HasParent() {
		found = cmd.Parent().Name()
	}
	return found, at
}

// sayWhatExists adds to an error about a missing object which ones there are, and which of them may be meant: what
// completion offers for the flag, or for the positional argument at a place.
func (a *app) sayWhatExists(cmd *cobra.Command, refused *api.Error, flag string, argument int) {
	offer, args := cmd.ValidArgsFunction, cmd.Flags().Args()
	if flag != "" {
		offer, _ = cmd.GetFlagCompletionFunc(flag)
	} else if argument >= 0 {
		args = args[:argument]
	} else {
		return
	}
	if offer == nil {
		return
	}
	offered, _ := offer(cmd, args, "")
	var names []string
	for _, line := range offered {
		name, _, _ := strings.Cut(line, "\t")
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) == 0 || slices.Contains(names, refused.Value) {
		return
	}
	refused.Message = strings.TrimSuffix(refused.Message, "; valid: "+refused.Valid)
	refused.Valid = someOf(names)
	if _, err := strconv.ParseUint(refused.Value, 10, 64); err == nil {
		return // a number is near to every other
	}
	if near := nearest(refused.Value, names); len(near) > 0 && len(near) <= 3 {
		refused.Message += ", did you mean " + strings.Join(near, " or ") + "?"
	}
}

const manyWords = 13 // more than this are not listed in an error

// flagNames lists the command's flags, or says where they are listed.
func flagNames(cmd *cobra.Command) string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return fewWords(cmd, names, " ")
}

// fewWords joins words, or says where they are listed if they are many.
func fewWords(cmd *cobra.Command, words []string, between string) string {
	if len(words) > manyWords {
		return "see " + cmd.CommandPath() + " --help"
	}
	return strings.Join(words, between)
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
	valid := fewWords(cmd, names, ", ")
	if len(names) <= manyWords {
		valid += "; more: " + cmd.CommandPath() + " --help"
	}
	if len(args) == 0 {
		return input.Errorf(what, valid, "missing")
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return input.Errorf(what, valid, "'%s' is unknown, did you mean %s?", args[0], strings.Join(near, " or "))
	}
	return input.Errorf(what, valid, "'%s' is unknown", args[0])
}
