// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology/topologytest"
)

// offline runs a command that needs no daemon.
func offline(args ...string) result {
	var out, errs bytes.Buffer
	code := New(&out, &errs, Dial).Run(context.Background(), args)
	return result{code: code, stdout: out.String(), stderr: errs.String()}
}

func TestPlanCommands(t *testing.T) {
	root, dir := topologytest.Dir(t, "no-smt-20"), t.TempDir()
	file, request := filepath.Join(dir, "plan.json"), filepath.Join(dir, "request.yaml")
	if err := os.WriteFile(request, []byte("forwarding: 3\nservice: 2\nnics: [eth1]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := offline("plan", "make", "--root", root, "--file", request, "--forwarding", "4", "--service", "1", "--nic",
		"eth0", "--hugepages", "1G:4@0", "--hugepages", "2M:8", "--out", file)
	for _, want := range []string{"forwarding    1-4        on node 0 with eth0, a core of its own\n",
		"service       5 ", "hugepages of 1024 MiB: 4 on node 0\n", "hugepages of 2 MiB: 8 on each node\n",
		"isolated 1-5; interrupts 0,6-19; service threads 5; control threads 5\n",
		"Alternatives:\n- forwarding 5: one more core\n  gain: ", "\nThe plan is in " + file + ".\n"} {
		if r.code != 0 || !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in %d %s%s", want, r.code, r.stdout, r.stderr)
		}
	}
	if shown := offline("plan", "show", file); shown.code != 0 ||
		shown.stdout+"\nThe plan is in "+file+".\n" != r.stdout {
		t.Errorf("%+v", shown)
	}
	var p plan.Plan
	if r := offline("plan", "show", file, "-o", "json"); r.code != 0 || json.Unmarshal([]byte(r.stdout), &p) != nil ||
		p.Isolated.String() != "1-5" || strings.Count(r.stdout, "\n") != 1 {
		t.Errorf("%+v", r)
	}
	if r := offline("plan", "explain", file, "5"); r.code != 0 ||
		!strings.HasPrefix(r.stdout, "CPU 5 is service: on node 0, near the workers") {
		t.Errorf("%+v", r)
	}
	if r := offline("plan", "explain", file, "5", "-o", "json"); r.code != 0 ||
		!strings.HasPrefix(r.stdout, `{"cpu":5,"explanation":["CPU 5 is service`) {
		t.Errorf("%+v", r)
	}
	if r := offline("plan", "explain", file, "20"); r.code != 2 || r.stderr != "cpu: '20' is not a CPU of the plan; "+
		"valid: 0-19\n" {
		t.Errorf("%+v", r)
	}
	if r := offline("plan", "check", file, "--root", root); r.code != 0 || r.stdout != "The plan is right for "+
		"dpvs-0.\n" {
		t.Errorf("%+v", r)
	}
	if r := offline("plan", "check", file, "--root", topologytest.Dir(t,
		"vm")); r.code != 2 || !strings.Contains(r.stderr, ", not for guest") {
		t.Errorf("%+v", r)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	edited := bytes.Replace(text, []byte(`"isolated": "1-5"`), []byte(`"isolated": "1-4"`), 1)
	if err := os.WriteFile(file, edited, 0o644); err != nil {
		t.Fatal(err)
	}
	const problem = "RULE      CPUS  PROBLEM            VALID\n" +
		"isolated  5     isolated is '1-4'  '1-5', according to the roles\n"
	if r := offline("plan", "check", file, "--root", root); r.code != 2 || r.stdout != problem ||
		r.stderr != file+": the plan breaks rules: 1\n" {
		t.Errorf("%+v", r)
	}
	if r := offline("plan", "check", file, "--root", root, "-o", "json"); r.code != 2 ||
		!strings.HasPrefix(r.stdout, `{"rule":"isolated","cpus":"5","text":`) {
		t.Errorf("%+v", r)
	}
}

// Fixed sets reach the planner by flags, too, and every flag of a request is a key of the file.
func TestPlanFlags(t *testing.T) {
	root := topologytest.Dir(t, "no-smt-20")
	r := offline("plan", "make", "--root", root, "-o", "json", "--forwarding-cpus", "1-2", "--isolated-rx-cpus", "3,4",
		"--host-path-cpus", "5", "--service-cpus", "6", "--guest-cpus", "7-8", "--emulator-cpus", "9",
		"--housekeeping-cpus", "0,10", "--share-cores", "--allow-overlap", "--boot")
	var p plan.Plan
	if err := json.Unmarshal([]byte(r.stdout), &p); r.code != 0 || err != nil {
		t.Fatalf("%+v %v", r, err)
	}
	for role, want := range map[plan.Role]string{plan.Forwarding: "1-2", plan.IsolatedRx: "3-4", plan.HostPath: "5",
		plan.Service: "6", plan.Guests: "7-8", plan.Emulator: "9", plan.Housekeeping: "0,10", plan.Idle: "11-19"} {
		if p.Of(role).String() != want {
			t.Errorf("%s: %s", role, p.Of(role))
		}
	}
	file := filepath.Join(t.TempDir(), "request.yaml")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--guest-cpus", "x"},
			"--guest-cpus: 'x' is not a list of CPUs; valid: a list, 0,5-7, or a mask, 0x60\n"},
		{[]string{"--guest-cpus", ""},
			"--guest-cpus: '' is not a list of CPUs; valid: a list, 0,5-7, or a mask, 0x60\n"},
		{[]string{"--hugepages", "3G:1"}, "--hugepages: '3G:1' is not a request for hugepages; valid: " +
			"SIZE:PAGES[@NODE], SIZE 2M, 1G or another of the machine, such as 1G:16@0; without @NODE on each node\n"},
		{[]string{"--hugepages", "1G:1@x"}, "--hugepages: '1G:1@x' is not a request for hugepages; valid: " +
			"SIZE:PAGES[@NODE], SIZE 2M, 1G or another of the machine, such as 1G:16@0; without @NODE on each node\n"},
		{[]string{"--forwarding", "x"}, "--forwarding: 'x' is not understood; valid: a number\n"},
		{[]string{"--file", file}, file + ": the file is empty\n"},
		{[]string{"--file", "/does/not/exist"},
			"/does/not/exist: open /does/not/exist: no such file or directory; valid: a file\n"},
		{[]string{}, "request: the request is empty; valid: at least one of forwarding, guests, service, " +
			"housekeeping, ...\n"},
		{[]string{"--forwarding", "1", "--out", "/does/not/exist"}, "/does/not/exist: open"},
	} {
		r := offline(append([]string{"plan", "make", "--root", root}, c.args...)...)
		if r.code != 2 || !strings.HasPrefix(r.stderr, c.want) || r.stdout != "" {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
}

// Every field of a request has its flag.
func TestPlanFlagsAreComplete(t *testing.T) {
	cmd := newPlanMake(&app{})
	request := reflect.TypeFor[plan.Request]()
	for i := range request.NumField() {
		key := request.Field(i).Tag.Get("yaml")
		name := map[string]string{"nics": "nic"}[key]
		if name == "" {
			name = strings.ReplaceAll(key, "_", "-")
		}
		if cmd.Flags().Lookup(name) == nil {
			t.Errorf("no flag --%s for %s", name, key)
		}
	}
}
