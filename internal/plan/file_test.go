// SPDX-License-Identifier: Apache-2.0
package plan

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/topology/topologytest"
)

func saved(t testing.TB, name string, w Request) (*Plan, string) {
	t.Helper()
	p, err := Make(topologytest.Machine(t, name), w)
	if err != nil {
		t.Fatal(err)
	}
	file, err := Format(p)
	if err != nil {
		t.Fatal(err)
	}
	return p, string(file)
}

func TestSaveAndLoad(t *testing.T) {
	p, file := saved(t, "no-smt-20", Request{Forwarding: 4, IsolatedRx: 4, Service: 1, NICs: []string{"eth0"},
		Hugepages: []HugepageRequest{{-1, 1048576, 4}}})
	path := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Save(path, p); err != nil {
		t.Fatal(err)
	}
	back, err := Load(path)
	if err != nil || back.Fits(topologytest.Machine(t, "no-smt-20")) != nil ||
		!reflect.DeepEqual(back.Workers, p.Workers) || !reflect.DeepEqual(back.CPUs, p.CPUs) {
		t.Errorf("%v %+v", err, back)
	}
	if text, _ := os.ReadFile(path); string(text) != file {
		t.Errorf("%s", text)
	}
	if names, _ := os.ReadDir(filepath.Dir(path)); len(names) != 1 {
		t.Error("temporary files are left: ", names)
	}
	if err := Save(filepath.Join(path, "below-a-file"), p); !input.Is(err) {
		t.Error(err)
	}
	if _, err := Load(filepath.Dir(path)); !input.Is(err) {
		t.Error(err)
	}
	if _, err := Parse("plan.json", []byte(strings.ReplaceAll(file, "  ", "\t"))); err != nil {
		t.Error("indented by tabs: ", err)
	}
}

// A wrongly edited file is refused with its line and what is valid.
func TestEditedPlans(t *testing.T) {
	_, file := saved(t, "no-smt-20", Request{Forwarding: 2, IsolatedRx: 2, NICs: []string{"eth0"}})
	for _, c := range []struct{ old, new, want string }{
		{`"version": 1`, `"version": 2`, "plan.json:2: version: this program does not know version 2 of plans; " +
			"valid: 1"},
		{`"version": 1`, `"version": "one"`, "plan.json:2: version: 'one' is not a whole number; valid: a whole " +
			"number"},
		{`"machine"`, `"machin"`, "plan.json:3: machin: unknown key; valid: version, machine, container, topology, layout, " +
			"request, cpus, workers, isolated, irqs, " +
			"hugepages, warnings, alternatives"},
		{`"isolated": "1-4"`, `"isolated": "1-4-5"`, "'1-4-5' is not a CPU or range of CPUs"},
		{`"isolated": "1-4"`, `"isolated": "1-4,77"`, "isolated: CPU 77 is not in the plan; valid: CPUs of the plan"},
		{`"isolated": "1-4"`, `"isolated": ["1"]`, `isolated: is a list; valid: a list of CPUs, "0,5-7"`},
		{`"share_cores": false`, `"share_cores": no`, "share_cores: 'no' is neither true nor false; valid: true, " +
			"false"},
		{`"share_cores": false`, `"share_cores": false, "share_cores": true`,
			"share_cores: the key occurs twice; valid: each key once"},
		{`"id": 5`, `"id": 4`, "cpus[5]: CPU 4 is isolated-rx and housekeeping; valid: one role for each CPU"},
		{`"role": "isolated-rx"`, `"role": "receiver"`, "cpus[2]: 'receiver' is not a role; valid: forwarding, " +
			"isolated-rx, host-path, service, guests, emulator, " +
			"housekeeping, idle"},
		{`"role": "housekeeping"`, `"role": "forwarding"`, "cpus[0]: CPU 0 is forwarding, but has no worker; valid: " +
			"a worker there, or another role"},
		{`"cpu": 3`, `"cpu": 5`, "workers[1]: the worker's role is forwarding, but the role of its CPU 5 is " +
			"housekeeping; valid: a CPU of role forwarding\n"},
		{`"cpu": 3`, `"cpu": 50`, "workers[1]: CPU 50 is not in the plan; valid: a CPU of the plan\n"},
		{`"cpu": 3`, `"cpu": 1`, "workers[1]: CPU 1 already has worker 0; valid: one worker per CPU\n"},
		{`"cpu": 3`, `"cpu": {}`, "cpu: is keys with values; valid: a whole number"},
		{`"cpus": [`, `"cpus": [7,`, "cpus[0]: '7' is a single value; valid: keys with values: id, role, why"},
		{`"workers": [`, `"workers": [], "wurkers": [`, "wurkers: unknown key"},
		{`{`, `{{`, "plan.json"},
		{`{`, ``, "plan.json"},
		{file, ``, "plan.json: the file is empty"},
		{file, "[]", "plan.json: is a list; valid: keys with values"},
		{file, "version: 1", "cpus: the plan has no CPUs"},
		{file, file + "---\n{}", "plan.json: there is more than one document; valid: one document"},
		{file, "version: &a 1\ncpus: *a", "anchors and aliases are not supported"},
	} {
		if !strings.Contains(file, c.old) {
			t.Fatalf("no %s in %s", c.old, file)
		}
		_, err := Parse("plan.json", []byte(strings.Replace(file, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) || !input.Is(err) ||
			!strings.HasPrefix(err.Error(), "plan.json") {
			t.Errorf("%s:\n%v\nnot\n%s", c.new, err, c.want)
		}
	}
}

// A well-formed edited plan is checked against the machine.
func TestValidate(t *testing.T) {
	m := fresh(t)
	for _, c := range []struct {
		edit func(p *Plan)
		rule string
	}{
		{func(p *Plan) { p.CPUs[21].Role = Guests }, "siblings"},
		{func(p *Plan) { p.CPUs[0].Role, p.CPUs[20].Role = Guests, Guests }, "first-core"},
		{func(p *Plan) {
			for _, id := range set("10-19,30-39").IDs() {
				p.CPUs[id].Role = Idle
			}
		}, "housekeeping"},
		{func(p *Plan) { p.CPUs = p.CPUs[:39] }, "cpu-missing"},
		{func(p *Plan) { p.CPUs = append(p.CPUs, CPU{40, Idle, ""}) }, "cpu-unknown"},
		{func(p *Plan) { p.CPUs = append(p.CPUs, CPU{3, Idle, ""}) }, "cpu-twice"},
		{func(p *Plan) { p.CPUs[3].Role = "fast" }, "role"},
		{func(p *Plan) { p.Workers[1].CPU = 6 }, "worker-cpu"},
		{func(p *Plan) { p.Workers[1].ID = 6 }, "worker-id"},
		{func(p *Plan) { p.Workers[1].Node = 1 }, "worker-node"},
		{func(p *Plan) { p.Workers[1].Role = Guests }, "worker-role"},
		{func(p *Plan) { p.Workers[1].CPU = 1 }, "worker-twice"},
		{func(p *Plan) { p.Workers = p.Workers[:1] }, "worker-missing"},
		{func(p *Plan) { p.Workers[1].Target = 0 }, "target"},
		{func(p *Plan) { p.Isolated = set("1") }, "isolated"},
		{func(p *Plan) { p.IRQs = set("0,1") }, "irqs"},
		{func(p *Plan) { p.IRQs = set("") }, "irqs"},
	} {
		p, err := Make(m, Request{Forwarding: 2, Guests: 8, NICs: []string{"0000:3b:00.0"}})
		if err != nil {
			t.Fatal(err)
		}
		if list := Validate(m, p); len(list) > 0 {
			t.Fatal(list)
		}
		c.edit(p)
		list := Validate(m, p)
		if !slices.ContainsFunc(list, func(x Problem) bool {
			return x.Rule == c.rule && x.Text != "" && x.Valid != ""
		}) {
			t.Errorf("%s: %v", c.rule, list)
		}
	}
}

func TestFits(t *testing.T) {
	p, _ := saved(t, "no-smt-20", Request{Forwarding: 2, NICs: []string{"eth0"}})
	for name, want := range map[string]string{
		"vm": "plan: it was made for dpvs-0, not for guest: only the plan has NIC 0000:04:00.0: node 0; only the " +
			"plan has NIC 0000:04:00.1: node 0; " +
			"only the plan has node 0: core 8, core 9; only the plan has node 1: core 10, core 11, core 12, core " +
			"13, and 6 more; and 1 more differences; " +
			"valid: a plan that 'corelane plan make' made for this machine",
		"no-smt-20": "",
	} {
		err := p.Fits(topologytest.Machine(t, name))
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := topologytest.Describe(t, "no-smt-20")
	s.CPUs[7].Offline = true
	const changed = "it was made for dpvs-0, but the machine has changed since: only the plan has node 0: core 7"
	if err := p.Fits(s.Machine(t)); err == nil || !strings.Contains(err.Error(), changed) {
		t.Error(err)
	}
	s = topologytest.Describe(t, "no-smt-20")
	s.CPUs[7].L3 = 5
	if err := p.Fits(s.Machine(t)); err == nil ||
		!strings.Contains(err.Error(), "caches, sockets or distances differ") {
		t.Error(err)
	}
}

func TestExplain(t *testing.T) {
	p, err := Make(fresh(t), Request{Forwarding: 2, IsolatedRx: 2, NICs: []string{"0000:3b:00.0"}})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int]string{
		22: "CPU 22 is isolated-rx: receives for the forwarding worker on its sibling: only such a pair may share a " +
			"core. " +
			"It is on node 0, on the same core as CPU 2 (forwarding). Worker 3 polls on it and receives for worker " +
			"1 on CPU 2. " +
			"It is isolated: no other threads and no interrupts.",
		0: "CPU 0 is housekeeping: first core of the machine: it has interrupts and kernel threads that cannot " +
			"move. It is on node 0, on the same core as " +
			"CPU 20 (housekeeping). It runs the host's threads and takes interrupts.",
		40: "",
	} {
		if have := strings.Join(p.Explain(id), " "); have != want {
			t.Errorf("%d: %s", id, have)
		}
	}
}

func TestRequestFile(t *testing.T) {
	w, err := ParseRequest("request.yaml", []byte("forwarding: 4 # workers\nnics: [eth0, eth1]\nshare_cores: true\n"+
		"guest_cpus: 6-9,11\n"+
		"housekeeping_cpus: 0\nhugepages:\n- {node: -1, kib: 1048576, pages: 8}\n"))
	want := Request{Forwarding: 4, NICs: []string{"eth0", "eth1"}, ShareCores: true, GuestCPUs: set("6-9,11"),
		HousekeepingCPUs: set("0"), Hugepages: []HugepageRequest{{-1, 1048576, 8}}}
	if err != nil || !reflect.DeepEqual(w, want) {
		t.Errorf("%v %+v", err, w)
	}
	const keys = "forwarding, isolated_rx, host_path, service, guests, emulator, housekeeping, nics, share_cores, " +
		"allow_overlap, boot, forwarding_cpus, " +
		"isolated_rx_cpus, host_path_cpus, service_cpus, guest_cpus, emulator_cpus, housekeeping_cpus, hugepages"
	for text, want := range map[string]string{
		"forwarding: 4\nworkers: 5\nguests: x\n": "w.yaml:2: workers: unknown key; valid: " + keys + "\nw.yaml:3: " +
			"guests: 'x' is not a whole number; valid: a whole number",
		"hugepages: 5":             "w.yaml:1: hugepages: '5' is a single value; valid: a list",
		"hugepages:\n- {nodes: 1}": "w.yaml:2: hugepages[0].nodes: unknown key; valid: node, kib, pages",
		"guests:":                  "w.yaml:1: guests: '' is not a whole number; valid: a whole number",
		"guests: 99999999999999": "w.yaml:1: guests: '99999999999999' is not a whole number; valid: " +
			"a whole number",
		"guest_cpus: 9-6": "w.yaml:1: guest_cpus: '9-6' ends before it begins; valid: a list, 0,5-7",
		"a: [":            "w.yaml:1: did not find expected node content",
		"# nothing":       "w.yaml: the file is empty",
		"just words":      "w.yaml: 'just words' is a single value; valid: keys with values: " + keys,
	} {
		if _, err := ParseRequest("w.yaml", []byte(text)); err == nil || err.Error() != want || !input.Is(err) {
			t.Errorf("%q:\n%v\nnot\n%s", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	_, file := saved(f, "one-cpu", Request{Forwarding: 1, AllowOverlap: true})
	f.Add([]byte(file))
	_, file = saved(f, "vm", Request{Forwarding: 2, IsolatedRx: 2})
	f.Add([]byte(file))
	f.Add([]byte("version: 1\ncpus:\n- {id: 1, role: idle, why: x}\n"))
	m := topologytest.Machine(f, "vm")
	for _, text := range []string{"", "a: 1\n---\nb: 2\n", "[\n", "\t- {\n  x", "[1]", "version: 2\ncpus: []\n",
		"version: 1\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { checkParse(t, m, text) })
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte("forwarding: 4\nnics: [eth0]\nhugepages:\n- {node: -1, kib: 2048, pages: 4}\n"))
	f.Add([]byte(`{"guest_cpus": "1-3", "boot": true}`))
	f.Add([]byte("{}"))
	m := topologytest.Machine(f, "holes")
	f.Fuzz(func(t *testing.T, text []byte) { checkRequest(t, m, text) })
}
