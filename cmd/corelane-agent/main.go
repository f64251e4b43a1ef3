// SPDX-License-Identifier: Apache-2.0

// corelane-agent guards a data plane's CPUs as a service; internal/agent does the work.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/corelane/corelane/internal/agent"
	"github.com/corelane/corelane/internal/api"
	"github.com/corelane/corelane/internal/cli"
	"github.com/corelane/corelane/internal/cores"
	"github.com/corelane/corelane/internal/guard"
	"github.com/corelane/corelane/internal/input"
)

const head = `corelane-agent: guards the CPUs of a Corelane data plane

usage: corelane-agent [OPTION...]

`

const tail = `
Each drift is a line on standard output, which systemd keeps in its journal. 'corelane cores guard' does the same in a
terminal, 'corelane cores verify' checks once. Exit code: 0 ended by a signal, 1 failed, 2 wrong input.
`

func main() {
	o := agent.Options{Dial: cli.Dial}
	asJSON, version := false, false
	f := pflag.NewFlagSet("corelane-agent", pflag.ContinueOnError)
	f.SortFlags = false
	f.Usage = func() { fmt.Print(head, f.FlagUsages(), tail) }
	f.StringVar(&o.Plan, "plan", "", "the plan, a file of 'corelane plan'; default: "+
		agent.DefaultPlan+" if it exists, else derived from the machine's settings")
	f.BoolVar(&o.Repair, "repair", false, "undo drift; default: only report it")
	f.DurationVar(&o.Every, "every", time.Second, "interval between two checks")
	f.StringVar(&o.NodeFile, "node-file", "",
		"apply this configuration once to each corelaned that starts (docs/node-yaml.md)")
	f.StringVar(&o.Socket, "socket", api.DefaultSocket, "socket of corelaned")
	f.StringVar(&o.Journal, "journal", cores.Dir,
		"directory where repairs are logged for 'corelane cores rollback', and which corelaned has the node file")
	f.StringVar(&o.Fleet.Intent, "intent", "",
		"directory with the files that make this node a member of a fleet (docs/guide.md); default: it is none")
	f.StringVar(&o.Fleet.Socket, "agent-socket", api.AgentSocket,
		"with --intent: where this program answers 'corelane bgp' and others")
	f.BoolVar(&asJSON, "json", false, "print events as JSON, one per line")
	f.BoolVar(&version, "version", false, "print the version")
	switch err := f.Parse(os.Args[1:]); {
	case errors.Is(err, pflag.ErrHelp):
		os.Exit(0)
	case err != nil:
		fail(input.Errorf("corelane-agent", "--help lists them", "%v", err))
	case f.NArg() > 0:
		fail(input.Errorf("corelane-agent", "options only", "'%s' is not an option", f.Arg(0)))
	case version:
		fmt.Println("corelane-agent", cli.Version)
		os.Exit(0)
	}
	o.Fleet.Journal = o.Journal
	o.Report = func(e guard.Event) {
		if asJSON {
			_ = json.NewEncoder(os.Stdout).Encode(e)
			return
		}
		fmt.Println(e)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	agent.LimitMemory("/")
	if err := agent.Run(ctx, o); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	if input.Is(err) {
		os.Exit(2)
	}
	os.Exit(1)
}
