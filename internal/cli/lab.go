// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/lab"
	"github.com/corelane/corelane/internal/table"
)

func newLabCmd(a *app) *cobra.Command {
	return noun("lab", "Networks of namespaces to try things in", newLabUp(a), newLabRun(a), newLabDown(a),
		newLabList(a), newLabDemo(a), newLabIntrude(a), newIntruderCmd())
}

// labNames completes the names of labs.
func labNames(context.Context, *app) ([]string, error) {
	var names []string
	for _, t := range lab.Topologies() {
		names = append(names, t.Name)
	}
	return names, nil
}

// labFlags are the flags of commands that start a lab.
func labFlags(cmd *cobra.Command, o *lab.Options) {
	f := cmd.Flags()
	f.StringVar(&o.Daemon, "corelaned", "",
		"corelaned to run on the hosts; default: the one beside this program, or in PATH")
	f.IntVar(&o.MemoryMB, "memory", 256, "packet memory of each corelaned in MB")
	f.StringVar(&o.Idle, "idle", "sleep", "idle policy of the workers: spin, pause, yield, sleep, interrupt")
}

func newLabUp(a *app) *cobra.Command {
	o := lab.Options{}
	underlay := string(lab.IPv4)
	cmd := verb("up LAB", "Start a lab", "  corelane lab up overlay\n  corelane lab up overlay --underlay ipv6",
		func(ctx context.Context, args []string) (err error) {
			t, err := findLab(args[0])
			if err != nil {
				return err
			}
			if o.Underlay, err = lab.ParseUnderlay(underlay); err != nil {
				return input.Errorf("--underlay", "ipv4, ipv6", "'%s' is unknown", underlay)
			}
			o.Say = a.sayer()
			l, err := lab.BringUp(ctx, t, o)
			if err != nil {
				return err
			}
			return a.labUp(l)
		})
	cmd.Long = `Start a lab: each host is a network namespace with its own corelaned, each tenant one with an
interface eth0. The configuration of each host is in ` + lab.Root + `/LAB/HOST/node.yaml. corelane lab down removes
the lab, in whatever state it is.`
	labFlags(cmd, &o)
	cmd.Flags().StringVar(&underlay, "underlay", underlay, "family of the addresses between hosts: ipv4 or ipv6")
	a.completeFlag(cmd, "underlay", fixed("ipv4", "ipv6"))
	cmd.ValidArgsFunction = a.complete(labNames)
	return cmd
}

// findLab returns a lab that a user can bring up.
func findLab(name string) (lab.Topology, error) {
	var names []string
	for _, t := range lab.Topologies() {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return lab.Topology{}, input.Errorf("lab", strings.Join(names, ", "), "'%s' is unknown", name)
}

// checkLab also accepts a lab that a measurement has brought up, and perhaps left.
func checkLab(name string) error {
	if _, err := lab.Find(name); err == nil {
		return nil
	}
	_, err := findLab(name)
	return err
}

// sayer reports progress on standard error, apart from results.
func (a *app) sayer() func(string) {
	return func(text string) { fmt.Fprintln(a.stderr, "  "+text) }
}

// labUp lists the places of the lab and commands to try.
func (a *app) labUp(l *lab.Lab) error {
	if a.json() {
		return json.NewEncoder(a.stdout).Encode(l.Ledger)
	}
	fmt.Fprintf(a.stdout, "Lab %s is up: %s.\n\n", l.Name, l.Title)
	err := a.rows([]string{"PLACE", "WHAT", "IPV4", "IPV6"}, func(add func(...string) error) error {
		for _, h := range l.Hosts {
			what := "host, corelaned on " + l.Socket(h)
			if h.Linux {
				what = "host, the kernel's VXLAN"
			}
			if err := add(h.Name, what, h.Address(lab.IPv4), h.Address(lab.IPv6)); err != nil {
				return err
			}
		}
		for _, g := range l.Guests() {
			if err := add(g.Name(), "tenant of "+g.Host.Name, g.Address(lab.IPv4), g.Address(lab.IPv6)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	a.tryNext(l)
	return nil
}

func (a *app) tryNext(l *lab.Lab) {
	fmt.Fprintln(a.stdout, "\nTry:")
	for _, command := range l.Try(program()) {
		fmt.Fprintln(a.stdout, "  "+command)
	}
	fmt.Fprintf(a.stdout, "\nTo end: %s lab down %s\n", program(), l.Name)
}

// program is the command by which this program was called.
func program() string {
	if strings.Contains(os.Args[0], "/") && filepath.Base(os.Args[0]) == "corelane" {
		return os.Args[0]
	}
	return "corelane"
}

// jsonLines writes one JSON object per line.
func jsonLines[T any](w io.Writer, list []T) error {
	enc := json.NewEncoder(w)
	for _, x := range list {
		if err := enc.Encode(x); err != nil {
			return err
		}
	}
	return nil
}

// rows writes a table of plain text.
func (a *app) rows(head []string, fill func(add func(...string) error) error) error {
	return buffered(a.stdout, func(w *bufio.Writer) error {
		t := table.New(w, make([]bool, len(head))).Fit(a.tableWidth())
		if !a.noHeaders {
			_ = t.Add(head...) // the first row fills no block: nothing is written yet
		}
		if err := fill(t.Add); err != nil {
			return err
		}
		return t.Flush()
	})
}

func newLabRun(a *app) *cobra.Command {
	cmd := verb("run LAB PLACE COMMAND...", "Run a command on a host or tenant of a lab",
		"  corelane lab run overlay red-h1 -- ping -c 3 10.1.2.12\n  corelane lab run overlay h1 -- corelane status",
		func(_ context.Context, args []string) error {
			command := args[2:]
			if command[0] == "--" {
				command = command[1:]
			}
			if len(command) == 0 {
				return input.Errorf("command", "corelane lab run LAB PLACE -- COMMAND...", "missing")
			}
			return labRun(args[0], args[1], command)
		})
	cmd.Long = `Run a command in the network namespace of a host, a tenant or the wire of a lab. On a host, corelane
talks to the host's corelaned. The exit code is the command's.`
	cmd.Flags().SetInterspersed(false)
	cmd.ValidArgsFunction = a.complete(labNames, labPlaces)
	return cmd
}

func labPlaces(context.Context, *app) ([]string, error) {
	labs, err := lab.Running("")
	var names []string
	for _, l := range labs {
		names = append(names, l.Places()...)
	}
	return names, err
}

// labRun replaces this program by the command, through ip netns exec, which also mounts the namespace's /sys.
func labRun(name, place string, command []string) error {
	if err := checkLab(name); err != nil {
		return err
	}
	l, err := lab.Get(name, "")
	if err != nil {
		return err
	}
	netns, socket, err := l.Place(place)
	if err != nil {
		return input.Errorf("place", strings.Join(l.Places(), ", "), "'%s' is unknown", place)
	}
	ip, err := exec.LookPath("ip")
	if err != nil {
		return err
	}
	if socket != "" {
		if err := os.Setenv("CORELANE_SOCKET", socket); err != nil {
			return err
		}
	}
	if self, err := os.Executable(); err == nil {
		if err := os.Setenv("PATH", os.Getenv("PATH")+":"+filepath.Dir(self)); err != nil {
			return err
		}
	}
	return syscall.Exec(ip, append([]string{"ip", "netns", "exec", netns}, command...), os.Environ())
}

func newLabDown(a *app) *cobra.Command {
	cmd := verb("down LAB", "Remove a lab", "  corelane lab down overlay",
		func(_ context.Context, args []string) error {
			if err := checkLab(args[0]); err != nil {
				return err
			}
			return lab.TakeDown(args[0], lab.Options{Say: a.sayer()})
		})
	cmd.Long = `Remove a lab: its processes, namespaces and files, even if it is only partly there. Other processes
are left alone, even those that were started in the lab by hand.`
	cmd.ValidArgsFunction = a.complete(labNames)
	return cmd
}

// labLine is one lab in the list.
type labLine struct {
	Lab     string      `json:"lab"`
	Title   string      `json:"title"`
	Running *lab.Ledger `json:"running,omitempty"`
	Alive   int         `json:"alive"` // processes
}

func newLabList(a *app) *cobra.Command {
	return verb("list", "List the labs and their state", "  corelane lab list", func(context.Context, []string) error {
		running, err := lab.Running("")
		if err != nil {
			return err
		}
		return a.labList(labLines(lab.Topologies(), running))
	})
}

// labLines has a line for each lab that can be brought up, and for each other one that runs.
func labLines(all []lab.Topology, running []*lab.Lab) (lines []labLine) {
	for _, l := range running {
		if !slices.ContainsFunc(all, func(t lab.Topology) bool { return t.Name == l.Name }) {
			all = append(all, l.Topology)
		}
	}
	for _, t := range all {
		line := labLine{Lab: t.Name, Title: t.Title}
		for _, l := range running {
			if l.Name == t.Name {
				line.Running, line.Alive = l.Ledger, l.Ledger.Alive()
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// labStates are the states in the table: "up" and "down" beside a name like "two-hosts" would read like states of
// hosts.
var labStates = map[string]string{lab.ComingUp: "starting", lab.Up: "running", lab.GoingDown: "being removed"}

func (a *app) labList(lines []labLine) error {
	if a.json() {
		return jsonLines(a.stdout, lines)
	}
	return a.rows([]string{"LAB", "STATE", "UNDERLAY", "PROCESSES", "SINCE", "CONTENTS"},
		func(add func(...string) error) error {
			for _, line := range lines {
				row := []string{line.Lab, "not running", "-", "-", "-", line.Title}
				if r := line.Running; r != nil {
					row = []string{line.Lab, labStates[r.Status], string(r.Underlay),
						fmt.Sprintf("%d of %d alive", line.Alive, len(r.Processes)),
						r.Since.Local().Format(time.DateTime), line.Title}
				}
				if err := add(row...); err != nil {
					return err
				}
			}
			return nil
		})
}
