// SPDX-License-Identifier: Apache-2.0
package verify

import (
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/topology"
)

// The kernel lists CPUs that are offline among those that it isolates.
func TestIsolatedAndOffline(t *testing.T) {
	m := full()
	m.CPUs[39].Online = false
	if f := find(t, Check(m, fieldPlan()), "boot.isolcpus"); f.Verdict != Pass {
		t.Error(said(f))
	}
}

// An interrupt that may go to a worker's CPU goes to the plan's CPUs for interrupts, wherever it is now.
func TestInterruptOnAnIsolatedCPU(t *testing.T) {
	for at, want := range map[string]string{"6": "0,10,20,30", "10": "10"} {
		m := full()
		m.IRQs = append(m.IRQs, topology.IRQ{Number: 41, Name: "nvme0q1", Affinity: set("0-39"), Effective: set(at)})
		f := find(t, Check(m, fieldPlan()), "irq.affinity")
		if f.Verdict != Warn || f.Evidence[0].Fix == nil || f.Evidence[0].Fix.Value != want {
			t.Errorf("on CPU %s: %s", at, said(f))
		}
	}
}

// Between the installation of a plan and the next boot only systemd keeps the host off the workers' CPUs.
func TestBeforeTheBoot(t *testing.T) {
	m := full()
	m.Kernel.Isolated, m.Kernel.NohzFull, m.Kernel.Cmdline = cpuset.Set{}, cpuset.Set{}, "ro quiet"
	m.Services.Tuned, m.Services.TunedVariables = "", nil
	f := find(t, Check(m, fieldPlan()), "isolation.state")
	if f.Verdict != Warn || !strings.Contains(said(f), "systemd starts services on CPUs 0,10,20,30") {
		t.Error(said(f))
	}
}
