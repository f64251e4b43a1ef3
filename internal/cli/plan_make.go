// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

// planRoot adds the flag that selects the machine.
func planRoot(s *pflag.FlagSet, root *string) {
	s.StringVar(root, "root", "/", "the machine: / is this one, else a directory or archive of 'corelane topology "+
		"capture'")
}

type planMakeFlags struct {
	request         plan.Request
	file, root, out string
}

func newPlanMake(a *app) *cobra.Command {
	f := &planMakeFlags{}
	cmd := verb("make", "Choose CPUs for a request, and say why",
		`  corelane plan make --forwarding 4 --service 2 --guests 24 --nic 0000:3b:00.0 --out plan.json
  corelane plan make --forwarding 4 --isolated-rx 4 --host-path 1 --nic eth0
  corelane plan make --file request.yaml --forwarding 5
  corelane plan make --forwarding 1 --root compute-7.tar.gz -o json`, nil)
	cmd.Long = `Choose CPUs for a request. The output has one sentence of reason for each choice, then warnings,
and alternatives with their gain and cost. Requests that the machine cannot fulfil are refused, with the number of CPUs
that is missing. Nothing is changed.

A request is flags, or a YAML file with the same names (forwarding: 4, share_cores: true, nics: [eth0]); a flag
replaces the file's value. Numbers count CPUs; a worker gets a core whose siblings stay idle or receive for it.
--forwarding-cpus and the like name exactly the CPUs to use.`
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.planMake(cmd, f) }
	s := cmd.Flags()
	requestFlags(s, &f.request)
	s.StringVarP(&f.file, "file", "f", "", "request, a YAML file")
	s.StringVar(&f.out, "out", "", "also write the plan to this file")
	planRoot(s, &f.root)
	_ = cmd.MarkFlagFilename("file", "yaml", "yml", "json")
	_ = cmd.MarkFlagFilename("out", "json")
	return cmd
}

// requestFlags have the names of the keys in a request file, except for nics.
func requestFlags(s *pflag.FlagSet, w *plan.Request) {
	s.IntVar(&w.Forwarding, "forwarding", 0, "forwarding workers, a core each")
	s.IntVar(&w.IsolatedRx, "isolated-rx", 0,
		"receiving workers, 0 or one for each forwarding worker, on its sibling where there is one")
	s.IntVar(&w.HostPath, "host-path", 0, "workers for the kernel's traffic, a core each")
	s.IntVar(&w.Service, "service", 0, "CPUs of service and control threads, 1 or 2; 0: those of the host")
	s.IntVar(&w.Guests, "guests", 0, "CPUs of pinned vCPUs")
	s.IntVar(&w.Emulator, "emulator", 0, "CPUs of guests' emulator and vhost threads; 0: suitable CPUs that are left")
	s.IntVar(&w.Housekeeping, "housekeeping", 0, "least cores per NUMA node for the host; 0: one")
	s.StringSliceVar(&w.NICs, "nic", nil,
		"network devices that workers poll, PCI addresses or interfaces; CPUs of their node are chosen first")
	s.BoolVar(&w.ShareCores, "share-cores", false, "workers may use both siblings of a core")
	s.BoolVar(&w.AllowOverlap, "allow-overlap", false,
		"workers may share the host's core, or its only CPU; packets then wait")
	s.BoolVar(&w.Boot, "boot", false, "isolate by kernel arguments, not only at run time")
	s.Var(&hugepagesValue{&w.Hugepages}, "hugepages", "hugepages to reserve: "+validHugepages)
	for name, set := range map[string]*cpuset.Set{
		"forwarding-cpus": &w.ForwardingCPUs, "isolated-rx-cpus": &w.IsolatedRxCPUs, "host-path-cpus": &w.HostPathCPUs,
		"service-cpus": &w.ServiceCPUs,
		"guest-cpus":   &w.GuestCPUs, "emulator-cpus": &w.EmulatorCPUs, "housekeeping-cpus": &w.HousekeepingCPUs,
	} {
		s.Var(&cpusValue{set}, name, "use exactly these CPUs")
	}
}

// cpusValue is a flag's set of CPUs.
type cpusValue struct{ set *cpuset.Set }

func (v *cpusValue) String() string { return "" }
func (v *cpusValue) Type() string   { return "cpus" }

func (v *cpusValue) Set(text string) error {
	const valid = "a list, 0,5-7, or a mask, 0x60"
	set, err := cpuset.Parse(text)
	if strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0X") {
		set, err = cpuset.ParseMask(text)
	} else if err == nil && cpuset.Repeats(text) {
		return input.Errorf("cpus", "each CPU once", "'%s' names a CPU twice", text)
	}
	if err != nil || set.Empty() {
		return input.Errorf("cpus", valid, "'%s' is not a list of CPUs", text)
	}
	*v.set = set
	return nil
}

const validHugepages = "SIZE:PAGES[@NODE], SIZE 2M, 1G or another of the machine, such as 1G:16@0; without @NODE " +
	"on each node"

// hugepagesValue is a flag's request for hugepages. A repeated flag adds a request.
type hugepagesValue struct{ list *[]plan.HugepageRequest }

func (v *hugepagesValue) String() string { return "" }
func (v *hugepagesValue) Type() string   { return "size:pages[@node]" }

func (v *hugepagesValue) Set(text string) error {
	rest, node, one := strings.Cut(text, "@")
	size, pages, _ := strings.Cut(rest, ":")
	kib := topology.ParsePageSize(size)
	n, err := strconv.ParseUint(pages, 10, 31)
	h := plan.HugepageRequest{Node: -1, KiB: kib, Pages: int(n)}
	if one && err == nil {
		var at uint64
		at, err = strconv.ParseUint(node, 10, 15)
		h.Node = int(at)
	}
	if err != nil || kib == 0 || n == 0 {
		return input.Errorf("hugepages", validHugepages, "'%s' is not a request for hugepages", text)
	}
	*v.list = append(*v.list, h)
	return nil
}

// all returns the request of the file, replaced by the flags that were given.
func (f *planMakeFlags) all(cmd *cobra.Command) (plan.Request, error) {
	if f.file == "" {
		return f.request, nil
	}
	w, err := plan.LoadRequest(f.file)
	from, to := reflect.ValueOf(f.request), reflect.ValueOf(&w).Elem()
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		key := strings.ReplaceAll(strings.Replace(flag.Name, "nic", "nics", 1), "-", "_")
		for i := range from.NumField() {
			if from.Type().Field(i).Tag.Get("yaml") == key {
				to.Field(i).Set(from.Field(i))
			}
		}
	})
	return w, err
}

func (a *app) planMake(cmd *cobra.Command, f *planMakeFlags) error {
	request, err := f.all(cmd)
	if err != nil {
		return err
	}
	m, err := topology.Read(f.root)
	if err != nil {
		return err
	}
	p, err := plan.Make(m, request)
	if err != nil {
		return err
	}
	if f.out != "" {
		if err := plan.Save(f.out, p); err != nil {
			return err
		}
	}
	if err := a.planTable(p); err != nil || f.out == "" || a.json() {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "\nThe plan is in %s.\n", f.out)
	return err
}
