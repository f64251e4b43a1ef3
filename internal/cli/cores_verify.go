// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cores"
	"github.com/corelane/corelane/internal/explain"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/procfs"
	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/verify"
)

// errVerifyFailed ends 'cores verify' with status 1; what failed has been printed.
var errVerifyFailed = errors.New("at least one check FAILs: packets are late or lost, or the machine does not run " +
	"the plan")

type verifyFlags struct {
	plan, root string
	window     time.Duration
	all        bool
}

func newCoresVerify(a *app) *cobra.Command {
	var o verifyFlags
	cmd := verb("verify", "Check whether anything disturbs the data plane's CPUs", `  corelane cores verify
  corelane cores verify --plan /etc/corelane/plan.json --all
  corelane cores verify --root compute-7.tar.gz -o json`,
		func(ctx context.Context, _ []string) error { return a.verifyCores(ctx, o) })
	cmd.Long = `Compare the machine with a plan of its CPUs: kernel arguments, threads, interrupts, RPS and XPS,
control groups, TuneD, systemd, irqbalance, Nova, kubelet, guests, memory and settings of the kernel. If a daemon
answers, its ports are checked too (rules need a source check), and whether enough hugepages are free for the daemon
that takes over at an upgrade or restart. Without --plan
the intent is derived from the machine: the CPUs on which its data plane polls (corelaned, vRouter, OVS, VPP, DPVS),
and those that its kernel isolates.

Each check is PASS, WARN (a cost now and then, or after the next restart), FAIL (packets are late or lost, or the
machine does not run the plan) or UNKNOWN (something could not be read). A plan for another machine is
refused. Each result except PASS has its evidence, why
it matters, the source of the rule, and the commands that fix it. Nothing is changed.

Exit code: 0 no check FAILs, 1 at least one FAILs, 2 wrong input.`
	f := cmd.Flags()
	f.StringVar(&o.plan, "plan", "",
		"the plan, a file that 'corelane plan' wrote; default: derived from the machine's settings")
	f.StringVar(&o.root, "root", "/", "another machine: a directory, or an archive of 'corelane topology capture'")
	f.DurationVar(&o.window, "window", time.Second, "how long counters of the running machine are watched")
	f.BoolVar(&o.all, "all", false, "also print the evidence of checks that PASS")
	_ = cmd.MarkFlagFilename("plan", "json", "yaml")
	return cmd
}

func (a *app) verifyCores(ctx context.Context, o verifyFlags) error {
	if o.window <= 0 || o.window > time.Hour {
		return input.Errorf("--window", "1ms to 1h", "%v is out of range", o.window)
	}
	p, err := a.planOrNone(o.plan)
	if err != nil {
		return err
	}
	m, err := readMachine(ctx, o.root, o.window)
	if err != nil {
		return err
	}
	if p != nil && p.Topology != "" && p.Machine != m.Hostname {
		if err := p.Fits(m); err != nil { // checks would be about CPUs that are not there
			return err
		}
	}
	if p != nil {
		if err := cores.Inside(o.plan, m, p); err != nil {
			return err
		}
	}
	in := verify.IntentOf(m, p)
	in.File = o.plan
	if in.None() && len(m.Guests) == 0 {
		return input.Errorf("--plan", "a file that 'corelane plan' wrote",
			"missing, and the machine's settings show no intent: no data plane polls on a CPU of its own, no CPU is "+
				"isolated, and there are no guests")
	}
	findings := append(verify.CheckFor(m, p, in), a.verifyDaemon(ctx, o.root, m)...)
	if err := a.printFindings(findings, o.all); err != nil {
		return err
	}
	if verify.Count(findings)[verify.Fail] > 0 {
		return errVerifyFailed
	}
	return nil
}

// verifyDaemon checks the running daemon, if there is one: its ports, and what its successor will need.
func (a *app) verifyDaemon(ctx context.Context, root string, m *topology.Machine) []verify.Finding {
	if root != "/" {
		return nil
	}
	var ports []*apiv1.Port
	err := portsNamed(a, "")(ctx, func(p *apiv1.Port) error {
		ports = append(ports, p)
		return nil
	})
	if err != nil {
		return nil
	}
	findings := []verify.Finding{verify.Ports(ports)}
	if pid, err := explain.Listener(a.socket); err == nil {
		findings = append(findings, verify.Successor(verify.ReserveFor(procfs.Host, pid), m))
	}
	return findings
}

// planOrNone reads a plan; an empty name is none.
func (a *app) planOrNone(file string) (*plan.Plan, error) {
	if file == "" {
		return nil, nil
	}
	return a.readPlan(file)
}

// readMachine reads this machine over a span of time, or a captured one.
func readMachine(ctx context.Context, root string, window time.Duration) (*topology.Machine, error) {
	if root == "/" {
		return topology.ReadOver(ctx, window)
	}
	return topology.Read(root)
}

func (a *app) printFindings(findings []verify.Finding, all bool) error {
	return buffered(a.stdout, func(w *bufio.Writer) error {
		if a.json() {
			enc := json.NewEncoder(w)
			for _, f := range findings {
				if err := enc.Encode(f); err != nil {
					return err
				}
			}
			return nil
		}
		group := ""
		for _, f := range findings {
			if f.Group != group {
				group = f.Group
				fmt.Fprintf(w, "%s\n", group)
			}
			writeFinding(w, f, all)
		}
		n := verify.Count(findings)
		_, err := fmt.Fprintf(w, "\n%d checks: %d FAIL, %d WARN, %d UNKNOWN, %d PASS.\n", len(findings), n[verify.Fail],
			n[verify.Warn], n[verify.Unknown], n[verify.Pass])
		return err
	})
}

// shownItems is how much evidence of one check is printed; -o json has all.
const shownItems = 6

func writeFinding(w *bufio.Writer, f verify.Finding, all bool) {
	fmt.Fprintf(w, "  %-8s%s\n", f.Verdict, f.Title)
	if f.Verdict == verify.Pass && !all {
		return
	}
	const indent = "          "
	shown := 0
	for _, i := range f.Evidence {
		if !all && f.Verdict > verify.Unknown && i.Verdict <= verify.Unknown {
			continue // evidence that passes, in a check that does not
		}
		if shown++; shown <= shownItems || all {
			fmt.Fprintf(w, "%s- %s\n", indent, i.Text)
		}
	}
	if more := shown - shownItems; more > 0 && !all {
		fmt.Fprintf(w, "%s- and %d more (--all)\n", indent, more)
	}
	if f.Verdict > verify.Unknown {
		fmt.Fprintf(w, "%swhy: %s\n%s     (%s)\n", indent, f.Why, indent, f.Source)
		writeFixes(w, indent, f.Fix, all)
	}
}

func writeFixes(w *bufio.Writer, indent string, commands []string, all bool) {
	for n, command := range commands {
		if n == shownItems && len(commands) > shownItems+2 && !all {
			// The commands that fix everything come last.
			fmt.Fprintf(w, "%sfix: ... %d more commands (--all)\n", indent, len(commands)-shownItems)
			return
		}
		fmt.Fprintf(w, "%sfix: %s\n", indent, strings.TrimSpace(command))
	}
}
