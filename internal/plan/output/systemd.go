// SPDX-License-Identifier: Apache-2.0
package output

import (
	"fmt"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
)

const (
	systemdPath     = "/etc/systemd/system.conf.d/90-corelane.conf"
	partitionScript = "/usr/local/sbin/corelane-partitions"
)

// systemd writes CPUAffinity=, which all processes inherit and may change, and AllowedCPUs=, a cpuset that processes
// of a slice cannot leave (cgroup v2 only). An empty CPUAffinity= forgets the lists of earlier files, to which ours
// would be added. systemd.exec(5), systemd.resource-control(5).
func systemd(v *view) ([]File, error) {
	host, own := v.host.String(), v.router()
	files := []File{{systemdPath, "CPUs of all processes that systemd starts",
		v.note() + "[Manager]\nCPUAffinity=\nCPUAffinity=" + spaced(v.host) + "\n", false}}
	for _, unit := range []struct{ name, section string }{{"system.slice", "Slice"}, {"user.slice", "Slice"},
		{"init.scope", "Scope"}} {
		files = append(files, v.dropIn(unit.name, unit.section, "AllowedCPUs="+host))
	}
	if !v.guests.Empty() {
		files = append(files, v.dropIn("machine.slice", "Slice", "AllowedCPUs="+v.guests.Or(v.emulators()).String()))
	}
	files = append(files, v.dropIn("corelane.slice", "Slice", "AllowedCPUs="+own.String()),
		v.dropIn("corelaned.service", "Service", "Slice=corelane.slice\nCPUAffinity=\nCPUAffinity="+spaced(own)))
	return files, nil
}

func (v *view) dropIn(unit, section, text string) File {
	return File{"/etc/systemd/system/" + unit + ".d/90-corelane.conf", "drop-in of " + unit, v.note() + "[" + section +
		"]\n" + text + "\n", false}
}

// partitions writes a script. A partition has its own scheduling domain, or none if it is "isolated". The kernel
// accepts every write and reports in cpuset.cpus.partition whether it took effect, so the script reads that back
// (Documentation/admin-guide/cgroup-v2.rst).
func partitions(v *view) ([]File, error) {
	own := v.router()
	if !own.Within(v.isolated) {
		return nil, input.Errorf("plan", "a request with service CPUs (service: 1)",
			"service threads share CPU %s with the host, but a process in an isolated partition has only the "+
				"partition's CPUs", own.Without(v.isolated))
	}
	text := "#!/bin/sh\n" + v.note() + partitionFunction + partitionCall("corelane.slice", own)
	switch guests := v.guests.Or(v.emulators()); {
	case v.guests.Empty():
	case guests.Within(v.isolated):
		text += partitionCall("machine.slice", guests)
	default:
		text += fmt.Sprintf("# machine.slice gets none: guests' other threads share CPU %s with the host.\n",
			guests.Without(v.isolated))
	}
	unit := v.note() + `[Unit]
Description=Isolated partitions of CPUs
Before=corelaned.service libvirtd.service virtqemud.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=` + partitionScript + `

[Install]
WantedBy=multi-user.target
`
	return []File{
		{partitionScript, "creates the partitions and reads them back", text, true},
		{"/etc/systemd/system/corelane-partitions.service", "runs the script at boot", unit, false},
	}, nil
}

const partitionFunction = `# Linux 6.1 or later; cpuset.cpus.exclusive exists from 6.7.
set -eu
top=/sys/fs/cgroup
grep -qw cpuset $top/cgroup.controllers || { echo "$0: no cgroup v2 with cpuset below $top" >&2; exit 1; }
echo +cpuset >$top/cgroup.subtree_control
partition() {
  mkdir -p "$top/$1"
  echo "$2" >"$top/$1/cpuset.cpus"
  [ ! -e "$top/$1/cpuset.cpus.exclusive" ] || echo "$2" >"$top/$1/cpuset.cpus.exclusive"
  echo isolated >"$top/$1/cpuset.cpus.partition"
  state=$(cat "$top/$1/cpuset.cpus.partition")
  [ "$state" = isolated ] || { echo "$0: $1: $state" >&2; exit 1; }
}
`

func partitionCall(group string, cpus cpuset.Set) string {
	return fmt.Sprintf("partition %s %s\n", group, cpus)
}
