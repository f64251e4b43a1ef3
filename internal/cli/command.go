// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/containerd/ttrpc"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/corelane/corelane/internal/api"
	"github.com/corelane/corelane/internal/cli/protoflag"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/limits"
)

// What the commands of all nouns are made of: noun and verb, flags that stand for fields of a request, the call, and
// its answer.

// Dialer connects to the daemon on a socket.
type Dialer func(ctx context.Context, socket string) (*api.Client, error)

// OwnerVariable names the owner whose objects the command changes, if it is not the default one.
const OwnerVariable = "CORELANE_OWNER"

// Dial is the Dialer of the real command.
func Dial(ctx context.Context, socket string) (*api.Client, error) {
	return api.DialAs(ctx, socket, "corelane "+Version, os.Getenv(OwnerVariable))
}

// app is one run of the command.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	dial           Dialer
	client         *api.Client

	socket      string
	agentSocket string
	output      string
	noHeaders   bool
	interval    time.Duration // of --watch, 0 without
	plain       bool          // no screen control, even on a terminal
}

func (a *app) json() bool { return a.output == "json" }

// Other words that people type for a verb.
var aliases = map[string][]string{"list": {"ls"}, "del": {"delete", "rm"}}

// noun makes the command that holds a noun's verbs.
func noun(use, short string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: noVerb}
	for _, v := range verbs {
		v.Aliases = aliases[v.Name()]
	}
	cmd.AddCommand(verbs...)
	return cmd
}

// verb makes a command. use names its positional arguments: "add PORT [ADDRESS] NAME...".
func verb(use, short, example string, run func(ctx context.Context, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: example, Args: arguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), args) },
	}
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

// add adds the flag, which writes into msg. It returns the field.
func (f fieldFlag) add(flags *pflag.FlagSet, msg proto.Message) protoreflect.FieldDescriptor {
	field := protoflag.Field(msg, protoreflect.Name(f.fieldName()))
	flag := flags.VarPF(protoflag.New(msg, field), f.flag, "", protoflag.Help(f.help, field))
	flag.DefValue = ""
	if field.Kind() == protoreflect.BoolKind {
		flag.NoOptDefVal = "true"
	}
	return field
}

// bind adds flags that write into msg. Their help includes the limits that api/*.proto state for the field.
func (a *app) bind(cmd *cobra.Command, msg proto.Message, flags []fieldFlag) {
	for _, f := range flags {
		field := f.add(cmd.Flags(), msg)
		complete := f.names
		if field.Kind() == protoreflect.EnumKind {
			complete = fixed(limits.EnumNames(field.Enum())...)
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

func (a *app) connect(ctx context.Context) (*api.Client, error) {
	if a.client != nil {
		return a.client, nil
	}
	c, err := a.dial(ctx, a.socket)
	a.client = c
	return c, err
}

// call is api.Call on the command's connection.
func call[S, Req, Resp any](ctx context.Context, a *app, service func(*ttrpc.Client) S,
	method func(S, context.Context, Req) (Resp, error), req Req) (Resp, error) {
	c, err := a.connect(ctx)
	if err != nil {
		var none Resp
		return none, err
	}
	return api.Call(ctx, c, service, method, req)
}

// stream is api.Stream on the command's connection.
func stream[S, Req, T any, R interface{ Recv() (T, error) }](ctx context.Context, a *app, service func(*ttrpc.Client) S,
	method func(S, context.Context, Req) (R, error), req Req, each func(T) error) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	return api.Stream(ctx, c, service, method, req, each)
}

// done ends a changing command: silent, or with -o json the object as it is now.
func (a *app) done(obj proto.Message, err error) error {
	if err != nil || !a.json() {
		return err
	}
	return writeJSON(a.stdout, obj)
}
