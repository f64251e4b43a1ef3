// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/topology/draw"
)

// rootFlag is where the machine is that a command looks at.
type rootFlag struct{ root string }

func (r *rootFlag) add(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&r.root, "root", "/", "the machine: / is this one; else a directory with its files, or an archive of 'corelane topology capture'")
	_ = cmd.MarkFlagFilename("root")
	return cmd
}

func newTopologyCmd(a *app) *cobra.Command {
	return noun("topology", "The machine: its CPUs, memory, NICs, interrupts, guests and how its kernel was told to use them",
		newTopologyShow(a), newTopologyMap(a), newTopologyCapture(a))
}

func newTopologyShow(a *app) *cobra.Command {
	var r rootFlag
	cmd := verb("show", "Show what a machine has and how it is set up",
		"  corelane topology show\n  corelane topology show --root compute-0.tar.gz -o json",
		func(context.Context, []string) error {
			m, err := topology.Read(r.root)
			if err != nil {
				return err
			}
			if a.json() {
				return json.NewEncoder(a.stdout).Encode(m)
			}
			_, err = fmt.Fprint(a.stdout, draw.Summary(m))
			return err
		})
	cmd.Long = `Show a machine: sockets, NUMA nodes, cores and caches; memory and hugepages of each node; NICs with their node, queues and
interrupts; guests with where their threads may run; kernel arguments, cgroups, and what TuneD, irqbalance, systemd, the kubelet and
Nova were told. It needs no running corelaned. What could not be read or makes no sense stands at the end. -o json has everything, also
all threads and interrupts.`
	return r.add(cmd)
}

func newTopologyMap(a *app) *cobra.Command {
	var r rootFlag
	var planFile, svg string
	cmd := verb("map", "Draw the CPUs where they are, each with what it is for",
		"  corelane topology map\n  corelane topology map --plan plan.json\n  corelane topology map --root compute-0.tar.gz --svg compute-0.svg",
		func(context.Context, []string) error { return a.topologyMap(r.root, planFile, svg) })
	cmd.Long = `Draw CPUs by socket, NUMA node and last cache. Siblings, the CPUs of one core, stand together in brackets. With --plan each has the
role that the plan gives it; without, what it is at the moment: isolated, taking the interrupts of devices, a guest's, offline. CPUs that took
at least half of an even share of all interrupts since the machine started count as taking them.`
	cmd.Flags().StringVar(&planFile, "plan", "", "plan of this machine, from 'corelane plan'")
	cmd.Flags().StringVar(&svg, "svg", "", "write the map to this file as an SVG picture instead")
	_ = cmd.MarkFlagFilename("plan")
	_ = cmd.MarkFlagFilename("svg")
	return r.add(cmd)
}

func (a *app) topologyMap(root, planFile, svg string) error {
	if a.json() {
		return input.Errorf("output", "table", "a map is for people; 'corelane topology show -o json' has the machine")
	}
	m, err := topology.Read(root)
	if err != nil {
		return err
	}
	marks := draw.FromMachine(m)
	if planFile != "" {
		p, err := plan.Load(planFile)
		if err != nil {
			return err
		}
		if marks, err = draw.FromPlan(m, p); err != nil {
			return err
		}
	}
	if svg != "" {
		if err := os.WriteFile(svg, []byte(draw.SVG(m, marks)), 0o644); err != nil {
			return input.Errorf("--svg", "a file that can be written", "%v", err)
		}
		return nil
	}
	_, err = fmt.Fprint(a.stdout, draw.Text(m, marks, a.columns(), isTerminal(a.stdout) && os.Getenv("NO_COLOR") == ""))
	return err
}

// columns is the width of the terminal; COLUMNS in the environment is for those that are none.
func (a *app) columns() int {
	if f, ok := a.stdout.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	return 100
}

func newTopologyCapture(a *app) *cobra.Command {
	var r rootFlag
	cmd := verb("capture [FILE.tar.gz]", "Pack what is known of a machine into an archive",
		"  corelane topology capture\n  corelane topology capture compute-0.tar.gz",
		func(_ context.Context, args []string) error {
			file := ""
			if len(args) > 0 {
				file = args[0]
			}
			return a.topologyCapture(r.root, file)
		})
	cmd.Long = `Pack those files of /sys, /proc and /etc that the other commands read into one archive, which they take as --root: for a plan, a check or
a question about a machine that is elsewhere. Without FILE it is HOSTNAME.tar.gz; a file that exists is not touched.

Nothing secret goes in. Of settings only those about CPUs are taken; of guests their names, vCPUs, pins and queues; of the kernel's arguments
no values that look like a password, key, token, user, address or disk; no environment and no arguments of processes. Names of the
host, its guests and threads are in it. What was left out is said for each file.`
	cmd.ValidArgsFunction = nil
	return r.add(cmd)
}

func (a *app) topologyCapture(root, file string) error {
	temp, err := os.CreateTemp(filepath.Dir(file), ".capture-*") // 0600
	if err != nil {
		return input.Errorf("file", "one in a directory that can be written", "%v", err)
	}
	defer os.Remove(temp.Name())
	c, err := topology.Capture(root, temp)
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if file == "" {
		file = filepath.Base(filepath.Clean("/"+c.Hostname)) + ".tar.gz"
	}
	if err := claim(file); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), file); err != nil {
		return err
	}
	if a.json() {
		return json.NewEncoder(a.stdout).Encode(c)
	}
	fmt.Fprintf(a.stdout, "%s: %d files of '%s', %d KiB before compression\n", file, c.Files, c.Hostname, c.Bytes>>10)
	for _, left := range c.Left {
		fmt.Fprintf(a.stdout, "left out of %s\n", left)
	}
	return nil
}

// claim makes an empty file of a name that nobody has.
func claim(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return input.Errorf("file", "one that does not exist", "'%s' exists", file)
	}
	if err != nil {
		return input.Errorf("file", "one that can be written", "%v", err)
	}
	return f.Close()
}
