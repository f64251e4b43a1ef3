// SPDX-License-Identifier: Apache-2.0
package imports

import (
	"github.com/corelane/corelane/internal/cpuset"
)

// File is a file to read.
type File struct{ Name, Text, Format string }

// Load reads the files of one machine.
func Load(files []File, o Options) (*Reading, error) {
	r := &Reading{}
	for _, f := range files {
		own := o
		if f.Format != "" {
			own.Format = f.Format
		}
		if err := r.Read(f.Name, f.Text, own); err != nil {
			return nil, err
		}
	}
	r.defaults()
	if r.Dpvs != nil {
		r.dpvsClaims()
	}
	return r, nil
}

// defaults adds the default of vRouter and its charm: CPU 0 forwards.
func (r *Reading) defaults() {
	if _, said := r.Of(Forwarding); said != nil {
		return
	}
	mode, charm := r.setting("AGENT_MODE"), r.setting("juju dpdk")
	switch {
	case mode != nil && mode.Value == "dpdk":
		r.Claims = append(r.Claims, Claim{Forwarding, cpuset.Of(0), "CPU_CORE_MASK, whose default is 0x01", mode.File,
			mode.Line})
	case charm != nil && charm.Value == "true":
		r.Claims = append(r.Claims, Claim{Forwarding, cpuset.Of(0), "dpdk-coremask, whose default is 1", charm.File,
			charm.Line})
	}
}

// dpvsClaims maps lcores to CPUs. Without --lcores EAL numbers lcores by their CPU.
func (r *Reading) dpvsClaims() {
	d := r.Dpvs
	receivers := map[int]bool{}
	for _, b := range d.Blocks {
		for _, p := range b.Ports {
			for _, lcore := range p.IsolRx {
				receivers[lcore] = true
				r.dpvsClaim(IsolatedRx, "isol_rx_cpu_ids", lcore, p.Line)
			}
		}
	}
	for _, b := range d.Blocks {
		if use := map[string]Use{"master": Service, "slave": Forwarding, "kni": HostPath}[b.Type]; use != "" &&
			!receivers[b.Lcore] {
			r.dpvsClaim(use, "worker "+b.Name, b.Lcore, b.Line)
		}
	}
	if len(d.Blocks) > 0 {
		return
	}
	for _, lcore := range d.Order { // only the command line is known: dpvs.conf has the roles
		use := Forwarding
		if lcore == d.master() {
			use = Service
		}
		r.Claims = append(r.Claims, Claim{use, d.Lcores[lcore], "--lcores", d.Where, 0})
	}
}

// master returns EAL's main lcore: the given one, else the lowest.
func (d *Dpvs) master() int {
	if d.Master >= 0 {
		return d.Master
	}
	lowest := -1
	for _, lcore := range d.Order {
		if lowest < 0 || lcore < lowest {
			lowest = lcore
		}
	}
	return max(lowest, 0)
}

func (r *Reading) dpvsClaim(use Use, key string, lcore, line int) {
	if lcore < 0 {
		return
	}
	cpus := cpuset.Of(lcore)
	if len(r.Dpvs.Lcores) > 0 {
		cpus = r.Dpvs.Lcores[lcore]
	}
	if !cpus.Empty() {
		r.Claims = append(r.Claims, Claim{use, cpus, key, r.Dpvs.File, line})
	}
}

// Row is one role of a reading.
type Row struct {
	Role Use        `json:"role"`
	CPUs cpuset.Set `json:"cpus"`
	By   string     `json:"by"` // the first setting that says so
}

// Rows returns the CPUs by use, roles of threads first.
func (r *Reading) Rows() []Row {
	var rows []Row
	for _, use := range []Use{Forwarding, IsolatedRx, HostPath, Service, Control, Guests, Emulator, HostAffinity,
		IRQAffinity, Isolcpus, IsolcpusPart, TunedIsolated, NohzFull, RcuNocbs, Banned, Reserved} {
		if set, c := r.Of(use); c != nil {
			rows = append(rows, Row{use, set, c.Key + " (" + c.where() + ")"})
		}
	}
	return rows
}

// Unset lists what the files do not set.
func (r *Reading) Unset() []string {
	var list []string
	for _, q := range []struct {
		uses []Use
		text string
	}{
		{[]Use{Forwarding}, "the CPUs of forwarding workers"},
		{[]Use{Service}, "the CPUs of service threads"},
		{[]Use{Control}, "the CPUs of DPDK's control threads"},
		{[]Use{Guests}, "the CPUs of guests"},
		{[]Use{Emulator}, "the CPUs of guests' emulator threads"},
		{[]Use{Isolcpus, IsolcpusPart, TunedIsolated}, "the isolated CPUs"},
		{[]Use{HostAffinity}, "the CPUs of the host's services"},
		{[]Use{IRQAffinity, Banned}, "the CPUs of interrupts"},
	} {
		if _, said := r.Of(q.uses...); said == nil {
			list = append(list, q.text)
		}
	}
	if len(r.Hugepages) == 0 {
		list = append(list, "the number of hugepages")
	}
	return list
}
