// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/plan/imports"
	"github.com/corelane/corelane/internal/topology"
)

type planImportFlags struct {
	root, request, lcores string
	o                     imports.Options
}

func newPlanImport(a *app) *cobra.Command {
	f := &planImportFlags{}
	cmd := verb("import FILE...", "Read the CPU settings of other tools, and say what is wrong with them",
		`  corelane plan import contrail-services.yaml ifcfg-vhost0
  corelane plan import /proc/cmdline /etc/tuned/cpu-partitioning-variables.conf /etc/nova/nova.conf --root /
  corelane plan import dpvs.conf --lcores 0@1,1@2,2@3
  corelane plan import common_vrouter.env contrail-services.yaml --request-out request.yaml`, nil)
	cmd.Long = `Read files of one machine together: templates of TripleO, Kolla and Juju, vRouter's environment and
ifcfg-vhost0, dpvs.conf and its command line, nova.conf, definitions of libvirt, the kubelet's configuration,
settings of TuneD, systemd and irqbalance, the kernel's arguments, Corelane's node file and options. The format of
each file is detected; --format sets it for all. - is standard input.

The output has the CPUs of each role and the file that sets them, the roles that no file sets, and what is wrong, why,
and what to write instead. With --root, CPUs, cores, nodes and memory are compared with a machine. Exit code 1 when
something is wrong.

Formats: ` + strings.Join(imports.Formats(), ", ")
	cmd.ValidArgsFunction = nil // files
	cmd.RunE = func(_ *cobra.Command, args []string) error { return a.planImport(f, args) }
	s := cmd.Flags()
	s.StringVar(&f.o.Format, "format", "", "format of the files; default: detected")
	s.StringVar(&f.o.Role, "role", "", "role of a template, or host of an instances.yaml, when there are several: "+
		"ContrailDpdk")
	s.StringVar(&f.root, "root", "", "the machine that the files are for: / or a captured one")
	s.StringVar(&f.lcores, "lcores", "",
		"DPVS' command line from --lcores on, when no file has it: '0@1,1@2 --main-lcore 1'")
	s.StringVar(&f.request, "request-out", "", "write the CPUs as a request for 'corelane plan make'")
	a.completeFlag(cmd, "format", fixed(imports.Formats()...))
	return cmd
}

func (a *app) planImport(f *planImportFlags, names []string) error {
	files, err := a.importFiles(names)
	if err != nil {
		return err
	}
	if f.lcores != "" {
		files = append(files, imports.File{Name: "--lcores", Text: "dpvs -- --lcores " + f.lcores, Format: "dpvs"})
	}
	r, err := imports.Load(files, f.o)
	if err != nil {
		return err
	}
	var m *topology.Machine
	if f.root != "" {
		if m, err = topology.Read(f.root); err != nil {
			return err
		}
	}
	found := imports.Check(r, m)
	if err := a.showImport(r, found); err != nil {
		return err
	}
	if f.request != "" {
		if err := writeRequest(f.request, r, m); err != nil {
			return err
		}
	}
	switch n := imports.Count(found, imports.Wrong); n {
	case 0:
		return nil
	case 1:
		return errors.New("1 thing is wrong")
	default:
		return fmt.Errorf("%d things are wrong", n)
	}
}

func (a *app) importFiles(names []string) ([]imports.File, error) {
	var files []imports.File
	for _, name := range names {
		file := imports.File{Name: name}
		in := a.stdin
		if name == "-" {
			file.Name = "standard input"
		} else {
			f, err := os.Open(name)
			if err != nil {
				return nil, input.Errorf("file", "a file, or - for standard input", "%v", err)
			}
			defer f.Close()
			in = f
		}
		text, err := io.ReadAll(io.LimitReader(in, imports.MaxSize+1))
		if err != nil {
			return nil, input.Errorf("file", "a file, or - for standard input", "%v", err)
		}
		file.Text = string(text)
		files = append(files, file)
	}
	return files, nil
}

// importResult is what -o json shows.
type importResult struct {
	Formats  []string          `json:"formats"`
	Roles    []imports.Row     `json:"roles"`
	Unset    []string          `json:"unset"`
	Findings []imports.Finding `json:"findings"`
}

func (a *app) showImport(r *imports.Reading, found []imports.Finding) error {
	if a.json() {
		return json.NewEncoder(a.stdout).Encode(importResult{r.Formats, r.Rows(), r.Unset(), found})
	}
	if err := a.rows([]string{"CPUS FOR", "CPUS", "SET BY"}, func(add func(...string) error) error {
		for _, row := range r.Rows() {
			if err := add(string(row.Role), row.CPUs.String(), row.By); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if unset := r.Unset(); len(unset) > 0 {
		fmt.Fprintf(a.stdout, "\nNot set: %s.\n", strings.Join(unset, ", "))
	}
	for _, f := range found {
		where := ""
		if f.Where != "" {
			where = f.Where + ": "
		}
		fmt.Fprintf(a.stdout, "\n%-8s %s%s\n         why:   %s\n", f.Severity, where, f.What, f.Why)
		if f.Instead != "" {
			fmt.Fprintf(a.stdout, "         write: %s\n", f.Instead)
		}
	}
	if len(found) == 0 {
		fmt.Fprintln(a.stdout, "\nNothing is wrong.")
	}
	return nil
}

// writeRequest leaves out keys without a value.
func writeRequest(path string, r *imports.Reading, m *topology.Machine) error {
	w, err := r.Request(m)
	if err != nil {
		return err
	}
	var n yaml.Node
	if err := n.Encode(w); err != nil {
		return err
	}
	var kept []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if v := n.Content[i+1]; len(v.Content) > 0 || v.Kind == yaml.ScalarNode && v.Value != "" &&
			v.ShortTag()+v.Value != "!!int0" && v.Value != "false" {
			kept = append(kept, n.Content[i], v)
		}
	}
	n.Content = kept
	text, err := yaml.Marshal(&n)
	if err != nil {
		return err
	}
	if _, err := plan.ParseRequest(path, text); err != nil {
		return err
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return input.Errorf("--request-out", "a file that can be written", "%v", err)
	}
	return nil
}
