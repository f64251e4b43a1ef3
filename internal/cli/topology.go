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

// rootFlag selects the machine that a command reads.
type rootFlag struct{ root string }

func (r *rootFlag) add(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&r.root, "root", "/",
		"the machine: / is this one; else a directory with its files, or an archive of 'corelane topology capture'")
	_ = cmd.MarkFlagFilename("root")
	return cmd
}

func newTopologyCmd(a *app) *cobra.Command {
	return noun("topology", "The machine: its CPUs, memory, NICs, interrupts and guests, and the settings for them",
		newTopologyShow(a), newTopologyMap(a), newTopologyCapture(a))
}

func newTopologyShow(a *app) *cobra.Command {
	var r rootFlag
	cmd := verb("show", "Show a machine's hardware and its settings",
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
	cmd.Long = `Show a machine: sockets, NUMA nodes, cores and caches; memory and hugepages of each node; NICs with
their node, queues and interrupts; guests and the CPUs of their threads; kernel arguments, cgroups, and the settings
of TuneD, irqbalance, systemd, the kubelet and Nova. It needs no running corelaned. Files that could not be read or
make no sense are listed at the end. -o json has everything, including all threads and interrupts.`
	return r.add(cmd)
}

func newTopologyMap(a *app) *cobra.Command {
	var r rootFlag
	var planFile, svg string
	cmd := verb("map", "Draw the CPUs by socket, node and core, each with its use",
		"  corelane topology map\n  corelane topology map --plan plan.json\n  corelane topology map --root "+
			"compute-0.tar.gz --svg compute-0.svg",
		func(context.Context, []string) error { return a.topologyMap(r.root, planFile, svg) })
	cmd.Long = `Draw CPUs by socket, NUMA node and last cache. Siblings, the CPUs of one core, stand together in
brackets. With --plan each CPU has its role in the plan; without, its present use: isolated, taking interrupts of
devices, a guest's, offline. A CPU counts as taking interrupts if it took at least half of an even share of them since
the machine started.`
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

// columns is the width of the terminal, or COLUMNS of the environment where the output is not a terminal.
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
	cmd := verb("capture [FILE.tar.gz]", "Pack the files that describe a machine into an archive",
		"  corelane topology capture\n  corelane topology capture compute-0.tar.gz",
		func(_ context.Context, args []string) error {
			file := ""
			if len(args) > 0 {
				file = args[0]
			}
			return a.topologyCapture(r.root, file)
		})
	cmd.Long = `Pack the files of /sys, /proc and /etc that the other commands read into one archive, which they take
as --root: for a plan, a check or a question about another machine. The default for FILE is HOSTNAME.tar.gz; an
existing file is not overwritten.

The archive contains nothing secret: only settings about CPUs; names, vCPUs, pins and queues of guests; kernel
arguments without values that look like a password, key, token, user, address or disk; no environment and no arguments
of processes. Names of the host, its guests and threads are in it. The output lists what was left out of each file.`
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

// claim creates an empty file, which must not exist.
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
