// SPDX-License-Identifier: Apache-2.0
package plan

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/topology/topologytest"
)

var update = flag.Bool("update", false, "write the expected plans anew")

// expected returns the plans of testdata/*.txt.
func expected(t *testing.T) map[string]struct {
	m *topology.Machine
	w Request
} {
	named := func(name string) *topology.Machine { return topologytest.Machine(t, name) }
	return map[string]struct {
		m *topology.Machine
		w Request
	}{
		// The choice of contrail-specs for the 2x10-core host: workers 1-4 with siblings, guests
		// 6-9,11-19,25-29,31-39, host 0,10,20,30.
		"xeon-expert": {named("xeon-4210"), Request{Forwarding: 8, ShareCores: true, Service: 1, Guests: 27, Boot: true,
			NICs: []string{"0000:3b:00.0"}}},
		// The same with whole cores: CPU 25, the sibling of the service CPU 5, gets the control threads and not a
		// guest.
		"xeon-whole-cores": {fresh(t), Request{Forwarding: 4, Service: 2, Guests: 26, Boot: true,
			NICs: []string{"0000:3b:00.0"}}},
		"xeon-spill": {fresh(t), Request{Forwarding: 11, IsolatedRx: 11, Service: 2, NICs: []string{"0000:3b:00.0"}}},
		// The examples of DPVS's Worker-Performance-Tuning.md. The first isolates 1-5, as there; the second keeps
		// receivers on the network device's node, while the document has them on the other node.
		"no-smt-1": {named("no-smt-20"), Request{Forwarding: 4, Service: 1, Boot: true, NICs: []string{"eth0"}}},
		"no-smt-2": {named("no-smt-20"), Request{Forwarding: 4, IsolatedRx: 4, Service: 1, Boot: true,
			NICs: []string{"eth0"}}},
		"odd-even": {named("odd-even-16"), Request{Guests: 8, NICs: []string{"enp4s0f0", "enp4s0f1"}}},
		"epyc": {named("epyc-nps4"),
			Request{Forwarding: 3, Service: 1, Guests: 8, NICs: []string{"ens1f0np0"}}},
		"four-socket": {named("four-socket"), Request{Forwarding: 6, HostPath: 1, Service: 2, Guests: 40,
			NICs: []string{"0000:d8:00.0"}}},
		"hybrid": {named("hybrid"), Request{Forwarding: 4, Service: 2, Guests: 4, NICs: []string{"0000:01:00.0"}}},
		// More workers than performance cores.
		"hybrid-full":     {named("hybrid"), Request{Forwarding: 8, Service: 1, NICs: []string{"0000:01:00.0"}}},
		"one-cpu":         {named("one-cpu"), Request{Forwarding: 1, AllowOverlap: true}},
		"one-core":        {smtPair(t), Request{Forwarding: 1, AllowOverlap: true}},
		"holes":           {named("holes"), Request{Forwarding: 2, IsolatedRx: 2, Guests: 2, NICs: []string{"eth0"}}},
		"vm":              {named("vm"), Request{Forwarding: 2, HostPath: 1, Service: 1, NICs: []string{"eth0"}}},
		"container-quota": {container(t), Request{Forwarding: 2, Service: 1}},
		"container":       {named("container"), Request{Forwarding: 1}},
		"dual-384": {named("dual-384"), Request{Forwarding: 7, IsolatedRx: 7, HostPath: 1, Service: 2,
			Guests: 160, NICs: []string{"eth0"}}},
	}
}

func TestExpectedPlans(t *testing.T) {
	for name, c := range expected(t) {
		t.Run(name, func(t *testing.T) {
			p, err := Make(c.m, c.w)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range Validate(c.m, p) {
				t.Error(x)
			}
			golden(t, name, text(p))
		})
	}
}

func golden(t *testing.T, name, have string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(have), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != have {
		t.Errorf("%s (%v): go test -run TestExpectedPlans -update shows the difference; it is now\n%s", file, err, have)
	}
}

// text returns a plan as text.
func text(p *Plan) string {
	var b strings.Builder
	for _, g := range p.Groups() {
		fmt.Fprintf(&b, "%-12s %-24s %s\n", g.Role, g.CPUs, g.Why)
	}
	fmt.Fprintf(&b, "isolated %s\ninterrupts %s\nservice threads %s, control threads %s, emulator threads %s\n",
		p.Isolated, p.IRQs, p.ServiceCPUs(), p.ControlCPUs(), p.EmulatorCPUs())
	for _, w := range p.Workers {
		fmt.Fprintf(&b, "worker %d %s: CPU %d, node %d, target %d\n", w.ID, w.Role, w.CPU, w.Node, w.Target)
	}
	for _, w := range p.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	for _, a := range p.Alternatives {
		fmt.Fprintf(&b, "alternative: %s; gain: %s; cost: %s\n", a.What, a.Gain, a.Cost)
	}
	return b.String()
}

// The plan has the values that an expert wrote into the template of the 2x10-core host.
func TestExpertsValues(t *testing.T) {
	c := expected(t)["xeon-expert"]
	p, err := Make(c.m, c.w)
	if err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2]string{
		"CPU_LIST":    {"1-4,21-24", p.Of(Forwarding).String()},
		"isolcpus":    {"1-9,11-19,21-29,31-39", p.Isolated.String()},
		"NovaPinSet":  {"6-9,11-19,25-29,31-39", p.Of(Guests).String()},
		"CPUAffinity": {"0,10,20,30", p.Of(Housekeeping).String()},
		"service":     {"5", p.ServiceCPUs().String()},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %s, not %s", what, pair[1], pair[0])
		}
	}
}

// Fixed sets are kept even if the planner would choose other CPUs.
func TestFixedChoices(t *testing.T) {
	w := Request{ForwardingCPUs: set("1,2,4,5"), IsolatedRxCPUs: set("11-14"), ServiceCPUs: set("3")}
	m := topologytest.Machine(t, "no-smt-20")
	p, err := Make(m, w)
	if err != nil {
		t.Fatal(err)
	}
	if p.Isolated.String() != "1-5,11-14" || p.ServiceCPUs().String() != "3" || len(p.Workers) != 8 ||
		p.Workers[5].Target != 1 || p.Workers[5].CPU != 12 {
		t.Error(text(p))
	}
	w = Request{ForwardingCPUs: set("1-4"), GuestCPUs: set("6-9,26-29"), HousekeepingCPUs: set("0,10,20,30"),
		HostPathCPUs: set("5"), EmulatorCPUs: set("11,31")}
	if p, err = Make(fresh(t), w); err != nil {
		t.Fatal(err)
	}
	if p.Of(Housekeeping).String() != "0,10,20,30" || p.Of(Idle).String() != "12-19,21-25,32-39" ||
		p.EmulatorCPUs().String() != "11,31" || !p.IRQs.Equal(p.Of(Housekeeping)) {
		t.Error(text(p))
	}
}

// If its cgroups cannot be read, a container has the CPUs of its first process.
func TestContainerWithoutCgroups(t *testing.T) {
	m := fresh(t)
	m.Container, m.Cgroups = true, topology.Cgroups{}
	m.Threads = []topology.Thread{{TID: 1, PID: 1, Allowed: set("11-13,31-32")}}
	p, err := Make(m, Request{Forwarding: 1})
	if err != nil || p.Of(Forwarding).String() != "12" || p.Of(Housekeeping).String() != "11,13,31" {
		t.Error(err, text(p))
	}
	if want := "siblings of CPUs of this plan may not be used (CPU 33)"; !strings.Contains(strings.Join(p.Warnings,
		"\n"), want) {
		t.Error(p.Warnings)
	}
}

// On a host only the quotas of the data plane's groups matter.
func TestQuotaOfHost(t *testing.T) {
	m := fresh(t)
	m.Cgroups.Groups = []topology.Cgroup{{Path: "/system.slice", QuotaUS: 250000, PeriodUS: 100000}}
	m.Threads = []topology.Thread{{TID: 7, PID: 7, Process: "sshd", Cgroup: "/system.slice/sshd.service"}}
	if _, err := Make(m, Request{Forwarding: 4}); err != nil {
		t.Error(err)
	}
	m.Threads = append(m.Threads, topology.Thread{TID: 8, PID: 8, Process: "corelaned",
		Cgroup: "/system.slice/corelaned.service"})
	if _, err := Make(m, Request{Forwarding: 4}); err == nil ||
		!strings.Contains(err.Error(), "quota of 2.5 CPUs of cgroup /system.slice") {
		t.Error(err)
	}
	if p, err := Make(m, Request{Forwarding: 2}); err != nil ||
		!strings.Contains(strings.Join(p.Warnings, "\n"), "cgroup /system.slice has a quota of 2.5 CPUs") {
		t.Error(err)
	}
}

func TestBootIsolation(t *testing.T) {
	s := topologytest.Describe(t, "xeon-4210")
	s.Cmdline = "isolcpus=5-8,25-28"
	p, err := Make(s.Machine(t), Request{Forwarding: 3, NICs: []string{"0000:3b:00.0"}})
	if err != nil {
		t.Fatal(err)
	}
	warned := strings.Join(p.Warnings, "\n")
	if p.Of(Forwarding).String() != "5-7" || !strings.Contains(warned, "CPU 8,28 was isolated at boot") ||
		strings.Contains(warned, "was not at boot") {
		t.Error(text(p))
	}
	if p, err = Make(s.Machine(t), Request{Forwarding: 5, NICs: []string{"0000:3b:00.0"}}); err != nil ||
		p.Of(Forwarding).String() != "1,5-8" ||
		!strings.Contains(strings.Join(p.Warnings, "\n"), "CPU 1,21 should be isolated, but was not at boot") {
		t.Error(err, text(p))
	}
}

// Warnings that none of the expected plans has.
func TestWarnings(t *testing.T) {
	managed, unknown := fresh(t), fresh(t)
	for i := range managed.IRQs {
		managed.IRQs[i].Managed, managed.IRQs[i].Effective = i == 1, set("2")
	}
	unknown.NICs[0].Node = -1
	beside := Request{ForwardingCPUs: set("1"), GuestCPUs: set("21"), AllowOverlap: true}
	for want, c := range map[string]struct {
		m *topology.Machine
		w Request
	}{
		"interrupts 60 are on workers' CPUs and cannot be moved": {managed, Request{Forwarding: 2}},
		"the node of 0000:3b:00.0 is unknown (-1): the plan assumes node 0": {unknown,
			Request{Forwarding: 2, NICs: []string{"0000:3b:00.0"}}},
		"no network device was named (nics): workers begin on node 0": {fresh(t), Request{Forwarding: 2}},
		"node 1 has no housekeeping CPU": {fresh(t),
			Request{Forwarding: 2, HousekeepingCPUs: set("0,20")}},
		"service and control threads have more than two CPUs (1-2,21)": {fresh(t), Request{Service: 3}},
		"CPU 1 polls on the same core as CPU 21 (guests)":              {fresh(t), beside},
		"emulator and vhost threads share CPU 0 with interrupts": {smtPair(t),
			Request{Guests: 1, AllowOverlap: true}},
	} {
		p, err := Make(c.m, c.w)
		if err != nil || !strings.Contains(strings.Join(p.Warnings, "\n"), want) {
			t.Errorf("%s: %v %v", want, err, p)
		}
	}
}

// Two devices on two nodes get workers on both.
func TestNICsOfTwoNodes(t *testing.T) {
	p, err := Make(fresh(t), Request{Forwarding: 4, NICs: []string{"0000:3b:00.0", "eno1"}})
	if err != nil || p.Of(Forwarding).String() != "1-2,11-12" {
		t.Error(err, text(p))
	}
	p, err = Make(fresh(t), Request{Forwarding: 8, ShareCores: true, NICs: []string{"3b:00.0", "eno1"}})
	if err != nil || p.Of(Forwarding).String() != "1-2,11-12,21-22,31-32" {
		t.Error(err, text(p))
	}
}

func TestRefusals(t *testing.T) {
	xeon, small := fresh(t), topologytest.Machine(t, "one-cpu")
	holes := topologytest.Machine(t, "holes")
	big := []HugepageRequest{{Node: -1, KiB: 1 << 20, Pages: 100}, {Node: 1, KiB: 1 << 20, Pages: 100},
		{Node: 7, KiB: 4, Pages: 0}}
	noQuota := container(t)
	noQuota.Cgroups.Groups[0].QuotaUS = 250000
	for _, c := range []struct {
		m    *topology.Machine
		w    Request
		want string
	}{
		{xeon, Request{}, "request: the request is empty; valid: at least one of forwarding, guests, service, " +
			"housekeeping, ..."},
		{xeon, Request{Forwarding: 20}, "forwarding: 20 requested, but 18 whole cores are left after housekeeping " +
			"0,10,20,30; valid: at most 18, or share_cores, " +
			"for both siblings of each worker's core"},
		{xeon, Request{Forwarding: 18, Guests: 1}, "guests: 1 requested, but no CPU is left after housekeeping " +
			"0,10,20,30, forwarding 1-9,11-19, " +
			"siblings of workers 21-29,31-39; valid: 0, or share_cores, for both siblings of each worker's core"},
		{xeon, Request{Forwarding: 19, IsolatedRx: 19}, "forwarding: 19 requested, but 18 whole cores are left after " +
			"housekeeping 0,10,20,30; valid: at most 18"},
		{xeon, Request{Forwarding: 41}, "forwarding: 41 requested, but 18 whole cores are left after housekeeping " +
			"0,10,20,30; valid: at most 18"},
		{xeon, Request{Forwarding: math.MaxInt, Guests: math.MaxInt}, "forwarding: 9223372036854775807 requested, " +
			"but 18 whole cores are left after housekeeping 0,10,20,30; valid: at most 18"},
		{xeon, Request{Forwarding: -1}, "forwarding: -1 is negative; valid: 0 or more"},
		{xeon, Request{Housekeeping: 11}, "housekeeping: 11 requested, but 10 cores are left before any other role " +
			"on node 0; valid: at most 10"},
		{xeon, Request{Forwarding: 4, IsolatedRx: 2}, "isolated_rx: 2 requested for 4 forwarding workers; valid: 0 " +
			"or 4, one for each forwarding worker"},
		{xeon, Request{Forwarding: 1, NICs: []string{"eth7"}},
			"nics: 'eth7' is not a network device of this machine; valid: 0000:3b:00.0, 0000:af:00.0 (eno1)"},
		{xeon, Request{Forwarding: 3, ForwardingCPUs: set("1,2")},
			"forwarding: 3 requested, but forwarding_cpus has 1-2; valid: 2, or nothing"},
		{xeon, Request{ForwardingCPUs: set("1,40-41"), GuestCPUs: set("1-2")},
			"forwarding_cpus: this machine has no CPU 40-41; valid: CPUs of 0-39\n" +
				"forwarding_cpus: CPU 1 is also in guest_cpus; valid: each CPU in one set"},
		{xeon, Request{ForwardingCPUs: set("1"), GuestCPUs: set("21-22")},
			"forwarding_cpus: CPU 1 shares its core with CPU 21 of guest_cpus; " +
				"valid: one of them on another core"},
		{xeon, Request{ForwardingCPUs: set("1,21")},
			"forwarding_cpus: CPU 1 shares its core with CPU 21 of forwarding_cpus; valid: one of them on another " +
				"core, or share_cores"},
		{xeon, Request{GuestCPUs: set("20"), HousekeepingCPUs: set("10")},
			"guest_cpus: CPU 20 is on the first core, which has kernel work that cannot " +
				"move; valid: other CPUs, or allow_overlap\nhousekeeping_cpus: the first core (CPU 0,20) is missing, " +
				"but it has kernel work that " +
				"cannot move; valid: a set with 0,20"},
		{xeon, Request{Housekeeping: 1, HousekeepingCPUs: set("0")},
			"housekeeping: 1 cores per node and the fixed CPUs 0 exclude each other; valid: one of them"},
		{xeon, Request{Forwarding: 1, Hugepages: big},
			"hugepages[2]: this machine has no node 7; valid: 0, 1, or -1 for each\n" +
				"hugepages[2]: this machine has no hugepages of 4 KiB; valid: 2048 (2M), 1048576 (1G)\n" +
				"hugepages[2]: 0 pages; valid: 1 or more\n" +
				"hugepages: 204800 MiB requested on node 1, which has 196608 MiB; valid: less than 196608 MiB"},
		{holes, Request{ForwardingCPUs: set("3,50")}, "forwarding_cpus: this machine has no CPU 50; valid: CPUs of " +
			"0-2,8-10,100-103,108,110-111\n" +
			"forwarding_cpus: offline: CPU 3; valid: CPUs of 0-2,8-10,100-103,108,110-111"},
		{small, Request{Forwarding: 1}, "forwarding: 1 requested, but no whole core is left after housekeeping 0; " +
			"valid: 0, or allow_overlap, " +
			"for workers on the host's core"},
		{small, Request{Forwarding: 1, AllowOverlap: true, Service: 1},
			"service: 1 requested, but no CPU is left after forwarding 0; valid: 0"},
		{smtPair(t), Request{Forwarding: 1}, "forwarding: 1 requested, but no whole core is left after housekeeping " +
			"0-1; valid: 0, or allow_overlap, " +
			"for workers on the host's core"},
		{container(t), Request{ForwardingCPUs: set("3,4")}, "forwarding_cpus: this container may not use CPU 3; " +
			"valid: CPUs of 4-7,24-27"},
		{container(t), Request{Forwarding: 6, ShareCores: true},
			"forwarding: 6 workers poll all the time and need more than the quota of 6 CPUs of cgroup /, " +
				"which other threads share; valid: at most 5 workers, or cpu.max of the group set to max"},
		{noQuota, Request{Forwarding: 3}, "forwarding: 3 workers poll all the time and need more than the quota of " +
			"2.5 CPUs of cgroup /, " +
			"which other threads share; valid: at most 2 workers, or cpu.max of the group set to max"},
		{&topology.Machine{}, Request{Forwarding: 1}, "machine: no usable CPU was found; valid: a machine or " +
			"container with CPUs"},
	} {
		p, err := Make(c.m, c.w)
		if err == nil || err.Error() != c.want || !input.Is(err) {
			t.Errorf("%+v:\n%v\nnot\n%s", c.w, err, c.want)
			if err == nil {
				t.Log(text(p))
			}
		}
	}
}

// Workers of a device whose node has no usable CPUs are placed on the nearest node.
func TestDeviceOnNodeWithoutCPUs(t *testing.T) {
	for _, c := range []struct {
		name      string
		distances [3]int // from the device's node to 0, 1 and itself
		node      int
	}{
		{"near 1", [3]int{80, 20, 10}, 1},
		{"near 0", [3]int{20, 80, 10}, 0},
		{"equal", [3]int{40, 40, 10}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := topologytest.Describe(t, "xeon-4210")
			s.Nodes = append(s.Nodes, topologytest.Node{ID: 2, MemoryGiB: 96, Distances: c.distances[:]})
			for i := range 2 {
				s.Nodes[i].Distances = append(s.Nodes[i].Distances, c.distances[i])
			}
			s.NICs[0].Node = 2
			p, err := Make(s.Machine(t), Request{Forwarding: 2, NICs: []string{"0000:3b:00.0"}})
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range p.Workers {
				if w.Node != c.node {
					t.Errorf("worker %d is on node %d, not on %d", w.ID, w.Node, c.node)
				}
			}
			has(t, p.Warnings, "0000:3b:00.0 is on node 2, which has no CPU for workers")
		})
	}
}

// A container without CPUs on the device's node uses the nearest node.
func TestContainerFarFromDevice(t *testing.T) {
	m := container(t)
	m.NICs[0].Node = 1
	p, err := Make(m, Request{Forwarding: 1, NICs: []string{"0000:3b:00.0"}})
	if err != nil {
		t.Fatal(err)
	}
	has(t, p.Warnings, "0000:3b:00.0 is on node 1, which has no CPU for workers")
}

// A kernel with pages of 64 KiB has hugepages of 512M, but none of 1G.
func TestPageSizesOfMachine(t *testing.T) {
	m := fresh(t)
	for i := range m.Nodes {
		m.Nodes[i].Hugepages = []topology.Hugepages{{KiB: 2048}, {KiB: 524288}, {KiB: 16777216}}
	}
	pages := func(kib int) Request {
		return Request{Forwarding: 1, Hugepages: []HugepageRequest{{Node: 0, KiB: kib, Pages: 4}}}
	}
	if _, err := Make(m, pages(524288)); err != nil {
		t.Error(err)
	}
	want := "this machine has no hugepages of 1048576 KiB; valid: 2048 (2M), 524288 (512M), 16777216 (16G)"
	if _, err := Make(m, pages(1048576)); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	if _, err := Make(m, pages(16777216<<4)); err == nil {
		t.Error("an absurd size is accepted")
	}
}

// has fails unless a warning contains the text.
func has(t *testing.T, warnings []string, text string) {
	t.Helper()
	if !strings.Contains(strings.Join(warnings, "\n"), text) {
		t.Errorf("no warning has '%s': %q", text, warnings)
	}
}
