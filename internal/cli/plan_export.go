// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/plan/output"
	"github.com/corelane/corelane/internal/topology"
)

type planExportFlags struct {
	root, dir string
	o         output.Options
}

func newPlanExport(a *app) *cobra.Command {
	f := &planExportFlags{}
	cmd := verb("export FORMAT FILE", "Write a plan in the format of another tool",
		`  corelane plan export grub plan.json
  corelane plan export tripleo plan.json --old-kernel --old-nova
  corelane plan export libvirt plan.json --vcpus 4
  corelane plan export irq plan.json --root /
  corelane plan export systemd plan.json --dir ./host`, nil)
	cmd.Long = `Write the plan FILE in the format of another tool: to standard output, or with --dir as files below a
directory, at their usual paths. A fragment has no path of its own; with --dir it is called FORMAT.txt, and a second
one FORMAT-2.txt. Nothing is installed, and this machine is read only with --root.

Formats:
`
	var names []string
	for _, format := range output.Formats() {
		names = append(names, format.Name)
		cmd.Long += fmt.Sprintf("  %-12s %s\n", format.Name, format.What)
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault // files
		}
		return a.complete(fixed(names...))(cmd, args, typed)
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error { return a.planExport(f, args[0], args[1]) }
	s := cmd.Flags()
	s.StringVar(&f.dir, "dir", "", "write files below this directory")
	s.StringVar(&f.root, "root", "", "the plan's machine, / or a captured one, to read its interrupts and queues")
	s.BoolVar(&f.o.OldKernel, "old-kernel", false,
		"for Linux before 5.6: isolcpus= without flags, hugepages= without nodes")
	s.BoolVar(&f.o.OldNova, "old-nova", false, "for OpenStack before Train: vcpu_pin_set")
	s.IntVar(&f.o.VCPUs, "vcpus", 0, "vCPUs of the guest (libvirt)")
	s.IntVar(&f.o.Skip, "skip", 0, "number of the plan's guest CPUs that other guests already use (libvirt)")
	s.IntVar(&f.o.IOThreads, "iothreads", 0, "I/O threads of the guest (libvirt)")
	s.StringVar(&f.o.Port, "port", "", "name of the NIC (dpvs); default: dpdk0")
	s.IntVar(&f.o.RingSize, "ring-size", 0, "slots of the rings between workers; default: the router's own")
	s.IntVar(&f.o.Memory, "router-memory", 0, "MiB of hugepages that the router takes on each node with workers; "+
		"default: 512, as corelaned")
	s.BoolVar(&f.o.RunToCompletion, "run-to-completion", false, "packets stay with the worker that received them "+
		"(vRouter's --vr_no_load_balance)")
	s.BoolVar(&f.o.DDP, "ddp", false, "vRouter loads the NIC's profile for MPLSoGRE (--ddp)")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

func (a *app) planExport(f *planExportFlags, format, file string) error {
	p, err := plan.Load(file)
	if err != nil {
		return err
	}
	if f.root != "" {
		if f.o.Machine, err = topology.Read(f.root); err != nil {
			return err
		}
		if err := p.Fits(f.o.Machine); err != nil {
			return err
		}
	}
	files, err := output.Write(format, p, f.o)
	switch {
	case err != nil:
		return err
	case f.dir != "":
		return a.writeFiles(f.dir, format, files)
	}
	return a.printFiles(files)
}

// printFiles prints a single text as it is, for the tool to read, and several with their paths between them.
func (a *app) printFiles(files []output.File) error {
	for _, f := range files {
		var err error
		switch {
		case a.json():
			err = json.NewEncoder(a.stdout).Encode(f)
		case len(files) == 1:
			_, err = fmt.Fprint(a.stdout, f.Text)
		default:
			_, err = fmt.Fprintf(a.stdout, "==> %s\n%s", strings.TrimPrefix(f.Path+": "+f.What, ": "), f.Text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeFiles never overwrites a file, which may be an operator's.
func (a *app) writeFiles(dir, format string, files []output.File) error {
	fragments := 0
	var paths []string
	for i := range files {
		if files[i].Path == "" {
			fragments++
			files[i].Path = format + ".txt"
			if fragments > 1 {
				files[i].Path = fmt.Sprintf("%s-%d.txt", format, fragments)
			}
		}
		path := filepath.Join(dir, files[i].Path)
		if _, err := os.Lstat(path); err == nil {
			return input.Errorf("--dir", "a directory without it", "%s exists already; nothing was written", path)
		}
		paths = append(paths, path)
	}
	for i, f := range files {
		mode := os.FileMode(0o644)
		if f.Exec {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(paths[i]), 0o755); err != nil {
			return input.Errorf("--dir", "a directory that can be written", "%v", err)
		}
		if err := os.WriteFile(paths[i], []byte(f.Text), mode); err != nil {
			return err
		}
		fmt.Fprintln(a.stdout, paths[i])
	}
	return nil
}
