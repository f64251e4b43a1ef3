// SPDX-License-Identifier: Apache-2.0

// Package cli is the corelane command: one file per noun, and the machinery that they share. A noun consists of columns
// and calls (table.go). Its flags are fields of its message (command.go), and its details show the message (detail.go).
package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"google.golang.org/grpc/codes"

	"github.com/corelane/corelane/internal/api"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/state"
)

// Version of this program; the linker sets it.
var Version = "devel"

// commands lists the nouns and the other commands that follow "corelane".
func (a *app) commands() []*cobra.Command {
	return []*cobra.Command{
		newPortCmd(a),
		newWorkerCmd(a),
		newThreadCmd(a),
		newVrfCmd(a),
		newRouteCmd(a),
		newNexthopCmd(a),
		newLabelCmd(a),
		newVniCmd(a),
		newFlowCmd(a),
		newMeterCmd(a),
		newMirrorCmd(a),
		newNatCmd(a),
		newServiceCmd(a),
		newEndpointCmd(a),
		newBridgeCmd(a),
		newMacCmd(a),
		newNeighborCmd(a),
		newHostCmd(a),
		newRuleListCmd(a),
		newRuleCmd(a),
		newAddressGroupCmd(a),
		newDropsCmd(a),
		newStatsCmd(a),
		newGraphCmd(a),
		newEventCmd(a),
		newBgpCmd(a),
		newInstanceCmd(a),
		newSegmentCmd(a),
		newAttachmentCmd(a),
		newWhyNotCmd(a),
		newExplainCmd(a),
		newDebugCmd(a),
		newPlanCmd(a),
		newStatusCmd(a),
		newSettingsCmd(a),
		newRolesCmd(a),
		newCaptureCmd(a),
		newTraceCmd(a),
		newTopologyCmd(a),
		newApplyCmd(a),
		newExportCmd(a),
		newUpgradeCmd(a),
		newLabCmd(a),
		newBenchCmd(a),
		newCoresCmd(a),
		newCompletionCmd(),
		newManCmd(),
	}
}

// App is the command, ready to run.
type App struct{ app }

// New makes a command that writes to stdout and stderr and reaches the daemon through dial.
func New(stdout, stderr io.Writer, dial Dialer) *App {
	return &App{app{stdin: os.Stdin, stdout: stdout, stderr: stderr, dial: dial}}
}

// Run executes one command line, without the program's name, and returns the exit code.
func (a *App) Run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil {
		fmt.Fprintln(a.stderr, a.inOwnWords(cmd, err))
	}
	if a.client != nil {
		_ = a.client.Close()
	}
	return exitCode(err)
}

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1   // an object is missing, exists already or is in use, or there is nothing to show
	exitUsage       = 2   // wrong input, found here or by the daemon; no permission; or no daemon
	exitHalf        = 3   // something was changed, could not be finished, and could not be taken back
	exitInterrupted = 130 // as in shells
)

// ErrInterrupted is the cause of a context that a signal ended.
var ErrInterrupted = errors.New("interrupted")

func exitCode(err error) int {
	var gone *api.Unavailable
	var refused *api.Error
	var half *state.BackError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &half):
		return exitHalf
	case errors.As(err, &refused) && (refused.Code == codes.InvalidArgument || refused.Code == codes.PermissionDenied):
		return exitUsage
	case input.Is(err), errors.As(err, &gone), state.IsInput(err):
		return exitUsage
	case errors.Is(err, ErrInterrupted):
		return exitInterrupted
	}
	return exitFailed
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "corelane",
		Short: "Look at and change a running corelaned, the virtual router",
		Long: `corelane shows and changes what a running corelaned does: its ports, workers, tables, counters and
packets.

Output is a table that is folded to the width of the terminal, with -o wide one as wide as it is, or with -o json one
JSON object per line. What corelaned has is shown as the messages of its API,
with their field names.
Counters only grow; --watch shows them as rates per second.

Each object belongs to the owner that the client which added it has named, and only clients of that owner change it:
'api' is the owner of what this command and node files add, 'agent' that of corelane-agent. CORELANE_OWNER=agent in the
environment makes this command act for the agent.

Root may do everything; 'corelane roles' lists what the members of the daemon's groups may do.

Exit code: 0 done, 1 not possible now or nothing found, 2 wrong input, no permission or no daemon, 3 apply was not
finished and could not be taken back.`,
		Example: `  corelane status
  corelane port list --watch
  corelane drops --by-port
  corelane route add 10.0.0.0/8 --vrf red --nexthop 5`,
		Version:           Version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		TraverseChildren:  true, // "corelane --socket X port add ... --socket Y" has two of them
		Args:              cobra.ArbitraryArgs,
		RunE:              noVerb,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)

	socket := os.Getenv("CORELANE_SOCKET")
	if socket == "" {
		socket = api.DefaultSocket
	}
	f := root.PersistentFlags()
	f.StringVar(&a.socket, "socket", socket, "socket of the daemon; also CORELANE_SOCKET in the environment")
	f.Lookup("socket").DefValue = api.DefaultSocket
	f.StringVar(&a.agentSocket, "agent-socket", cmp.Or(os.Getenv("CORELANE_AGENT_SOCKET"), api.AgentSocket),
		agentSocketHelp)
	f.Lookup("agent-socket").DefValue = api.AgentSocket
	f.VarP(&outputValue{&a.output}, "output", "o", "table, wide (a table that is not folded to the terminal), or json "+
		"(one object per line)")
	f.BoolVar(&a.noHeaders, "no-headers", false, "print tables without the header line")
	a.completeFlag(root, "output", fixed(outputs...))
	root.AddCommand(a.commands()...)
	a.foldHelp(root)
	return root
}

var outputs = []string{"table", "wide", "json"}

// outputValue takes what -o accepts.
type outputValue struct{ output *string }

func (v *outputValue) String() string { return "table" }
func (v *outputValue) Type() string   { return strings.Join(outputs, "|") }

func (v *outputValue) Set(text string) error {
	if !slices.Contains(outputs, text) {
		return input.Errorf("output", strings.Join(outputs, ", "), "'%s' is unknown", text)
	}
	*v.output = text
	return nil
}

// isTerminal tells whether w is a screen that can be redrawn.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// tableWidth is what Fit of a table takes: tables are narrow on terminals only, and not with -o wide.
func (a *app) tableWidth() int {
	if a.output == "wide" || !isTerminal(a.stdout) {
		return 0
	}
	return a.columns()
}

// buffered runs f with a buffer before w, so that a million routes do not cost a million system calls.
func buffered(w io.Writer, f func(w *bufio.Writer) error) error {
	b := bufio.NewWriterSize(w, 64<<10)
	err := f(b)
	if ferr := b.Flush(); err == nil {
		err = ferr
	}
	return err
}
