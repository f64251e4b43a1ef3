// SPDX-License-Identifier: Apache-2.0
package imports

import (
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/plan/plantest"
	"github.com/corelane/corelane/internal/topology"
)

// dpvsConf returns worker_defs with a master and the given blocks.
func dpvsConf(blocks ...string) string {
	return "worker_defs {\n<init> worker cpu0 {\ntype master\ncpu_id 0\n}\n" + strings.Join(blocks, "\n") + "\n}\n"
}

func slave(name, id, rest string) string {
	return "<init> worker " + name + " {\ntype slave\ncpu_id " + id + "\nport dpdk0 {\n" + rest + "\n}\n}"
}

const (
	ports2     = "rx_queue_ids 0\ntx_queue_ids 0"
	xeonKernel = "isolcpus=1-9,11-19,21-29,31-39 nohz_full=1-9,11-19,21-29,31-39 rcu_nocbs=1-9,11-19,21-29,31-39 " +
		"hugepagesz=1G hugepages=32"
)

// findingCases lists files and some of their findings; a finding with a minus must not be reported.
var findingCases = []struct {
	name  string
	texts []string
	want  []string
}{
	{"the collapse: only guests are isolated", []string{"isolcpus=6-9,25-29", "CPU_LIST=1,2,3,4",
		"[compute]\ncpu_dedicated_set = 6-9,25-29"},
		[]string{"wrong a:1 workers' CPU 1-4 is not isolated, but 6-9,25-29 is"}},
	{"the same without knowing the workers", []string{"isolcpus=6-9", "[compute]\ncpu_dedicated_set = 6-9"},
		[]string{"wrong a:1 only guests' CPUs are isolated (6-9), and none of the router's"}},
	{"Nova's set is isolated in part", []string{"isolcpus=4-15,36-47", "[compute]\ncpu_dedicated_set=6-31,38-63"},
		[]string{"wrong a:1 guests' CPU 16-31,48-63 is not isolated, but 6-15,38-47 is"}},
	{"a worker is forgotten", []string{"isolcpus=1-3", "CPU_LIST=1,2,3,4"}, []string{"wrong a:1 workers' CPU 4 is " +
		"not isolated, but 1-3 is"}},
	{"overlap", []string{"CPU_CORE_MASK=0x1e\nSERVICE_CORE_MASK=4,5\nDPDK_CTRL_THREAD_MASK=0x20"},
		[]string{"wrong a:2 CPU 4 is used for forwarding (CPU_CORE_MASK) and for service (SERVICE_CORE_MASK)",
			"-for control"}},
	{"service and control together", []string{"CPU_CORE_MASK=0x1e\nSERVICE_CORE_MASK=5\nDPDK_CTRL_THREAD_MASK=5"},
		[]string{"-is both"}},
	{"guests on workers", []string{"CPU_LIST=1-4", "NovaComputeCpuDedicatedSet: 4-9"},
		[]string{"wrong b:1 CPU 4 is used for forwarding (CPU_LIST) and for guests (NovaComputeCpuDedicatedSet)"}},
	{"Nova's sets", []string{"[compute]\ncpu_dedicated_set = 4-9\ncpu_shared_set = 0-4"},
		[]string{"wrong a:3 CPU 4 is used for guests"}},
	{"the default mask", []string{"CPU_CORE_MASK=0x01"}, []string{"wrong a:1 a worker is on CPU 0, according to " +
		"CPU_CORE_MASK",
		"wrong a:1 CPU_CORE_MASK has 1 forwarding CPU"}},
	{"the default mask not set", []string{"AGENT_MODE=dpdk\nSERVICE_CORE_MASK=5"},
		[]string{"wrong a:1 a worker is on CPU 0, according to CPU_CORE_MASK, whose default is 0x01"}},
	{"the charm's default", []string{"applications:\n  contrail-agent:\n    options:\n      dpdk: true\n"},
		[]string{"wrong a:4 a worker is on CPU 0, according to dpdk-coremask, whose default is 1"}},
	{"masks missing", []string{"CPU_CORE_MASK=0x1e"}, []string{"wrong a:1 the CPUs of service threads are not set",
		"wrong a:1 the CPUs of DPDK's control threads are not set", "note a:1 yield_option is not set"}},
	{"a bad mask is 0, all CPUs", []string{"SERVICE_CORE_MASK=5;6"},
		[]string{"wrong a:1 SERVICE_CORE_MASK: '5;6' does not name CPUs"}},
	{"0 is all", []string{"SERVICE_CORE_MASK=0x0"}, []string{"wrong a:1 SERVICE_CORE_MASK: the mask '0x0' is empty"}},
	{"more than 32 bits", []string{"SERVICE_CORE_MASK=0x100000020"}, []string{"wrong a:1 SERVICE_CORE_MASK: CPU 32 " +
		"does not fit into the mask"}},
	{"a number that is a mask", []string{"CPU_CORE_MASK=10"},
		[]string{"warning a:1 CPU_CORE_MASK=10 means CPU 4, not CPU 10"}},
	{"ring size", []string{`DPDK_COMMAND_ADDITIONAL_ARGS="--vr_dpdk_rx_ring_sz 2000 --yield_option 1"`},
		[]string{"wrong a:1 DPDK_COMMAND_ADDITIONAL_ARGS --vr_dpdk_rx_ring_sz: '2000' is not a power of two"}},
	{"yield", []string{"CPU_CORE_MASK=0x6\nDPDK_COMMAND_ADDITIONAL_ARGS=\"--yield_option 1\""},
		[]string{"warning a:2 yield_option is 1"}},
	{"unknown variable", []string{"CPU_CORE_MASK=0x6\nSERVICE_COREMASK=5\nBGP_ASN=64512"},
		[]string{"wrong a:2 unknown key 'SERVICE_COREMASK': is 'SERVICE_CORE_MASK' meant?", "-BGP_ASN"}},
	{"unknown keys of a role", []string{"ContrailDpdkParameters:\n  KernalArgs: isolcpus=1-3\n  Colour: red\n"},
		[]string{"wrong a:2 unknown key 'KernalArgs': is 'KernelArgs' meant?", "note a:3 unknown key 'Colour'"}},
	{"unknown key of TuneD", []string{"isolated_cores=1-3\nisolatedcores=2\ncolour=red"},
		[]string{"wrong a:2 unknown key 'isolatedcores': is 'isolated_cores' meant?",
			"warning a:3 unknown key 'colour'"}},
	{"wrong section", []string{"[DEFAULT]\ncpu_dedicated_set=4-9\n"},
		[]string{"wrong a:2 'cpu_dedicated_set' is in section [DEFAULT]"}},
	{"misspelt kernel argument", []string{"root=/dev/sda isolcpu=1-3 nowatchdog"},
		[]string{"wrong a:1 unknown key 'isolcpu': is 'isolcpus' meant?",
			"-nowatchdog"}},
	{"unknown flag", []string{"isolcpus=managed-irq,domain,1-3"}, []string{"wrong a:1 isolcpus: unknown flag " +
		"'managed-irq'"}},
	{"no domain", []string{"isolcpus=managed_irq,1-3"}, []string{"warning a:1 isolcpus= does not keep the scheduler " +
		"off CPU 1-3"}},
	{"tick", []string{"isolcpus=1-3 rcu_nocbs=1-2"}, []string{"warning a:1 nohz_full= is missing",
		"warning a:1 rcu_nocbs= does not include CPU 3",
		"warning  no hugepages are reserved"}},
	{"TuneD adds the tick's", []string{"ContrailDpdkParameters:\n  KernelArgs: isolcpus=1-3\n  IsolCpusList: 1-3\n  " +
		"TunedProfileName: cpu-partitioning\n"},
		[]string{"-nohz_full"}},
	{"two lists", []string{"KernelArgs: isolcpus=1-3\nIsolCpusList: 1-4\nTunedProfileName: cpu-partitioning\n"},
		[]string{"wrong a:2 IsolCpusList is 1-4, but KernelArgs isolcpus is 1-3"}},
	{"no isolcpus", []string{"IsolCpusList: 1-4\n"}, []string{"warning a:1 IsolCpusList 1-4 without isolcpus=",
		"warning a:1 IsolCpusList without TunedProfileName"}},
	{"no list", []string{"TunedProfileName: cpu-partitioning\n"}, []string{"wrong a:1 TunedProfileName without " +
		"IsolCpusList"}},
	{"the template and what runs", []string{"KernelArgs: isolcpus=1-4 hugepagesz=1G hugepages=16\n",
		"BOOT_IMAGE=/boot/vmlinuz isolcpus=1-3 hugepagesz=1G hugepages=8"},
		[]string{"warning b:1 isolcpus is 1-3, but KernelArgs isolcpus in a:1 is 1-4",
			"warning b:1 8 hugepages of 1048576 KiB, but 16 in an earlier line"}},
	{"mask and list", []string{"CPU_CORE_MASK=0x6", "CPU_LIST=1,2,3"}, []string{"warning b:1 CPU_LIST is 1-3, but " +
		"CPU_CORE_MASK in a:1 is 1-2"}},
	{"spare", []string{"isolcpus=1-9", "CPU_LIST=1,2", "[compute]\ncpu_dedicated_set=4-9"},
		[]string{"note a:1 CPU 3 is isolated, but has no role"}},
	{"service on isolated CPUs", []string{"isolcpus=1-9", "CPU_LIST=1,2\nSERVICE_CORE_MASK=5,6"},
		[]string{"warning b:2 service threads may run on several isolated CPUs: 5-6"}},
	{"service half isolated", []string{"isolcpus=1-5", "SERVICE_CORE_MASK=5,6"},
		[]string{"warning a:1 the CPUs of service and control threads are isolated in part: 5 is isolated, 6 is not"}},
	{"the host on workers", []string{"[Manager]\nCPUAffinity=0 1\n", "CPU_LIST=1,2"},
		[]string{"wrong a:2 the host's services go to workers' CPU 1, according to CPUAffinity"}},
	{"interrupts on workers", []string{"irqaffinity=0,2 isolcpus=1-3", "CPU_LIST=1,2"},
		[]string{"wrong a:1 interrupts go to workers' CPU 2, according to irqaffinity"}},
	{"bans", []string{"IRQBALANCE_BANNED_CPULIST=1", "CPU_LIST=1,2"}, []string{"wrong a:1 irqbalance may send " +
		"interrupts to workers' CPU 2"}},
	{"old bans", []string{"IRQBALANCE_BANNED_CPUS=6", "CPU_LIST=1,2"}, []string{"-irqbalance"}},
	{"kubelet", []string{"kind: KubeletConfiguration\ncpuManagerPolicy: none\nreservedSystemCPUs: 0-1\n" +
		"cpuManagerPolcy: static\n", "CPU_LIST=1,2"},
		[]string{"wrong a:3 the kubelet may give pods workers' CPU 2", "warning a:2 cpuManagerPolicy is 'none'",
			"warning a:3 reservedSystemCPUs is set without strict",
			"wrong a:4 unknown key 'cpuManagerPolcy'"}},
	{"both of Nova's", []string{"[DEFAULT]\nvcpu_pin_set=4-9\n[compute]\ncpu_dedicated_set=4-9,^8"},
		[]string{"wrong a:2 both vcpu_pin_set and cpu_dedicated_set are set"}},
	{"hugepages", []string{"ContrailDpdkParameters:\n  KernelArgs: hugepagesz=1G hugepages=0:1\n  " +
		"ExtraSysctlSettings:\n    vm.nr_hugepages:\n      value: 4\n"},
		[]string{"warning a:5 vm.nr_hugepages is 4, but hugepages= has 1 pages of 1 GiB",
			"wrong  1024 MB in hugepages are too few"}},
	{"size of hugepages", []string{"hugepagesz=3G hugepages=x"},
		[]string{"wrong a:1 hugepagesz: no processor has hugepages of '3G'",
			"wrong a:1 hugepages: 'x' is not a number of pages"}},
	{"guest",
		[]string{"<domain>\n<vcpu>3</vcpu>\n<cputune>\n<vcpupin vcpu='0' cpuset='6'/>\n<vcpupin vcpu='1' " +
			"cpuset='6'/>\n<vcpupn vcpu='2' " +
			"cpuset='8'/></cputune></domain>"},
		[]string{"wrong a:5 vCPUs 0 and 1 are both on CPU 6", "warning a vCPU 2 is not pinned",
			"warning a emulatorpin is missing", "wrong a:6 unknown key 'vcpupn': is 'vcpupin' meant?"}},
	{"guest on isolated CPUs", []string{"isolcpus=6-9",
		"<domain><vcpu>1</vcpu><cputune><vcpupin vcpu='0' cpuset='6-7'/><emulatorpin cpuset='6'/></cputune></domain>"},
		[]string{"wrong b:1 vCPU 0 may run on several isolated CPUs: 6-7",
			"wrong b:1 CPU 6 is used for guests (vcpupin 0) and for emulator (emulatorpin)"}},
	{"no such CPU", []string{"CPU_LIST=1,40", "isolcpus=1-50"},
		[]string{"wrong a:1 CPU_LIST: CPU 40 is missing or offline",
			"warning b:1 isolcpus: CPUs 40-50 are missing or offline"}},
	{"node of the NIC", []string{"CPU_LIST=1,11"}, []string{"warning  workers on CPU 11 are not on node 0 of " +
		"0000:3b:00.0"}},
	{"sibling of the first", []string{"CPU_LIST=2,20"}, []string{"warning  a worker is on CPU 20, which shares the " +
		"first core with CPU 0"}},
	{"node file", []string{"workers:\n  - {id: 0, cpu: 2}\n  - {id: 1, cpu: 2, colour: red}\n"},
		[]string{"wrong a:3 workers[1].colour: unknown key"}},
	{"two workers on one CPU", []string{"workers:\n  - {id: 0, cpu: 2}\n  - {id: 1, cpu: 2}\n"},
		[]string{"wrong a:3 workers[1].cpu: 2 is the CPU of worker 0"}},
	{"two workers that sleep on one CPU", []string{"workers:\n  - {id: 0, cpu: 2, idle: sleep}\n  - {id: 1, cpu: 2, " +
		"idle: sleep}\n"}, []string{"wrong a workers 0 and 1 are both on CPU 2"}},
	{"corelaned", []string{"CORELANED_OPTIONS=--worker-cpus 2-5 --service-cpus (5,6)"},
		[]string{"wrong a:1 CPU 5 is used for forwarding (CORELANED_OPTIONS --worker-cpus) and for service"}},

	{"dpvs alone", []string{dpvsConf(slave("cpu1", "1", ports2))},
		[]string{"warning a the CPUs of the workers' cpu_id are not known"}},
	{"dpvs: a queue twice", []string{dpvsConf(slave("cpu1", "1", ports2), slave("cpu2", "2", ports2))},
		[]string{"wrong a:17 rx queue 0 of dpdk0 is polled by both cpu1 and cpu2", "wrong a:17 tx queue 0"}},
	{"dpvs: a gap", []string{dpvsConf(slave("cpu1", "1", "rx_queue_ids 0 2\ntx_queue_ids 0"))},
		[]string{"wrong a rx queue 1 of dpdk0 has no worker"}},
	{"dpvs: not mapped", []string{dpvsConf(slave("cpu1", "3", ports2)), "dpvs -- --lcores 0@1,1@2"},
		[]string{"wrong a:6 worker cpu1 has cpu_id 3, which --lcores does not map",
			"note b lcore 1 (CPU 2) is not a worker"}},
	{"dpvs: one CPU twice", []string{dpvsConf(slave("cpu1", "1", ports2)), "dpvs -- --lcores 0@1,1@1"},
		[]string{"wrong b lcores 0 and 1 are both on CPU 1"}},
	{"dpvs: receiver unknown", []string{dpvsConf(slave("cpu1", "1", ports2+"\nisol_rx_cpu_ids 9\n"+
		"isol_rxq_ring_sz 1000")), "dpvs -- --lcores 0@1,1@2"},
		[]string{"wrong a:9 isol_rx_cpu_ids 9: --lcores does not map this lcore",
			"wrong a:13 isol_rxq_ring_sz: '1000'"}},
	{"dpvs: receiver is a worker", []string{dpvsConf(slave("cpu1", "1", ports2+"\nisol_rx_cpu_ids 1"))},
		[]string{"wrong a:9 isol_rx_cpu_ids 1 is worker cpu1"}},
	{"dpvs: master elsewhere", []string{dpvsConf(slave("cpu1", "1", ports2)), "dpvs -- --lcores 0@1,1@2 " +
		"--master-lcore 1 -c 3"},
		[]string{"wrong a:2 the master's cpu_id is 0, but the main lcore is 1", "wrong b -c 3"}},
	{"dpvs: unknown keys", []string{dpvsConf("<init> worker cpu1 {\ntype slav\ncpu_id one\ncolour red\nport dpdk0 {\n" +
		"rx_queue_id 0\n}\n}")},
		[]string{"wrong a:7 worker cpu1: unknown type 'slav'", "wrong a:8 worker cpu1: cpu_id 'one'",
			"wrong a:9 unknown key 'colour'",
			"wrong a:11 unknown key 'rx_queue_id': is 'rx_queue_ids' meant?"}},
	{"dpvs: no worker", []string{"worker_defs {\n}\n"}, []string{"wrong a worker_defs has no workers"}},
	{"dpvs: two masters", []string{dpvsConf("worker m {\ntype master\ncpu_id 0\n}")},
		[]string{"wrong a 2 masters", "wrong a no forwarding worker",
			"wrong a:6 workers cpu0 and m both have cpu_id 0"}},
	{"dpvs: a port not served", []string{dpvsConf(slave("cpu1", "1", ports2), "worker cpu2 {\ntype slave\ncpu_id 2\n"+
		"port dpdk1 {\n"+ports2+"\n}\n}")},
		[]string{"wrong a:14 worker cpu2 does not serve dpdk0", "wrong a:6 worker cpu1 does not serve dpdk1"}},
	{"dpvs: queues of the device", []string{"netif_defs {\n<init> device dpdk0 {\nrx {\nqueue_number 8 <16, 0-16>\n" +
		"}\n}\n}\n" + dpvsConf(slave("cpu1", "1",
		ports2))},
		[]string{"wrong a dpdk0 has queue_number 8, but workers poll 1 rx queues"}},
	{"dpvs: braces", []string{"worker_defs {\n worker a {\n"}, []string{"wrong a:2 2 '}' missing at the end"}},
}

func TestFindings(t *testing.T) {
	for _, c := range findingCases {
		got := summary(Check(load(t, Options{}, c.texts...), plantest.Xeon40Machine()))
		for _, want := range c.want {
			if not, no := strings.CutPrefix(want, "-"); no == strings.Contains(got,
				map[bool]string{true: not, false: want}[no]) {
				t.Errorf("%s: %q\n%s", c.name, want, got)
			}
		}
	}
}

// A correct set of files has no findings, with and without the machine.
func TestNothingWrong(t *testing.T) {
	texts := []string{xeonKernel, "CPU_CORE_MASK=0x1e0001e\nSERVICE_CORE_MASK=5\nDPDK_CTRL_THREAD_MASK=5\n" +
		"DPDK_COMMAND_ADDITIONAL_ARGS=\"--yield_option 0\"",
		"[compute]\ncpu_dedicated_set = 6-9,11-19,26-29,31-39\ncpu_shared_set = 0,10,20,30",
		"[Manager]\nCPUAffinity=0 10 20 30"}
	for _, m := range []*topology.Machine{nil, plantest.Xeon40Machine()} {
		if found := Check(load(t, Options{}, texts...), m); Count(found, Wrong)+Count(found, Warning) > 0 {
			t.Error(summary(found))
		}
	}
}

func TestKernelRelease(t *testing.T) {
	m := plantest.Xeon40Machine()
	m.Kernel.Release = "3.10.0-1062.9.1.el7.x86_64"
	m.Nodes[0].MemoryKiB = 1 << 20
	got := summary(Check(load(t, Options{}, "isolcpus=managed_irq,domain,1-3 hugepagesz=1G hugepages=0:16,1:16"), m))
	for _, want := range []string{"does not know isolcpus=managed_irq", "does not know hugepages= by node",
		"node 0 has 1024 MB, less than the requested hugepages"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q\n%s", want, got)
		}
	}
}
