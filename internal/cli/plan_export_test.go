// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/plan/output"
	"github.com/corelane/corelane/internal/plan/plantest"
	"github.com/corelane/corelane/internal/topology/topologytest"
)

// planFile writes a plan as `plan make` does.
func planFile(t *testing.T, p *plan.Plan) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plan.json")
	if err := plan.Save(file, p); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPlanExport(t *testing.T) {
	file, dir := planFile(t, plantest.Xeon40()), t.TempDir()
	if r := offline("plan", "export", "kernel", file, "--old-kernel"); r.code != 0 ||
		!strings.HasPrefix(r.stdout, "isolcpus=1-9,11-19,21-29,31-39 nohz_full=") {
		t.Errorf("%+v", r)
	}
	if r := offline("plan", "export", "tuned", file); r.code != 0 ||
		!strings.Contains(r.stdout, "==> /etc/tuned/corelane/tuned.conf: child profile of TuneD\n") {
		t.Errorf("%+v", r)
	}
	var f output.File
	if r := offline("plan", "export", "irqbalance", file, "-o", "json"); json.Unmarshal([]byte(r.stdout), &f) != nil ||
		f.Path != "/etc/default/irqbalance" {
		t.Errorf("%+v", r)
	}
	if r := offline("plan", "export", "cgroup", file, "--dir", dir); r.code != 0 || strings.Count(r.stdout, "\n") != 2 {
		t.Errorf("%+v", r)
	}
	script := filepath.Join(dir, "usr/local/sbin/corelane-partitions")
	if info, err := os.Stat(script); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v %v", info, err)
	} else if out, err := exec.Command("sh", "-n", script).CombinedOutput(); err != nil {
		t.Errorf("%s", out)
	}
	for args, want := range map[string]string{
		"cgroup FILE --dir " + dir: "--dir: " + script +
			" exists already; nothing was written; valid: a directory without it\n",
		"tune FILE":                          "format: 'tune' is unknown; valid: cgroup, ",
		"libvirt FILE":                       "--vcpus: the plan does not say",
		"grub /does/not/exist":               "/does/not/exist: ",
		"grub":                               "file: missing",
		"grub FILE --root /does/not":         "/does/not: ",
		"irq FILE --root " + otherMachine(t): "plan: it was made for compute-dpdk-0, not for ",
		"dpvs FILE --ring-size 1000": "--ring-size: 1000 is out of range; valid: a " +
			"power of two",
		"dpvs FILE --port dpdk0{": "--port: ",
	} {
		r := offline(append([]string{"plan", "export"}, strings.Fields(strings.ReplaceAll(args, "FILE", file))...)...)
		if r.code != 2 || !strings.HasPrefix(r.stderr, want) || strings.Count(r.stderr, "\n") != 1 || r.stdout != "" {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

func otherMachine(t *testing.T) string { return topologytest.Dir(t, "no-smt-20") }

// A real corelaned accepts its options, except for CPUs that this machine does not have.
func TestCorelanedTakesOptions(t *testing.T) {
	program := os.Getenv("CORELANED")
	if program == "" {
		t.Skip("needs CORELANED")
	}
	small := plantest.Make("", "1", "0", plantest.Assignment{Role: plan.Forwarding, CPUs: "1"},
		plantest.Assignment{Role: plan.Housekeeping, CPUs: "0"})
	files, err := output.Write("corelaned", small, output.Options{RingSize: 2048})
	if err != nil {
		t.Fatal(err)
	}
	_, options, _ := strings.Cut(strings.TrimSpace(files[0].Text), "CORELANED_OPTIONS=")
	out, err := exec.Command(program, append(strings.Fields(options), "--no-huge", "--check", "--run-dir",
		t.TempDir())...).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v %s", options, err, out)
	}
}

func TestPlanImport(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	env := write("common_vrouter.env", "CPU_CORE_MASK=0x6\nSERVICE_CORE_MASK=0\nDPDK_CTRL_THREAD_MASK=0\n"+
		"DPDK_COMMAND_ADDITIONAL_ARGS=\"--yield_option 0\"\n")
	cmdline := write("cmdline", "isolcpus=1-4 nohz_full=1-4 rcu_nocbs=1-4 hugepagesz=1G hugepages=0:4\n")
	request := filepath.Join(dir, "request.yaml")
	r := offline("plan", "import", env, cmdline, "--request-out", request)
	for _, want := range []string{"CPUS FOR ", "forwarding  1-2   CPU_CORE_MASK (" + env + ":1)\n",
		"\nNot set: the CPUs of guests, ",
		"\nNothing is wrong.\n"} {
		if r.code != 0 || !strings.Contains(r.stdout, want) {
			t.Errorf("%q: %+v", want, r)
		}
	}
	w, err := plan.LoadRequest(request)
	if err != nil || w.ForwardingCPUs.String() != "1-2" || w.ServiceCPUs.String() != "0" || !w.Boot ||
		len(w.Hugepages) != 1 {
		t.Errorf("%v %+v", err, w)
	}
	bad := write("bad.env", "CPU_CORE_MASK=0x1\n")
	r = offline("plan", "import", bad, cmdline)
	if r.code != 1 || r.stderr != "5 things are wrong\n" || !strings.Contains(r.stdout,
		"wrong    "+bad+":1: a worker is on CPU 0, according to CPU_CORE_MASK\n         why:   CPU 0 has interrupts") {
		t.Errorf("%+v", r)
	}
	var result importResult
	if r := offline("plan", "import", bad, "-o", "json"); r.code != 1 ||
		json.Unmarshal([]byte(r.stdout), &result) != nil || result.Formats[0] != "container" ||
		len(result.Findings) < 4 {
		t.Errorf("%+v", r)
	}
	conf := filepath.Join("..", "plan", "imports", "testdata", "dpvs1.conf")
	if r := offline("plan", "import", conf, "--lcores", "0@1,1@2,2@3,3@4,4@5"); r.code != 0 ||
		!strings.Contains(r.stdout, "forwarding  2-5 ") {
		t.Errorf("%+v", r)
	}
	for args, want := range map[string]string{
		"/does/not/exist":                     "file: open /does/not/exist",
		"":                                    "file: missing",
		bad + " --format tripleoo":            "--format: 'tripleoo' is unknown",
		bad + " --request-out /no/dir/w":      "", // wrong, too, but it is reported first that it cannot be written
		write("hello", "hello"):               filepath.Join(dir, "hello") + ": is not in a known format",
		bad + " --root /does/not":             "/does/not: ",
		cmdline + " --request-out " + request: "--request-out: the files do not say which CPUs forward",
	} {
		r := offline(append([]string{"plan", "import"}, strings.Fields(args)...)...)
		if r.code != 2 || !strings.HasPrefix(r.stderr, want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%s: %+v", args, r)
		}
	}
}
