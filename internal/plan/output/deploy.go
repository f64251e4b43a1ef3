// SPDX-License-Identifier: Apache-2.0
package output

import (
	"fmt"
	"strings"
)

const containerPath = "/etc/contrail/common_vrouter.env"

// routerArguments returns vRouter's arguments: workers do not yield their CPU, and rings hold bursts.
func (v *view) routerArguments() string {
	args := "--yield_option 0"
	if v.RingSize > 0 {
		args += fmt.Sprintf(" --vr_dpdk_rx_ring_sz %d --vr_dpdk_tx_ring_sz %d", v.RingSize, v.RingSize)
	}
	if v.RunToCompletion {
		args += " --vr_no_load_balance"
	}
	if v.DDP {
		args += " --ddp"
	}
	return args
}

// coreMask writes CPUs for taskset, which would read the list "5", without a comma or dash, as a mask: CPUs 0 and 2.
func (v *view) coreMask() string { return "0x" + v.workers.Mask() }

// masks returns the variables of vRouter's container. Service and control CPUs are lists, because vRouter reads
// hexadecimal numbers into 32 bits, and a number that does not fit becomes 0, which means all CPUs.
func (v *view) masks() []string {
	return []string{"CPU_CORE_MASK", v.coreMask(), "SERVICE_CORE_MASK", v.service.String(), "DPDK_CTRL_THREAD_MASK",
		v.control.String(), "DPDK_COMMAND_ADDITIONAL_ARGS", v.routerArguments()}
}

func container(v *view) ([]File, error) {
	env := v.note()
	for i, list := 0, v.masks(); i < len(list); i += 2 {
		env += list[i] + "=" + shellWord(list[i+1]) + "\n"
	}
	return []File{
		{containerPath, "environment of the containers", env, false},
		{"/etc/sysconfig/network-scripts/ifcfg-vhost0", "the workers' CPUs in TripleO's interface file",
			"CPU_LIST=" + each(v.workers) + "\n", false},
	}, nil
}

func shellWord(s string) string {
	if strings.ContainsAny(s, " \t\"'$") {
		return `"` + s + `"`
	}
	return s
}

// kolla writes two files: the deployer's has vRouter's variables in the role of each host; kolla-ansible's has only
// the CPUs of containers, and QEMU runs in libvirt's container.
func kolla(v *view) ([]File, error) {
	host := v.Plan.Machine
	if host == "" {
		host = "compute"
	}
	instances := v.note() + "instances:\n  " + fmt.Sprintf("%q", host) + ":\n    roles:\n      vrouter:\n" +
		pairs("        ", append([]string{"AGENT_MODE",
			"dpdk"}, v.masks()...)...) +
		"kolla_config:\n  customize:\n    nova.conf: |\n"
	files, err := nova(v)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(files[0].Text) {
		if !strings.HasPrefix(line, "#") {
			instances += "      " + line
		}
	}
	globals := v.note() + "default_container_dimensions:\n" + pairs("  ", "cpuset_cpus", v.host.String()) +
		"nova_libvirt_dimensions:\n" + pairs("  ", "cpuset_cpus", v.guests.Or(v.emulators()).String())
	return []File{
		{"config/instances.yaml", "of contrail-ansible-deployer", instances, false},
		{"/etc/kolla/globals.yml", "of kolla-ansible", globals, false},
	}, nil
}

// juju writes coremasks as lists, which the charm passes to the same variables, and a single CPU as a mask for taskset.
func juju(v *view) ([]File, error) {
	text := v.note() + "applications:\n  contrail-agent:\n    options:\n      dpdk: true\n" +
		pairs("      ", "dpdk-coremask", v.coreMask(), "dpdk-service-coremask", v.service.String(),
			"dpdk-ctrl-thread-coremask", v.control.String(), "dpdk-yield-option", "0")
	if v.RingSize > 0 {
		size := fmt.Sprint(v.RingSize)
		text += pairs("      ", "dpdk-rx-ring-sz", size, "dpdk-tx-ring-sz", size)
	}
	text += "  nova-compute:\n    options:\n"
	if v.OldNova {
		text += pairs("      ", "vcpu-pin-set", v.guests.String())
	} else {
		text += pairs("      ", "cpu-dedicated-set", v.guests.String(), "cpu-shared-set", v.emulators().String())
	}
	args, err := v.arguments()
	var rest []string
	for _, a := range args { // leave out arguments for which the charm has an option
		if !strings.HasPrefix(a, "isolcpus=") {
			rest = append(rest, a)
		}
	}
	text += "  sysconfig:\n    options:\n" + pairs("      ", "cpu-affinity-range", v.host.String(),
		"irqbalance-banned-cpus", v.bans().Mask())
	if !v.isolated.Empty() {
		text += pairs("      ", "isolcpus", v.isolcpusFlags()+v.isolated.String())
	}
	text += pairs("      ", "grub-config-flags", `GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX `+strings.Join(rest, " ")+`"`)
	return []File{{"", "overlay of a bundle: juju deploy --overlay", text, false}}, err
}
