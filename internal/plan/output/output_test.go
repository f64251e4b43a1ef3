// SPDX-License-Identifier: Apache-2.0
package output

import (
	"encoding/xml"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/plan/plantest"
	"github.com/corelane/corelane/internal/state"
	"github.com/corelane/corelane/internal/topology"
)

var update = flag.Bool("update", false, "write the golden files")

var plans = map[string]func() *plan.Plan{"xeon40": plantest.Xeon40, "dpvs1": plantest.Dpvs1, "dpvs2": plantest.Dpvs2}

// join returns all files of a format, as the command prints them.
func join(files []File) string {
	var b strings.Builder
	for _, f := range files {
		b.WriteString("==> " + f.Path + " (" + f.What + ")\n" + f.Text)
	}
	return b.String()
}

func write(t *testing.T, format string, p *plan.Plan, o Options) []File {
	t.Helper()
	files, err := Write(format, p, o)
	if err != nil {
		t.Fatalf("%s: %v", format, err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Text, "\n") || f.What == "" {
			t.Errorf("%s: %q %q", format, f.What, f.Text)
		}
	}
	return files
}

func TestGolden(t *testing.T) {
	for name, make := range plans {
		for _, f := range Formats() {
			o := Options{VCPUs: 4, IOThreads: 1, OldKernel: f.Name == "tripleo" && name == "xeon40",
				OldNova: f.Name == "tripleo" && name == "xeon40"}
			if name != "xeon40" && f.Name == "libvirt" {
				continue // no guests there
			}
			golden := filepath.Join("testdata", name, f.Name+".txt")
			got := join(write(t, f.Name, make(), o))
			if *update {
				_ = os.MkdirAll(filepath.Dir(golden), 0o755)
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || got != string(want) {
				t.Errorf("%s: %v\n%s", golden, err, got)
			}
		}
	}
}

// The exports have the values that the expert configured by hand.
func TestExpertsValues(t *testing.T) {
	p := plantest.Xeon40()
	o := Options{OldKernel: true, OldNova: true}
	for format, wants := range map[string][]string{
		"kernel": {"isolcpus=1-9,11-19,21-29,31-39 ", "nohz_full=1-9,11-19,21-29,31-39 ",
			"rcu_nocbs=1-9,11-19,21-29,31-39 ", "default_hugepagesz=1G hugepagesz=1G hugepages=32",
			"skew_tick=1", "iommu=pt", "intel_iommu=on", "nosoftlockup"},
		"tripleo": {`NovaVcpuPinSet: "6-9,11-19,25-29,31-39"`, `TunedProfileName: "cpu-partitioning"`,
			`IsolCpusList: "1-9,11-19,21-29,31-39"`, "ContrailDpdkParameters:"},
		"tuned":     {"isolated_cores=1-9,11-19,21-29,31-39\n", "no_balance_cores=1-9,11-19,21-29,31-39\n"},
		"systemd":   {"CPUAffinity=0 10 20 30\n"},
		"container": {"CPU_LIST=1,2,3,4,21,22,23,24\n", "CPU_CORE_MASK=0x1e0001e\n", "SERVICE_CORE_MASK=5\n"},
		"nova":      {"vcpu_pin_set = 6-9,11-19,25-29,31-39\n"},
	} {
		text := join(write(t, format, p, o))
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", format, want, text)
			}
		}
	}
}

// tokens returns the words of a configuration without comments.
func tokens(text string) string {
	var words []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		words = append(words, strings.Fields(line)...)
	}
	return strings.Join(words, " ")
}

func TestDpvsAsDocumented(t *testing.T) {
	for name, command := range map[string]string{
		"dpvs1": "./bin/dpvs -- --lcores 0@1,1@2,2@3,3@4,4@5\n",
		"dpvs2": "./bin/dpvs -- --lcores 0@1,1@2,2@3,3@4,4@5,5@11,6@12,7@13,8@14 --master-lcore 2\n",
	} {
		files := write(t, "dpvs", plans[name](), Options{})
		documented, err := os.ReadFile(filepath.Join("..", "imports", "testdata", name+".conf"))
		if err != nil {
			t.Fatal(err)
		}
		if files[1].Text != command || tokens(files[0].Text) != tokens(string(documented)) {
			t.Errorf("%s\n%s", files[1].Text, files[0].Text)
		}
	}
}

// Files of formats with a parser can be parsed.
func TestParse(t *testing.T) {
	p := plantest.Xeon40()
	for _, format := range []string{"tripleo", "tripleo-ovs", "kolla", "juju", "kubelet", "node"} {
		for _, f := range write(t, format, p, Options{}) {
			var any any
			if err := yaml.Unmarshal([]byte(f.Text), &any); err != nil {
				t.Errorf("%s: %v\n%s", format, err, f.Text)
			}
		}
	}
	var d domain
	text := write(t, "libvirt", p, Options{VCPUs: 2})[0].Text
	if err := xml.Unmarshal([]byte(text), &d); err != nil || d.CPUTune.VCPUPin[0].CPUSet != "6" ||
		d.CPUTune.VCPUPin[1].CPUSet != "26" {
		t.Errorf("%v\n%s", err, text)
	}
	s, err := state.Load("node.yaml", []byte(write(t, "node", plantest.Dpvs2(), Options{})[0].Text))
	if err != nil || len(s.Workers) != 8 || s.Workers[4].Target != "0" || s.Workers[4].Cpu != 11 {
		t.Errorf("%v, %v", err, s)
	}
}

// The guest's memory comes from the nodes of its vCPUs.
func TestGuestMemory(t *testing.T) {
	bare := plantest.Xeon40()
	bare.Layout = nil
	for _, c := range []struct {
		p    *plan.Plan
		o    Options
		want string
	}{
		{plantest.Xeon40(), Options{VCPUs: 2}, `nodeset="0"`},
		{plantest.Xeon40(), Options{VCPUs: 2, Skip: 8}, `nodeset="1"`},
		{plantest.Xeon40(), Options{VCPUs: 9}, `nodeset="0-1"`},
		{bare, Options{VCPUs: 2}, ""},
	} {
		text := write(t, "libvirt", c.p, c.o)[0].Text
		if !strings.Contains(text, c.want) || c.want == "" && strings.Contains(text, "numatune") {
			t.Errorf("%+v: not %s in\n%s", c.o, c.want, text)
		}
	}
}

func TestMachineMasks(t *testing.T) {
	m := plantest.Xeon40Machine()
	m.IRQs = []topology.IRQ{{Number: 40, Affinity: cpuset.Range(0, 39)},
		{Number: 41, Affinity: cpuset.Of(3), Managed: true}, {Number: 42,
			Affinity: cpuset.Of(10)}}
	m.Interfaces = []topology.Interface{{Name: "eno1", RPS: []cpuset.Set{{}, cpuset.Range(0, 3)},
		XPS: []cpuset.Set{cpuset.Of(1), cpuset.Of(0)}}}
	got := write(t, "irq", plantest.Xeon40(), Options{Machine: m})[0].Text
	want := `/proc/irq/default_smp_affinity=40100401
/sys/devices/virtual/workqueue/cpumask=40100401
/proc/irq/40/smp_affinity_list=0,10,20,30
/sys/class/net/eno1/queues/rx-1/rps_cpus=40100401
/sys/class/net/eno1/queues/tx-0/xps_cpus=0
`
	if got != want {
		t.Error(got)
	}
}

func TestNoBoot(t *testing.T) {
	p := plantest.Xeon40()
	p.Request.Boot = false
	if text := write(t, "kernel", p, Options{})[0].Text; !strings.Contains(text, "isolcpus=managed_irq,1-9") ||
		!strings.Contains(text, "hugepages=0:16,1:16") {
		t.Error(text)
	}
	if text := write(t, "tuned", p, Options{})[0].Text; strings.Contains(text, "no_balance_cores") {
		t.Error(text)
	}
}

func TestRefused(t *testing.T) {
	shared := plantest.Make("", "1", "0", plantest.Assignment{Role: plan.Forwarding, CPUs: "1"},
		plantest.Assignment{Role: plan.Housekeeping, CPUs: "0"})
	everywhere := plantest.Make("", "0-1", "0", plantest.Assignment{Role: plan.Forwarding, CPUs: "0-1"})
	eachNode := plantest.Xeon40()
	eachNode.Layout = nil
	eachNode.Hugepages = []plan.HugepageRequest{{Node: -1, KiB: 2048, Pages: 5}}
	odd := plantest.Xeon40()
	odd.Hugepages = []plan.HugepageRequest{{Node: 0, KiB: 65, Pages: 5}}
	for _, c := range []struct {
		format string
		p      *plan.Plan
		o      Options
		want   string
	}{
		{"tune", shared, Options{}, "format: 'tune' is unknown; valid: cgroup, container,"},
		{"cgroup", shared, Options{}, "plan: service threads share CPU 0 with the host"},
		{"kernel", everywhere, Options{}, "plan: isolated: no CPU is left for the host"},
		{"container", plantest.Make("", "1", "0", plantest.Assignment{Role: plan.Guests, CPUs: "1"},
			plantest.Assignment{Role: plan.Housekeeping, CPUs: "0"}),
			Options{}, "plan: the plan has no forwarding workers, but this format needs them"},
		{"kernel", &plan.Plan{}, Options{}, "plan: the plan has no CPUs"},
		{"kernel", eachNode, Options{}, "plan: layout: pages are requested on each node"},
		{"kernel", odd, Options{}, "plan: hugepages: 65 KiB is not a size of hugepages"},
		{"libvirt", plantest.Xeon40(), Options{}, "--vcpus: "},
		{"kernel", plantest.Make("a\nrm -rf /", "1", "0", plantest.Assignment{Role: plan.Forwarding, CPUs: "0-1"}),
			Options{}, "plan: machine: "},
		{"dpvs", plantest.Dpvs1(), Options{Port: "dpdk0 {"}, "--port: "},
		{"dpvs", plantest.Dpvs1(), Options{RingSize: 1000}, "--ring-size: 1000"},
		{"libvirt", plantest.Xeon40(), Options{VCPUs: 20, Skip: 20},
			"--vcpus: the plan has 27 CPUs for guests, of which 20 are skipped; valid: up to 7"},
	} {
		_, err := Write(c.format, c.p, c.o)
		if err == nil || !input.Is(err) || !strings.HasPrefix(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", c.format, err)
		}
	}
	eachNode.Layout = plantest.Xeon40().Layout
	if text := write(t, "kernel", eachNode, Options{})[0].Text; !strings.Contains(text,
		"hugepagesz=2M hugepages=0:5,1:5") {
		t.Error(text)
	}
}

// The script runs on plain files: it reads back what it writes, and reports a missing cpuset controller.
func TestPartitionScript(t *testing.T) {
	top := t.TempDir()
	script := strings.ReplaceAll(write(t, "cgroup", plantest.Dpvs2(), Options{})[0].Text, "top=/sys/fs/cgroup",
		"top="+top)
	run := func() (string, error) {
		out, err := exec.Command("sh", "-c", script).CombinedOutput()
		return string(out), err
	}
	if out, err := run(); err == nil || !strings.Contains(out, "no cgroup v2 with cpuset below "+top) {
		t.Errorf("%v %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(top, "cgroup.controllers"), []byte("cpuset cpu io\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := run(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for file, want := range map[string]string{"cpuset.cpus": "1-5,11-14\n", "cpuset.cpus.partition": "isolated\n"} {
		if got, err := os.ReadFile(filepath.Join(top, "corelane.slice", file)); err != nil || string(got) != want {
			t.Errorf("%s: %q %v", file, got, err)
		}
	}
}

// What only some deployments want is written where it belongs, and only if it is asked for.
func TestOptionsOfExports(t *testing.T) {
	o := Options{RunToCompletion: true, DDP: true, Memory: 3072}
	for format, want := range map[string]string{
		"container": "DPDK_COMMAND_ADDITIONAL_ARGS=\"--yield_option 0 --vr_no_load_balance --ddp\"\n",
		"tripleo":   "ContrailDpdkOptions: \"--yield_option 0 --vr_no_load_balance --ddp\"\n",
		"kolla":     "DPDK_COMMAND_ADDITIONAL_ARGS: \"--yield_option 0 --vr_no_load_balance --ddp\"\n",
		"corelaned": " --run-to-completion\n",
		"nova":      "reserved_huge_pages = node:0,size:1048576,count:3\n",
	} {
		if text := join(write(t, format, plantest.Xeon40(), o)); !strings.Contains(text, want) {
			t.Errorf("%s: no %q in\n%s", format, want, text)
		}
		if text := join(write(t, format, plantest.Xeon40(), Options{})); strings.Contains(text, want) {
			t.Errorf("%s: %q without being asked for", format, want)
		}
	}
}

// Arguments for the IOMMU fit the machine, if it is known.
func TestIOMMU(t *testing.T) {
	for want, m := range map[string]*topology.Machine{
		" intel_iommu=on iommu=pt ": nil,
		" nosoftlockup iommu=pt ":   {CPUs: []topology.CPU{{Model: "AMD EPYC 7543 32-Core Processor"}}},
		" iommu.passthrough=1 ": {CPUs: []topology.CPU{{}},
			Kernel: topology.Kernel{Release: "5.14.0-427.el9.aarch64"}},
	} {
		if text := join(write(t, "kernel", plantest.Xeon40(), Options{Machine: m})); !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}
