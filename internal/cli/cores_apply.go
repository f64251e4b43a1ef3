// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/cores"
	"github.com/corelane/corelane/internal/plan"
)

func newCoresDiff(a *app) *cobra.Command {
	f := &coresFlags{}
	cmd := verb("diff PLAN", "Show what a plan would change on this machine",
		"  corelane cores diff plan.json\n  corelane cores diff plan.json --commands\n  corelane cores diff "+
			"plan.json --root captured-machine",
		func(ctx context.Context, args []string) error {
			in, err := a.coresIntent(f, args[0])
			if err != nil {
				return err
			}
			return a.showIntent(in, f)
		})
	cmd.Long = `Show what a plan needs to change on this machine: threads, interrupts, queues, settings of the kernel,
cgroups, and the files of the next boot. Each line says when it takes effect and why it matters; nothing is changed.
--commands prints commands that do the same as 'corelane cores apply', to run by hand.`
	f.bind(cmd)
	cmd.Flags().BoolVar(&f.commands, "commands", false, "print the commands that do it by hand")
	return cmd
}

func newCoresApply(a *app) *cobra.Command {
	f := &coresFlags{}
	cmd := verb("apply PLAN", "Make this machine match a plan",
		"  corelane cores apply plan.json --dry-run\n  corelane cores apply plan.json\n  corelane cores apply "+
			"plan.json --install --spare '^ceph-'",
		func(ctx context.Context, args []string) error { return a.coresApply(ctx, f, args[0]) })
	cmd.Long = `Show the difference, as 'corelane cores diff' does, and apply it. Some changes take effect at once:
CPUs of threads, of interrupts and of queues, settings of the kernel, cpusets. Changes that need a reboot are written
into files; --install puts these files at their final paths. The end of the output says what still disturbs the
workers' CPUs until then, measured there.

Each change is logged in a journal before it is made, so that 'corelane cores rollback' can restore everything, even
if apply was killed. The first change that fails ends apply, which then undoes its changes (exit status 1);
--keep-going continues instead. Changes that the kernel does not allow (interrupts that their driver manages, kernel
threads that every CPU has) are reported, but are not failures. A plan for another machine, or missing privileges,
change nothing (exit status 2).`
	f.bind(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show the difference and change nothing")
	cmd.Flags().BoolVar(&f.keepGoing, "keep-going", false, "go on after a change that fails")
	return cmd
}

func newCoresRollback(a *app) *cobra.Command {
	f := &coresFlags{}
	cmd := verb("rollback", "Undo all changes of 'corelane cores apply'", "  corelane cores rollback",
		func(ctx context.Context, _ []string) error { return a.coresRollback(ctx, f) })
	cmd.Long = `Restore everything that 'corelane cores apply' changed, in one or several runs, the last change first.
It reads the journal of apply, even one that ends in the middle because apply was killed. Values that something else
has changed since are restored, too, and reported. Threads that have ended need nothing; threads that started since
get the CPUs that their parents had. After a reboot only files are restored: the other changes are gone. Without a
journal there is nothing to do (exit status 0). Changes that could not be undone stay in the journal (exit status 1),
and rollback can be repeated.`
	f.bindRoot(cmd)
	return cmd
}

func (a *app) coresApply(ctx context.Context, f *coresFlags, name string) error {
	in, err := a.coresIntent(f, name)
	if err != nil {
		return err
	}
	if f.dryRun {
		return a.showIntent(in, f)
	}
	site := a.site(f)
	if err := site.Permitted(in.changes); err != nil {
		return err
	}
	if !a.json() {
		if err := a.showIntent(in, f); err != nil {
			return err
		}
	}
	lines := &outcomeLines{app: a}
	site.Report = lines.add
	err = site.Carry(ctx, in.machine, in.plan, in.options, in.lasting)
	lines.end()
	if err != nil {
		return err
	}
	return a.showRemains(ctx, in, f)
}

func (a *app) site(f *coresFlags) *cores.Site {
	return &cores.Site{Root: f.root, Dir: f.stateDir(), KeepGoing: f.keepGoing, MoveWorker: a.moveWorker}
}

func (a *app) coresRollback(ctx context.Context, f *coresFlags) error {
	lines := &outcomeLines{app: a}
	site := a.site(f)
	site.Report = lines.add
	err := site.Rollback(ctx)
	lines.end()
	if err == nil && lines.count == 0 && !a.json() {
		_, err = fmt.Fprintln(a.stdout, "Nothing to put back.")
	}
	return err
}

// showIntent shows what is to be changed.
func (a *app) showIntent(in *intent, f *coresFlags) error {
	all := append(append([]cores.Change{}, in.changes...), in.lasting...)
	switch {
	case a.json():
		return jsonLines(a.stdout, all)
	case f.commands:
		return commandList(a.stdout, all)
	case len(all) == 0:
		_, err := fmt.Fprintln(a.stdout, "No difference.")
		return err
	}
	return a.rows([]string{"WHEN", "WHAT", "IS", "WANTED", "WHY"}, func(add func(...string) error) error {
		for _, group := range alike(all) {
			c := group[0]
			if c.Kind == cores.Folder {
				continue
			}
			is, shall := values(c)
			if err := add(string(c.When), what(group), is, shall, c.Why); err != nil {
				return err
			}
		}
		return nil
	})
}

func commandList(w io.Writer, all []cores.Change) error {
	for _, c := range all {
		format, text := "%s\n", c.ByHand
		switch {
		case c.Kind == cores.Note:
			format = "# %s\n"
		case c.Kind == cores.File:
			text = "# write /" + c.Path
		}
		if text != "" {
			if _, err := fmt.Fprintf(w, format, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// values are the old and the new value of a change, short enough for a table.
func values(c cores.Change) (is, shall string) {
	switch c.Kind {
	case cores.File:
		is, shall = "differs", "written"
		if c.Old == "" {
			is = "none"
		}
		return is, shall
	case cores.Group:
		return "none", "made"
	}
	return dash(c.Old), dash(c.New)
}

func dash(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return "-"
	}
	return text
}

// alike groups adjacent changes of threads that are the same: a host has hundreds of threads.
func alike(all []cores.Change) [][]cores.Change {
	var groups [][]cores.Change
	for _, c := range all {
		if n := len(groups); n > 0 && sameChange(groups[n-1][0], c) {
			groups[n-1] = append(groups[n-1], c)
			continue
		}
		groups = append(groups, []cores.Change{c})
	}
	return groups
}

func sameChange(a, b cores.Change) bool {
	return (a.Kind == cores.Affinity || a.Kind == cores.Join) && a.Kind == b.Kind && a.Old == b.Old && a.New == b.New &&
		a.Why == b.Why
}

// what describes the changes of a group.
func what(group []cores.Change) string {
	if len(group) == 1 {
		return group[0].What()
	}
	const few = 4
	var names []string
	for _, c := range group[:min(few, len(group))] {
		names = append(names, c.Name)
	}
	text := fmt.Sprintf("%d threads: ", len(group))
	if group[0].Kind == cores.Join {
		text = fmt.Sprintf("cgroup of %d processes: ", len(group))
	}
	text += strings.Join(names, ", ")
	if len(group) > few {
		text += ", ..."
	}
	return text
}

// outcomeLines prints outcomes as they come, adjacent ones that are alike in one line.
type outcomeLines struct {
	app   *app
	group []cores.Change
	last  cores.Outcome
	count int
}

func (l *outcomeLines) add(o cores.Outcome) {
	l.count++
	if l.app.json() {
		_ = json.NewEncoder(l.app.stdout).Encode(o)
		return
	}
	if len(l.group) > 0 && (l.last.Result != o.Result || l.last.Text != o.Text || !sameChange(l.group[0], o.Change)) {
		l.end()
	}
	l.group, l.last = append(l.group, o.Change), o
}

func (l *outcomeLines) end() {
	if len(l.group) > 0 && l.group[0].Kind != cores.Folder {
		text := fmt.Sprintf("%-9s %s", l.last.Result, what(l.group))
		if l.last.Text != "" {
			text += ": " + l.last.Text
		}
		fmt.Fprintln(l.app.stdout, text)
	}
	l.group = nil
}

// remains is what apply could not change, in JSON.
type remains struct {
	Arguments []string        `json:"missing_kernel_arguments"`
	Files     string          `json:"files"` // directory of the files for the next boot
	Missing   []string        `json:"not_written,omitempty"`
	CPUs      []cores.Residue `json:"cpus,omitempty"`
}

// showRemains reports what remains until the next boot, and what that costs.
func (a *app) showRemains(ctx context.Context, in *intent, f *coresFlags) (err error) {
	r := remains{Files: in.dir, Missing: in.missing}
	if r.Arguments, err = cores.MissingArguments(in.machine, in.plan); err != nil {
		return err
	}
	if f.root == "/" {
		workers := in.plan.Of(plan.Forwarding, plan.IsolatedRx, plan.HostPath)
		if r.CPUs, err = cores.Remains(ctx, f.root, workers, time.Second); err != nil {
			return err
		}
	}
	switch {
	case a.json():
		return json.NewEncoder(a.stdout).Encode(map[string]remains{"remains": r})
	case in.machine.Container || in.plan.Container:
		_, err := fmt.Fprintln(a.stdout, "Kernel arguments and interrupts belong to the host: they are unchanged.")
		return err
	}
	return r.print(a.stdout)
}

func (r *remains) print(w io.Writer) error {
	var out strings.Builder
	for _, m := range r.Missing {
		fmt.Fprintln(&out, "Not written:", m)
	}
	if r.Files == "/" {
		fmt.Fprintln(&out, "A reload of systemd alone moves the running corelaned off its CPUs (AllowedCPUs= of "+
			"system.slice). Restart it with the reload: systemctl daemon-reload && systemctl restart corelaned")
	}
	if len(r.Arguments) == 0 {
		fmt.Fprintln(&out, "The kernel was started as the plan wants.")
	} else {
		fmt.Fprintln(&out, "Until a reboot the kernel lacks:", strings.Join(r.Arguments, " "))
		switch r.Files {
		case "/":
			fmt.Fprintln(&out, "The files are in place. Update the boot loader's configuration (update-grub, or the "+
				"command that /etc/default/grub names), then reboot.")
		default:
			fmt.Fprintf(&out, "The files are below %s; 'corelane cores apply --install' installs them.\n", r.Files)
		}
	}
	for _, c := range r.CPUs {
		fmt.Fprintln(&out, "Remaining on", c)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
