// SPDX-License-Identifier: Apache-2.0
package output

import "strings"

const (
	tunedVariablesPath = "/etc/tuned/cpu-partitioning-variables.conf"
	tunedProfilePath   = "/etc/tuned/corelane/tuned.conf"
)

// spared lists expressions of thread names that TuneD's scheduler plugin does not move: those of its profile
// cpu-partitioning, which a child's list replaces, then ours, and newer names of DPDK's threads (lcore-worker from
// 20.11, rte-worker from 22.11, dpdk- later).
var spared = []string{".*pmd.*", ".*PMD.*", "^DPDK", ".*qemu-kvm.*", "^contrail-vroute$", "^lcore-slave-.*",
	"^rte_mp_handle$", "^rte_mp_async$", "^eal-intr-thread$",
	"^corelaned$", "^pmd-.*", "^svc-.*", "^lcore-worker-.*", "^rte-worker-.*", "^dpdk-.*", "^vhost.*",
	".*qemu-system.*", "^CPU [0-9]+/KVM$"}

// tuned sets no_balance_cores too, because isolated_cores alone does not set isolcpus=.
func tuned(v *view) ([]File, error) {
	variables := v.note() + "isolated_cores=" + v.isolated.String() + "\n"
	if v.Request.Boot {
		variables += "no_balance_cores=" + v.isolated.String() + "\n"
	}
	profile := v.note() + `# Then: tuned-adm profile corelane
[main]
summary=CPU partitioning that leaves the threads of packet workers and guests alone
include=cpu-partitioning

[scheduler]
ps_blacklist=` + strings.Join(spared, ";") + "\n"
	return []File{
		{tunedVariablesPath, "variables of TuneD's cpu-partitioning", variables, false},
		{tunedProfilePath, "child profile of TuneD", profile, false},
	}, nil
}
