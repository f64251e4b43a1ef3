// SPDX-License-Identifier: Apache-2.0
package imports

import (
	"github.com/corelane/corelane/internal/cpuset"
)

// File is a file to read.
type File struct{ Name, Text string }

// Load reads files that belong to one machine.
func Load(files []File, o Options) (*Reading, error) {
	r := &Reading{}
	for _, f := range files {
		if err := r.Read(f.Name, f.Text, o); err != nil {
			return nil, err
		}
	}
	r.defaults()
	if r.Dpvs != nil {
		r.dpvsClaims()
	}
	return r, nil
}

// defaults are what vRouter and its charm do when nothing is said: CPU 0 forwards.
func (r *Reading) defaults() {
	if _, said := r.Of(Forwarding); said != nil {
		return
	}
	mode, charm := r.setting("AGENT_MODE"), r.setting("juju dpdk")
	switch {
	case mode != nil && mode.Value == "dpdk":
		r.Claims = append(r.Claims, Claim{Forwarding, cpuset.Of(0), "CPU_CORE_MASK, whose default is 0x01", mode.File, mode.Line})
	case charm != nil && charm.Value == "true":
		r.Claims = append(r.Claims, Claim{Forwarding, cpuset.Of(0), "dpdk-coremask, whose default is 1", charm.File, charm.Line})
	}
}

// dpvsClaims turns lcores into CPUs. Without --lcores EAL gives each CPU the lcore of its number.
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
		if use := map[string]Use{"master": Service, "slave": Forwarding, "kni": HostPath}[b.Type]; use != "" && !receivers[b.Lcore] {
			r.dpvsClaim(use, "worker "+b.Name, b.Lcore, b.Line)
		}
	}
	if len(d.Blocks) > 0 {
		return
	}
	for _, lcore := range d.Order { // the command line alone: who is who stands in dpvs.conf
		use := Forwarding
		if lcore == d.master() {
			use = Service
		}
		r.Claims = append(r.Claims, Claim{use, d.Lcores[lcore], "--lcores", d.Where, 0})
	}
}

// master is EAL's main lcore: the one that is said, else the lowest.
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
	By   string     `json:"by"` // who says it first
}

// Rows are what the files say, roles of threads first.
func (r *Reading) Rows() []Row {
	var rows []Row
	for _, use := range []Use{Forwarding, IsolatedRx, HostPath, Service, Control, Guests, Emulator, HostAffinity, IRQAffinity, Isolcpus, IsolcpusPart, TunedIsolated, NohzFull, RcuNocbs, Banned, Reserved} {
		if set, c := r.Of(use); c != nil {
			rows = append(rows, Row{use, set, c.Key + " (" + c.where() + ")"})
		}
	}
	return rows
}

// Unsaid are the questions that the files leave open.
func (r *Reading) Unsaid() []string {
	var list []string
	for _, q := range []struct {
		uses []Use
		text string
	}{
		{[]Use{Forwarding}, "which CPUs forward"},
		{[]Use{Service}, "where service threads run"},
		{[]Use{Control}, "where DPDK's control threads run"},
		{[]Use{Guests}, "which CPUs guests get"},
		{[]Use{Emulator}, "where guests' emulator threads run"},
		{[]Use{Isolcpus, IsolcpusPart, TunedIsolated}, "which CPUs are isolated"},
		{[]Use{HostAffinity}, "where the host's services run"},
		{[]Use{IRQAffinity, Banned}, "where interrupts go"},
	} {
		if _, said := r.Of(q.uses...); said == nil {
			list = append(list, q.text)
		}
	}
	if len(r.Hugepages) == 0 {
		list = append(list, "how many hugepages there are")
	}
	return list
}
