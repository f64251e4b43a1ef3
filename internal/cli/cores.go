// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cores"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

func newCoresCmd(a *app) *cobra.Command {
	return noun("cores", "This machine's CPUs: compare them with a plan, change them, and keep them so",
		newCoresDiff(a), newCoresApply(a), newCoresVerify(a), newCoresGuard(a), newCoresRollback(a))
}

// coresFlags are the flags of commands that apply a plan.
type coresFlags struct {
	root, dir, rebootFiles string
	spare                  []string
	noCgroups              bool
	stopIrqbalance         bool
	install                bool
	keepGoing, dryRun      bool
	commands               bool
}

func (f *coresFlags) bindRoot(cmd *cobra.Command) {
	s := cmd.Flags()
	s.StringVar(&f.root, "root", "/", "directory of a captured machine, for a rehearsal on its files")
	s.StringVar(&f.dir, "state-dir", "", "where the journal is kept; default: "+cores.Dir+" below --root")
	_ = cmd.MarkFlagDirname("root")
	_ = cmd.MarkFlagDirname("state-dir")
}

func (f *coresFlags) bind(cmd *cobra.Command) {
	f.bindRoot(cmd)
	s := cmd.Flags()
	s.StringArrayVar(&f.spare, "spare", nil,
		"leave threads alone whose name, or whose process's name, matches this regular expression; may be repeated")
	s.BoolVar(&f.noCgroups, "no-cgroups", false, "make no cgroups: affinities only")
	s.BoolVar(&f.stopIrqbalance, "stop-irqbalance", false,
		"stop irqbalance, which spreads interrupts again (systemctl stop)")
	s.StringVar(&f.rebootFiles, "reboot-files", "",
		"directory below --root for the files of the next boot; default: 'reboot' in the state directory")
	s.BoolVar(&f.install, "install", false, "install the files of the next boot at their final paths")
	cmd.ValidArgsFunction = nil // files
}

func (f *coresFlags) stateDir() string {
	if f.dir != "" {
		return f.dir
	}
	return filepath.Join(f.root, cores.Dir)
}

// intent is a plan, its machine, and the changes that the plan needs there.
type intent struct {
	machine *topology.Machine
	plan    *plan.Plan
	options cores.Options
	changes []cores.Change // at once
	lasting []cores.Change // files of the next boot
	missing []string       // files that could not be prepared, with the reason
	dir     string         // of the files
}

func (a *app) coresIntent(f *coresFlags, name string) (*intent, error) {
	if f.install && f.rebootFiles != "" {
		return nil, input.Errorf("--install", "one of --install, --reboot-files", "the files cannot be in both places")
	}
	p, err := a.readPlan(name)
	if err != nil {
		return nil, err
	}
	in := &intent{plan: p, options: cores.Options{Self: os.Getpid(), Cgroups: !f.noCgroups,
		StopIrqbalance: f.stopIrqbalance}}
	if in.options.Spare, err = spares(f.spare); err != nil {
		return nil, err
	}
	if in.machine, err = topology.Read(f.root); err != nil {
		return nil, err
	}
	if err := cores.Check(name, in.machine, p); err != nil {
		return nil, err
	}
	in.changes = cores.Changes(in.machine, p, in.options)
	files, missing := cores.Lasting(in.machine, p)
	switch in.missing = missing; {
	case f.install:
		in.dir = "/"
	case f.rebootFiles != "":
		in.dir = f.rebootFiles
	default:
		in.dir = filepath.Join(cores.Dir, cores.FilesDir)
	}
	in.lasting, err = cores.Place(f.root, in.dir, files)
	return in, err
}

// spares joins expressions into one predicate: the threads to leave alone.
func spares(expressions []string) (func(topology.Thread) bool, error) {
	var list []*regexp.Regexp
	for _, e := range expressions {
		r, err := regexp.Compile(e)
		if err != nil {
			return nil, input.Errorf("--spare", "a regular expression, ^rte_", "%v", err)
		}
		list = append(list, r)
	}
	return func(t topology.Thread) bool {
		for _, r := range list {
			if r.MatchString(t.Name) || r.MatchString(t.Process) {
				return true
			}
		}
		return false
	}, nil
}

// readPlan reads a plan that 'corelane plan' wrote.
func (a *app) readPlan(name string) (*plan.Plan, error) {
	if name != "-" {
		return plan.Load(name)
	}
	text, err := io.ReadAll(a.stdin)
	if err != nil {
		return nil, input.Errorf("standard input", "a plan", "%v", err)
	}
	return plan.Parse("standard input", text)
}

// moveWorker tells the daemon a worker's CPU.
func (a *app) moveWorker(ctx context.Context, id, cpu int) error {
	req := &apiv1.WorkerSetRequest{Worker: &apiv1.Worker{Id: uint32(id), Cpu: uint32(cpu)}, Fields: []string{"cpu"}}
	_, err := call(ctx, a, apiv1.NewWorkersClient, apiv1.WorkersClient.Set, req)
	return err
}
