// SPDX-License-Identifier: Apache-2.0

// Package output writes a plan in the formats of other tools: kernel arguments, TuneD, systemd, orchestrators, other
// routers, and Corelane's own files. It does no I/O: it turns a plan into texts. Package imports reads the same
// formats.
package output

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/limits"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

// File is a file of one tool.
type File struct {
	Path string `json:"path"` // where to install it; empty: it is a fragment or a command
	What string `json:"what"` // one line
	Text string `json:"text"` // ends with a newline
	Exec bool   `json:"exec,omitempty"`
}

// Options holds what a format may need and a plan does not have. Zero values are left out of the output if possible.
type Options struct {
	Machine   *topology.Machine // for interrupts and queues; may be nil
	OldKernel bool              // isolcpus= without flags (before Linux 5.6), hugepages= without nodes (before 5.16)
	OldNova   bool              // before Train: vcpu_pin_set instead of cpu_dedicated_set and cpu_shared_set
	VCPUs     int               // number of the guest's vCPUs, for libvirt
	Skip      int               // number of guests' CPUs that other guests already use, for libvirt
	IOThreads int               // number of the guest's I/O threads, for libvirt
	Port      string            // name of the NIC, for dpvs; dpdk0 when empty
	RingSize  int               // of rings between workers; 0: the router's default
	Memory    int               // MiB of hugepages that the router takes on each node with workers; 0: its default

	RunToCompletion bool // a packet stays with the worker that received it: --vr_no_load_balance
	DDP             bool // vRouter loads the NIC's profile for MPLSoGRE: --ddp
}

// Format is one way to write a plan.
type Format struct {
	Name  string
	What  string // one line
	Path  string // path of its main file; empty: text to paste
	write func(v *view) ([]File, error)
}

// inside lists the formats that are about the data plane and its guests, not about the host.
var inside = []string{"container", "corelaned", "dpvs", "libvirt", "node"}

// Formats lists all formats.
func Formats() []Format {
	list := []Format{
		{"kernel", "kernel arguments", "", kernelArgs},
		{"grub", "kernel arguments as a drop-in of GRUB (Debian, Ubuntu)", grubPath, grub},
		{"grubby", "kernel arguments as a command (Fedora, RHEL)", "", grubby},
		{"tuned", "TuneD: variables of cpu-partitioning and a child profile that spares our threads",
			tunedVariablesPath, tuned},
		{"systemd", "systemd: CPUs of services, sessions, guests and corelaned", systemdPath, systemd},
		{"cgroup", "isolated partitions of cgroup v2: a script that reads them back, and its unit", partitionScript,
			partitions},
		{"irqbalance", "irqbalance: CPUs that it does not use", irqbalancePath, irqbalance},
		{"irq", "masks of interrupts, RPS, XPS and workqueues: one path=value per line", "", interrupts},
		{"nova", "OpenStack Nova", novaPath, nova},
		{"tripleo", "TripleO: parameters of the role ContrailDpdk", "environments/contrail/contrail-services.yaml",
			withWorkers(tripleo)},
		{"tripleo-ovs", "TripleO: the same for the role ComputeOvsDpdk", "environments/ovs-dpdk.yaml",
			withWorkers(tripleoOvs)},
		{"kolla", "Kolla: instances.yaml of contrail-ansible-deployer, globals.yml of kolla-ansible",
			"/etc/kolla/globals.yml", withWorkers(kolla)},
		{"juju", "Juju: overlay of a bundle for the charms contrail-agent, nova-compute and sysconfig", "",
			withWorkers(juju)},
		{"libvirt", "libvirt: cputune of one guest; needs the number of vCPUs", "", libvirt},
		{"kubelet", "Kubernetes: drop-in of the kubelet", kubeletPath, kubelet},
		{"openshift", "OpenShift: PerformanceProfile of the node tuning operator", "", openshift},
		{"container", "environment of vRouter's containers and ifcfg-vhost0", containerPath, withWorkers(container)},
		{"dpvs", "DPVS: worker_defs of dpvs.conf and the command line", "/etc/dpvs.conf", withWorkers(dpvs)},
		{"node", "Corelane: workers of the node's file", "", node},
		{"corelaned", "Corelane: options of the data plane", "/etc/default/corelane", withWorkers(corelaned)},
	}
	slices.SortFunc(list, func(a, b Format) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Names returns the names of all formats.
func Names() []string {
	var names []string
	for _, f := range Formats() {
		names = append(names, f.Name)
	}
	return names
}

// Write returns the plan in one format.
func Write(format string, p *plan.Plan, o Options) ([]File, error) {
	for _, f := range Formats() {
		if f.Name == format {
			v := newView(p, o)
			if err := v.check(); err != nil {
				return nil, err
			}
			if p.Container && !slices.Contains(inside, format) {
				return nil, input.Errorf("format", strings.Join(inside, ", ")+"; or a plan that was made on the host",
					"'%s' configures the whole host, but the plan was made in a container and knows only CPUs %s",
					format, v.all)
			}
			return f.write(v)
		}
	}
	return nil, input.Errorf("format", strings.Join(Names(), ", "), "'%s' is unknown", format)
}

// withWorkers refuses a plan without forwarding workers: routers treat an empty mask in different ways.
func withWorkers(write func(v *view) ([]File, error)) func(v *view) ([]File, error) {
	return func(v *view) ([]File, error) {
		if v.Of(plan.Forwarding).Empty() {
			return nil, input.Errorf("plan", "a plan with forwarding workers",
				"the plan has no forwarding workers, but this format needs them")
		}
		return write(v)
	}
}

// view is a plan as the formats need it.
type view struct {
	*plan.Plan
	Options
	all, host, workers, service, control, guests, isolated cpuset.Set
}

func newView(p *plan.Plan, o Options) *view {
	v := &view{Plan: p, Options: o, isolated: p.Isolated}
	var ids []int
	for _, c := range p.CPUs {
		ids = append(ids, c.ID)
	}
	v.all = cpuset.Of(ids...)
	v.host = v.all.Without(p.Isolated)
	v.workers = p.Of(plan.Forwarding, plan.IsolatedRx, plan.HostPath)
	v.guests, v.service, v.control = p.Of(plan.Guests), p.ServiceCPUs(), p.ControlCPUs()
	return v
}

// isWord tells whether a text may go into comments and names of other tools' files.
func isWord(s string) bool { return len(s) <= 255 && word.MatchString(s) }

var word = regexp.MustCompile(`^[A-Za-z0-9_.:-]*$`)

var ringSize = (&apiv1.Worker{}).ProtoReflect().Descriptor().Fields().ByName("ring_size")

// check refuses plans that cannot be written in any format, such as plans edited by hand.
func (v *view) check() error {
	switch {
	case !isWord(v.Plan.Machine):
		return input.Errorf("plan: machine", "a host name", "%.64q is not a host name", v.Plan.Machine)
	case !isWord(v.Port):
		return input.Errorf("--port", "the name of a NIC in DPVS, dpdk0", "%q is not a name", v.Port)
	case v.RingSize != 0 && (v.RingSize < 0 || !limits.Number(ringSize, uint64(v.RingSize))):
		return input.Errorf("--ring-size", limits.Numbers(ringSize), "%d is out of range", v.RingSize)
	case v.Memory < 0 || v.Memory > 1<<20:
		return input.Errorf("--router-memory", "0 to 1048576", "%d is out of range", v.Memory)
	case v.all.Empty():
		return input.Errorf("plan", "a plan of 'corelane plan make'", "the plan has no CPUs")
	case v.host.Empty():
		return input.Errorf("plan: isolated", "at least one CPU that is not isolated", "no CPU is left for the host")
	case !v.isolated.Within(v.all):
		return input.Errorf("plan: isolated", "CPUs of the plan: "+v.all.String(), "there is no CPU %s",
			v.isolated.Without(v.all))
	}
	return nil
}

// emulators returns the CPUs of guests' other threads.
func (v *view) emulators() cpuset.Set { return v.EmulatorCPUs() }

// router returns all CPUs of the data plane's process.
func (v *view) router() cpuset.Set { return v.workers.Or(v.service).Or(v.control) }

// note returns the first line of a generated file.
func (v *view) note() string { return "# " + v.noteText() + "\n" }

func (v *view) noteText() string {
	if v.Plan.Machine == "" {
		return "Written by 'corelane plan export'."
	}
	return "Written by 'corelane plan export' for " + v.Plan.Machine + "."
}

// spaced writes a list with spaces, as is usual for systemd's CPUAffinity=: "0 10 20 30".
func spaced(s cpuset.Set) string { return strings.ReplaceAll(s.String(), ",", " ") }

// each writes a list without ranges: "1,2,3".
func each(s cpuset.Set) string {
	var parts []string
	for _, id := range s.IDs() {
		parts = append(parts, cpuset.Of(id).String())
	}
	return strings.Join(parts, ",")
}
