// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

func newPlanShow(a *app) *cobra.Command {
	cmd := verb("show FILE", "Show a plan", "  corelane plan show plan.json\n  corelane plan show plan.json -o json",
		func(_ context.Context, args []string) error {
			p, err := plan.Load(args[0])
			if err != nil {
				return err
			}
			return a.planTable(p)
		})
	cmd.ValidArgsFunction = nil // files
	return cmd
}

func newPlanExplain(a *app) *cobra.Command {
	cmd := verb("explain FILE CPU", "Say why a CPU has its role, and what may run there",
		"  corelane plan explain plan.json 21", func(_ context.Context, args []string) error {
			return a.planExplain(args[0], args[1])
		})
	cmd.ValidArgsFunction = nil
	return cmd
}

func newPlanCheck(a *app) *cobra.Command {
	var root string
	cmd := verb("check FILE", "Check a plan, edited by hand or not, against its machine",
		"  corelane plan check plan.json\n  corelane plan check plan.json --root compute-7.tar.gz",
		func(_ context.Context, args []string) error { return a.planCheck(args[0], root) })
	cmd.Long = `Check a plan against all rules that 'corelane plan make' follows, and against this machine: same
cores, nodes and network devices. Each broken rule is a line, with what would be right. Exit code: 0 right, 2 wrong.`
	cmd.ValidArgsFunction = nil
	planRoot(cmd.Flags(), &root)
	return cmd
}

// planTable shows a plan: roles with reasons, workers, who shares what, warnings, alternatives.
func (a *app) planTable(p *plan.Plan) error {
	if a.json() {
		return json.NewEncoder(a.stdout).Encode(p)
	}
	if err := a.planRoles(p); err != nil {
		return err
	}
	if err := a.planWorkers(p); err != nil {
		return err
	}
	return buffered(a.stdout, func(w *bufio.Writer) error {
		fmt.Fprintf(w, "\nisolated %s; interrupts %s; service threads %s; control threads %s", none(p.Isolated), p.IRQs,
			p.ServiceCPUs(), p.ControlCPUs())
		if !p.Of(plan.Guests).Empty() {
			fmt.Fprintf(w, "; emulator threads %s", p.EmulatorCPUs())
		}
		fmt.Fprintln(w)
		for _, h := range p.Hugepages {
			at := "each node"
			if h.Node >= 0 {
				at = fmt.Sprintf("node %d", h.Node)
			}
			fmt.Fprintf(w, "hugepages of %d MiB: %d on %s\n", h.KiB>>10, h.Pages, at)
		}
		for i, text := range p.Warnings {
			fmt.Fprint(w, optional("\n", map[bool]string{true: "Warnings:\n"}[i == 0]), "- ", text, "\n")
		}
		for i, o := range p.Alternatives {
			fmt.Fprint(w, optional("\n", map[bool]string{true: "Alternatives:\n"}[i == 0]), "- ", o.What, "\n  gain: ",
				o.Gain, "\n  cost: ", o.Cost, "\n")
		}
		return nil
	})
}

func none(s cpuset.Set) string {
	if s.Empty() {
		return "none"
	}
	return s.String()
}

func (a *app) planRoles(p *plan.Plan) error {
	return a.rows([]string{"ROLE", "CPUS", "WHY"}, func(add func(...string) error) error {
		for _, g := range p.Groups() {
			if err := add(string(g.Role), g.CPUs.String(), g.Why); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *app) planWorkers(p *plan.Plan) error {
	if len(p.Workers) == 0 {
		return nil
	}
	fmt.Fprintln(a.stdout)
	return a.rows([]string{"WORKER", "ROLE", "CPU", "NODE", "RECEIVES FOR"}, func(add func(...string) error) error {
		for _, w := range p.Workers {
			target := "-"
			if w.Target >= 0 {
				target = "worker " + strconv.Itoa(w.Target)
			}
			if err := add(strconv.Itoa(w.ID), string(w.Role), strconv.Itoa(w.CPU), strconv.Itoa(w.Node),
				target); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *app) planExplain(file, cpu string) error {
	p, err := plan.Load(file)
	if err != nil {
		return err
	}
	var all []int
	for _, c := range p.CPUs {
		all = append(all, c.ID)
	}
	id, err := strconv.Atoi(cpu)
	if err != nil || !slices.Contains(all, id) {
		return input.Errorf("cpu", cpuset.Of(all...).String(), "'%s' is not a CPU of the plan", cpu)
	}
	if a.json() {
		return json.NewEncoder(a.stdout).Encode(map[string]any{"cpu": id, "explanation": p.Explain(id)})
	}
	_, err = fmt.Fprintln(a.stdout, strings.Join(p.Explain(id), "\n"))
	return err
}

func (a *app) planCheck(file, root string) error {
	p, err := plan.Load(file)
	if err != nil {
		return err
	}
	m, err := topology.Read(root)
	if err != nil {
		return err
	}
	if err := p.Fits(m); err != nil {
		return err
	}
	problems := plan.Validate(m, p)
	if err := a.planProblems(problems); err != nil {
		return err
	}
	switch {
	case len(problems) > 0:
		return input.Errorf(file, "", "the plan breaks rules: %d", len(problems))
	case !a.json():
		fmt.Fprintf(a.stdout, "The plan is right for %s.\n", m.Hostname)
	}
	return nil
}

func (a *app) planProblems(list []plan.Problem) error {
	if a.json() {
		return jsonLines(a.stdout, list)
	}
	if len(list) == 0 {
		return nil
	}
	return a.rows([]string{"RULE", "CPUS", "PROBLEM", "VALID"}, func(add func(...string) error) error {
		for _, x := range list {
			if err := add(x.Rule, x.CPUs.String(), x.Text, x.Valid); err != nil {
				return err
			}
		}
		return nil
	})
}
