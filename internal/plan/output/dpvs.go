// SPDX-License-Identifier: Apache-2.0
package output

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
)

// dpvs writes the workers and the master as lcores of EAL, numbered by their CPU. Each forwarding worker gets one
// queue, and a host-path worker (kni in DPVS) the next one.
func dpvs(v *view) ([]File, error) {
	cpus, err := v.lcores()
	if err != nil {
		return nil, err
	}
	var pairs []string
	for lcore, cpu := range cpus {
		pairs = append(pairs, fmt.Sprintf("%d@%d", lcore, cpu))
	}
	master := slices.Index(cpus, v.service.First())
	command := "./bin/dpvs -- --lcores " + strings.Join(pairs, ",")
	if master != 0 {
		command += fmt.Sprintf(" --master-lcore %d", master)
	}
	return []File{
		{"/etc/dpvs.conf", "worker_defs, in place of those of the file", v.note() + v.workerDefs(master, cpus), false},
		{"", "command line; from DPDK 20.11: --main-lcore", command + "\n", false},
	}, nil
}

// lcores returns the CPUs of DPVS; an lcore is an index of this list.
func (v *view) lcores() ([]int, error) {
	const most = 64 // DPVS keeps lcores in masks of 64 bits
	cpus := v.workers.Or(cpuset.Of(v.service.First()))
	switch {
	case v.service.Empty():
		return nil, input.Errorf("plan", "a CPU of role service or housekeeping", "no CPU is left for DPVS' master")
	case cpus.Len() > most:
		return nil, input.Errorf("plan", fmt.Sprintf("up to %d workers", most-1),
			"%d workers are more than DPVS can have", v.workers.Len())
	}
	for _, w := range v.Workers {
		if !v.workers.Has(w.CPU) {
			return nil, input.Errorf("plan: workers", "CPUs of a worker's role", "CPU %d of worker %d has another role",
				w.CPU, w.ID)
		}
	}
	return cpus.IDs(), nil
}

func (v *view) workerDefs(master int, cpus []int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "worker_defs {\n    <init> worker cpu0 {\n        type    master\n        cpu_id  %d\n    }\n",
		master)
	block, queue := 0, 0
	for _, role := range []plan.Role{plan.Forwarding, plan.HostPath} {
		for _, w := range v.Workers {
			if w.Role != role {
				continue
			}
			kind := map[plan.Role]string{plan.Forwarding: "slave", plan.HostPath: "kni"}[role]
			block++
			fmt.Fprintf(&b,
				"\n    <init> worker cpu%d {\n        type    %s\n        "+
					"cpu_id  %d\n        port    %s {\n            rx_queue_ids     %d\n            tx_queue_ids    "+
					" %d\n",
				block, kind, slices.Index(cpus, w.CPU), v.port(), queue, queue)
			b.WriteString(v.isolatedRx(w.ID, cpus))
			b.WriteString("        }\n    }\n")
			queue++
		}
	}
	return b.String() + "}\n"
}

// isolatedRx lists the workers that receive for a forwarding worker.
func (v *view) isolatedRx(id int, cpus []int) string {
	var lcores []string
	for _, w := range v.Workers {
		if w.Role == plan.IsolatedRx && w.Target == id {
			lcores = append(lcores, fmt.Sprint(slices.Index(cpus, w.CPU)))
		}
	}
	if len(lcores) == 0 {
		return ""
	}
	size := v.RingSize
	if size == 0 {
		size = 1048576 // DPVS' own default
	}
	return fmt.Sprintf("            isol_rx_cpu_ids  %s\n            isol_rxq_ring_sz %d\n", strings.Join(lcores, " "),
		size)
}

func (v *view) port() string {
	if v.Port == "" {
		return "dpdk0"
	}
	return v.Port
}
