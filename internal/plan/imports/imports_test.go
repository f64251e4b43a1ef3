// SPDX-License-Identifier: Apache-2.0
package imports

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/plan/output"
	"github.com/corelane/corelane/internal/plan/plantest"
	"github.com/corelane/corelane/internal/topology/topologytest"
)

// load reads texts as files a, b, c, ...
func load(t *testing.T, o Options, texts ...string) *Reading {
	t.Helper()
	var files []File
	for i, text := range texts {
		files = append(files, File{Name: string(rune('a' + i)), Text: text})
	}
	r, err := Load(files, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func fixture(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// summary returns the findings in short form.
func summary(list []Finding) string {
	var b strings.Builder
	for _, f := range list {
		b.WriteString(string(f.Severity) + " " + f.Where + " " + f.What + "\n")
	}
	return b.String()
}

// Exported files are recognised, name the same CPUs, and have no findings.
func TestRoundTrip(t *testing.T) {
	want := map[string]map[string]string{
		"kernel": {"isolcpus": "1-9,11-19,21-29,31-39", "nohz_full": "1-9,11-19,21-29,31-39",
			"irqaffinity": "0,10,20,30"},
		"grub":       {"isolcpus": "1-9,11-19,21-29,31-39", "rcu_nocbs": "1-9,11-19,21-29,31-39"},
		"grubby":     {"isolcpus": "1-9,11-19,21-29,31-39"},
		"tuned":      {"isolcpus": "1-9,11-19,21-29,31-39", "isolated_cores": "1-9,11-19,21-29,31-39"},
		"systemd":    {"host": "0,10,20,30"},
		"irqbalance": {"banned": "1-9,11-19,21-29,31-39"},
		"nova":       {"guests": "6-9,11-19,25-29,31-39", "emulator": "0,10,20,30"},
		"tripleo": {"forwarding": "1-4,21-24", "service": "5", "control": "5", "guests": "6-9,11-19,25-29,31-39",
			"isolcpus": "1-9,11-19,21-29,31-39"},
		"tripleo-ovs": {"forwarding": "1-4,21-24", "service": "5", "guests": "6-9,11-19,25-29,31-39"},
		"kolla": {"forwarding": "1-4,21-24", "service": "5", "guests": "6-9,11-19,25-29,31-39",
			"host": "0,10,20,30"},
		"juju": {"forwarding": "1-4,21-24", "service": "5", "control": "5", "guests": "6-9,11-19,25-29,31-39",
			"isolcpus": "1-9,11-19,21-29,31-39", "host": "0,10,20,30", "banned": "1-9,11-19,21-29,31-39",
			"nohz_full": "1-9,11-19,21-29,31-39"},
		"libvirt":   {"guests": "6-7,26-27", "emulator": "0,10,20,30"},
		"kubelet":   {"reserved": "0-5,10,20-24,30"},
		"container": {"forwarding": "1-4,21-24", "service": "5", "control": "5"},
		"dpvs":      {"forwarding": "1-4,21-24", "service": "5"},
		"node":      {"forwarding": "1-4,21-24"},
		"corelaned": {"forwarding": "1-4,21-24", "service": "5", "control": "5"},
	}
	for format, sets := range want {
		files, err := output.Write(format, plantest.Xeon40(), output.Options{VCPUs: 4, IOThreads: 1, RingSize: 2048})
		if err != nil {
			t.Fatal(err)
		}
		var read []File
		for _, f := range files {
			// drop-ins of units are applied and verified, not imported
			if !strings.Contains(f.Path, "/systemd/system/") {
				read = append(read, File{Name: f.Path, Text: f.Text})
			}
		}
		r, err := Load(read, Options{})
		if err != nil {
			t.Errorf("%s: %v", format, err)
			continue
		}
		for use, cpus := range sets {
			if got := r.cpus(Use(use)); got.String() != cpus {
				t.Errorf("%s: %s is %s, want %s", format, use, got, cpus)
			}
		}
		if found := Check(r, plantest.Xeon40Machine()); Count(found, Wrong) > 0 {
			t.Errorf("%s: %s", format, summary(found))
		}
	}
}

func TestDetect(t *testing.T) {
	for format, text := range map[string]string{
		"kernel":        fixture(t, "cmdline"),
		"container":     fixture(t, "ifcfg-vhost0"),
		"tripleo":       fixture(t, "expert-template.yaml"),
		"dpvs":          fixture(t, "dpvs1.conf"),
		"tuned":         "# Examples:\n# isolated_cores=2,4-7\n# isolated_cores=2-23\n",
		"tuned-profile": "[main]\ninclude=network-latency\n[scheduler]\nisolated_cores=${isolated_cores}\n",
		"systemd":       "[Manager]\nCPUAffinity=0 10 20 30\n",
		"libvirt":       "<domain type='kvm'><name>a</name></domain>",
		"kubelet":       "kind: KubeletConfiguration\ncpuManagerPolicy: none\n",
		"kolla":         "instances:\n  bms2:\n    roles:\n      vrouter:\n        CPU_CORE_MASK: \"0xf\"\n",
		"grub":          "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n",
		"":              "hello\n",
	} {
		if got := Detect(text); got != format {
			t.Errorf("%q, want %q for %s", got, format, text)
		}
	}
	if Detect("./bin/dpvs -- --lcores 0@1,1@2") != "dpvs" {
		t.Error("command line of DPVS")
	}
}

// The template of contrail-specs (full_cpu_partitioning_support.md), and the machine's files after its deployment.
func TestExpert(t *testing.T) {
	m := plantest.Xeon40Machine()
	r := load(t, Options{}, fixture(t, "expert-template.yaml"), fixture(t, "ifcfg-vhost0"), fixture(t, "cmdline"))
	for use, want := range map[Use]string{Forwarding: "1-4,21-24", Guests: "6-9,11-19,25-29,31-39",
		Isolcpus: "1-9,11-19,21-29,31-39", HostAffinity: "0,10,20,30", TunedIsolated: "1-9,11-19,21-29,31-39"} {
		if got := r.cpus(use); got.String() != want {
			t.Errorf("%s: %s, want %s", use, got, want)
		}
	}
	got := summary(Check(r, m))
	for _, want := range []string{
		"wrong a:1 the value of KernelArgs is in typographic quotes\n",
		"warning b:3 the CPUs of service threads are not set\n",
		"note  cores are shared by two workers: CPUs 1-4,21-24\n",
		"note a:3 vcpu_pin_set is deprecated\n",
		"note a:1 CPU 5 is isolated, but has no role\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if _, err := r.Request(nil); err == nil || !strings.Contains(err.Error(), "for all nodes together") {
		t.Error(err)
	}
	w, err := r.Request(m)
	if pages := w.Hugepages; len(pages) != 4 || pages[1] != (plan.HugepageRequest{Node: 1, KiB: 1048576, Pages: 64}) {
		t.Error(pages)
	}
	if err != nil || w.ForwardingCPUs.String() != "1-4,21-24" || w.GuestCPUs.String() != "6-9,11-19,25-29,31-39" ||
		w.HousekeepingCPUs.String() != "0,10,20,30" || !w.Boot {
		t.Errorf("%v %+v", err, w)
	}
}

// CPU 25, of a vCPU, shares its core with CPU 5, of a service thread.
func TestSplitCore(t *testing.T) {
	r := load(t, Options{}, fixture(t, "ifcfg-vhost0"), "SERVICE_CORE_MASK=5\nDPDK_CTRL_THREAD_MASK=5\n",
		"[compute]\ncpu_dedicated_set=6-9,11-19,25-29,31-39\n")
	if got := summary(Check(r, plantest.Xeon40Machine())); !strings.Contains(got,
		"warning  cores are shared by service and guests: CPUs 5,25\n") {
		t.Error(got)
	}
}

func TestRoles(t *testing.T) {
	template := "parameter_defaults:\n  IsolCpuList: \"1-3\"\n  ComputeParameters:\n    IsolCpusList: \"1\"\n  " +
		"OtherParameters:\n    IsolCpusList: \"2\"\n"
	r := &Reading{}
	if err := r.Read("t", template, Options{}); err == nil || !input.Is(err) ||
		!strings.Contains(err.Error(), "--role: t has several roles") {
		t.Error(err)
	}
	r = load(t, Options{Role: "Other"}, template)
	if r.cpus(TunedIsolated).String() != "2" || !strings.Contains(summary(r.Findings), "wrong a:2 unknown key "+
		"'IsolCpuList': is 'IsolCpusList' meant?") {
		t.Errorf("%+v", r)
	}
	if err := (&Reading{}).Read("t", template, Options{Role: "Nobody"}); err == nil {
		t.Error("a role that is not there")
	}
	hosts := "instances:\n  a: {roles: {vrouter: {CPU_CORE_MASK: '0x6'}}}\n  b: {roles: {vrouter: {CPU_CORE_MASK: " +
		"'0xc'}}}\n"
	if err := (&Reading{}).Read("t", hosts, Options{}); err == nil || !strings.Contains(err.Error(), "several hosts") {
		t.Error(err)
	}
	if r = load(t, Options{Role: "b"}, hosts); r.cpus(Forwarding).String() != "2-3" {
		t.Error(r.Claims)
	}
}

func TestNotReadable(t *testing.T) {
	for _, c := range []struct{ text, format, want string }{
		{"hello", "", "f: is not in a known format, or does not set CPUs; valid: --format "},
		{"hello", "tripleoo", "--format: 'tripleoo' is unknown; valid: "},
		{"a: [", "tripleo", "f: is not YAML: "},
		{"", "kubelet", "f: is empty"},
		{"<domain><vcpu>", "", "f: is not XML: "},
		{strings.Repeat("x", MaxSize+1), "", "f: is larger than "},
	} {
		err := (&Reading{}).Read("f", c.text, Options{Format: c.format})
		if err == nil || !input.Is(err) || !strings.HasPrefix(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40s: %v", c.text, err)
		}
	}
}

func TestRequestRefused(t *testing.T) {
	if _, err := load(t, Options{}, "CPU_CORE_MASK=0x6\nSERVICE_CORE_MASK=2\n").Request(nil); err == nil ||
		!strings.Contains(err.Error(), "CPU 2 has two roles") {
		t.Error(err)
	}
	if _, err := load(t, Options{}, "isolated_cores=1-3").Request(nil); err == nil ||
		!strings.Contains(err.Error(), "which CPUs forward") {
		t.Error(err)
	}
	w, err := load(t, Options{}, "CPU_CORE_MASK=0x6\nSERVICE_CORE_MASK=0\n", "[Manager]\nCPUAffinity=0\n").Request(nil)
	if err != nil || !w.ServiceCPUs.Empty() || w.HousekeepingCPUs.String() != "0" {
		t.Errorf("%v %+v", err, w)
	}
}

// Each format reads each text without a panic, and every finding is one line with a reason.
func FuzzRead(f *testing.F) {
	names := append(Formats(), "")
	for _, dir := range []string{"testdata", filepath.Join("..", "output", "testdata", "xeon40"),
		filepath.Join("..", "output", "testdata", "dpvs2")} {
		paths, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, path := range paths {
			if text, err := os.ReadFile(path); err == nil {
				at := slices.Index(names, strings.TrimSuffix(filepath.Base(path), ".txt"))
				f.Add(uint8(max(at, 0)), string(text))
				f.Add(uint8(len(names)-1), string(text))
			}
		}
	}
	for _, c := range findingCases {
		f.Add(uint8(len(names)-1), strings.Join(c.texts, "\n"))
	}
	m := plantest.Xeon40Machine()
	f.Fuzz(func(t *testing.T, format uint8, text string) {
		r := &Reading{}
		if err := r.Read("f", text, Options{Format: names[int(format)%len(names)]}); err != nil {
			if !input.Is(err) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q", err)
			}
			return
		}
		r.defaults()
		if r.Dpvs != nil {
			r.dpvsClaims()
		}
		for _, found := range append(Check(r, nil), Check(r, m)...) {
			if found.What == "" || found.Why == "" || strings.ContainsAny(found.What+found.Instead, "\n\x1b") {
				t.Errorf("%+v", found)
			}
		}
		for _, row := range r.Rows() {
			if row.CPUs.Empty() {
				t.Errorf("%+v", row)
			}
		}
		if _, err := r.Request(m); err != nil && !input.Is(err) {
			t.Error(err)
		}
	})
}

// In a template with several roles the one with DPDK is chosen, and correct values are not reported.
func TestTemplate(t *testing.T) {
	r := load(t, Options{}, fixture(t, "contrail-services.yaml"))
	if r.cpus(Guests).String() != "4-23,26-47,52-71,74-95" || r.cpus(Emulator).String() != "0-1,24-25,48-49,72-73" ||
		len(r.Hugepages) != 2 {
		t.Errorf("%+v", r)
	}
	want := "warning a the CPUs of service threads are not set\nwarning a the CPUs of DPDK's control threads are " +
		"not set\n"
	if got := summary(Check(r, nil)); got != want {
		t.Error(got)
	}
}

// Exports of the planner's plans for all kinds of machines are read back with the same CPUs, or refused in one line.
func TestPlannedRoundTrip(t *testing.T) {
	read := 0
	for path, w := range map[string]plan.Request{
		"xeon-4210":   {Forwarding: 4, Service: 2, Guests: 26, Boot: true},
		"no-smt-20":   {Forwarding: 4, IsolatedRx: 4, Service: 1},
		"odd-even-16": {Guests: 8},
		"epyc-nps4":   {Forwarding: 3, Service: 1, Guests: 8},
		"four-socket": {Forwarding: 6, HostPath: 1, Service: 2, Guests: 40,
			Hugepages: []plan.HugepageRequest{{Node: -1, KiB: 1048576, Pages: 4}}},
		"one-cpu":  {Forwarding: 1, AllowOverlap: true},
		"holes":    {Forwarding: 2, IsolatedRx: 2, Guests: 2},
		"dual-384": {Forwarding: 7, IsolatedRx: 7, HostPath: 1, Service: 2, Guests: 160},
	} {
		p, err := plan.Make(topologytest.Machine(t, path), w)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, format := range output.Names() {
			files, err := output.Write(format, p, output.Options{VCPUs: 1})
			if err != nil {
				if !input.Is(err) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s %s: %v", path, format, err)
				}
				continue
			}
			var texts []File
			for _, f := range files {
				if Detect(f.Text) != "" {
					texts = append(texts, File{Name: f.Path, Text: f.Text})
				}
			}
			r, err := Load(texts, Options{})
			if err != nil {
				t.Errorf("%s %s: %v", path, format, err)
				continue
			}
			read++
			for use, want := range map[Use]string{Forwarding: p.Of(plan.Forwarding, plan.IsolatedRx,
				plan.HostPath).String(), Guests: p.Of(plan.Guests).String(),
				NohzFull: p.Isolated.String()} {
				got := r.cpus(use)
				if use == Forwarding {
					got = r.cpus(Forwarding, IsolatedRx, HostPath)
				}
				if !got.Empty() && got.String() != want && format != "libvirt" && format != "corelaned" &&
					format != "tripleo-ovs" {
					t.Errorf("%s %s: %s is %s, want %s", path, format, use, got, want)
				}
			}
		}
	}
	if read == 0 {
		t.Error("nothing was read back")
	}
}
