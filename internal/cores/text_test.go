// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/corelane/corelane/internal/plan/output"
	"github.com/corelane/corelane/internal/procfs"
)

// Each form compares texts of settings in its own way.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		form       Form
		have, want string
		meets      bool
	}{
		{Mask, "00000003\n", "3", true}, {Mask, "ffffffff,00000001", "ffffffff00000001", true}, {Mask, "3", "1", false},
		{Mask, "x", "x", false},
		{List, "0-1\n", "0,1", true}, {List, "", "\n", true}, {List, "0", "0-1", false},
		{Choice, "always [madvise] never\n", "madvise", true}, {Choice, "[always] madvise never", "madvise", false},
		{Choice, "madvise", "madvise", true},
		{Least, "64\n", "16", true}, {Least, "8", "16", false}, {Least, "none", "16", false},
		{Controller, "cpu cpuset io\n", "+cpuset", true}, {Controller, "cpu\n", "+cpuset", false},
		{Controller, "cpuset_x\n", "+cpuset", false},
		{Exact, "isolated\n", "isolated", true}, {Exact, "isolated invalid (Parent is not a partition root)\n",
			"isolated", false},
	} {
		if got := c.form.meets(c.have, c.want); got != c.meets {
			t.Errorf("%s: %q meets %q: %v", c.form, c.have, c.want, got)
		}
	}
	if back := Choice.back("[always] madvise never\n", "madvise"); back != "always" {
		t.Errorf("back to %q", back)
	}
	if back := Controller.back("cpu\n", "+cpuset"); back != "-cpuset" {
		t.Errorf("back by %q", back)
	}
}

// Settings of others in a file stay; the plan's replace older values.
func TestMerge(t *testing.T) {
	ours := "# Written by 'corelane plan export'.\nIRQBALANCE_BANNED_CPULIST=2-3\n"
	for old, want := range map[string]string{
		"#A=1\nIRQBALANCE_ARGS=--x\nIRQBALANCE_BANNED_CPULIST=7": "#A=1\nIRQBALANCE_ARGS=--x\n" +
			"IRQBALANCE_BANNED_CPULIST=2-3\n",
		"IRQBALANCE_ARGS=--x\n":                       "IRQBALANCE_ARGS=--x\nIRQBALANCE_BANNED_CPULIST=2-3\n",
		"# Written by 'corelane plan export'.\nX=1\n": ours,
		"[Manager]\nCPUAffinity=0\n":                  ours,
		"":                                            ours[strings.Index(ours, "\n")+1:],
	} {
		if got := merge(old, ours); got != want {
			t.Errorf("%q became %q, not %q", old, got, want)
		}
	}
}

// Files for the next boot go below a directory or to their final paths; a second Place finds nothing to do.
func TestPlace(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	put(t, root, map[string]string{"etc/default/irqbalance": "IRQBALANCE_ARGS=--x\n"})
	files := []output.File{{Path: "/etc/default/irqbalance", Text: "IRQBALANCE_BANNED_CPULIST=2-3\n"},
		{Path: "/usr/local/sbin/corelane-partitions", Text: "#!/bin/sh\n", Exec: true},
		{Path: "/" + kernelArguments, Text: "nohz_full=2-3\n"}}
	before := snapshot(t, root)
	for _, where := range []string{"/", "/var/lib/corelane/cores/reboot"} {
		changes, err := Place(root, where, files)
		if err == nil {
			err = apply(root, changes, dir, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Place(root, where, files); err != nil || len(again) != 0 {
			t.Errorf("%s: again: %v, %v", where, again, err)
		}
		now := snapshot(t, root)
		if where == "/" {
			if now["etc/default/irqbalance"] != "-rw-r--r-- IRQBALANCE_ARGS=--x\nIRQBALANCE_BANNED_CPULIST=2-3\n" ||
				now["usr/local/sbin/corelane-partitions"] != "-rwxr-xr-x #!/bin/sh\n" || now[kernelArguments] != "" {
				t.Errorf("%v", now)
			}
		} else if now["var/lib/corelane/cores/reboot/"+kernelArguments] != "-rw-r--r-- nohz_full=2-3\n" {
			t.Errorf("%v", now)
		}
		if err := rollback(root, dir, nil); err != nil {
			t.Fatal(err)
		}
		if diff := differences(before, snapshot(t, root)); diff != "" {
			t.Errorf("%s:\n%s", where, diff)
		}
	}
}

const (
	someInterrupts = "     CPU0       CPU1\n 24:  1   10   IO-APIC   5-edge  eth0\nLOC:  100  %LOC%  Local timer " +
		"interrupts\nTLB: 0 5 TLB shootdowns\n" +
		"ERR:  0\n"
	someSoftirqs = "                    CPU0       CPU1\n      TIMER:  1  2\n        RCU:  10  20\n"
	someStat     = "cpu  1 1 1 1 1 1 1 1 1 1\ncpu0 10 0 10 80 0 0 0 0 0 0\ncpu1 %USER% 0 0 100 0 0 0 0 0 0\nintr 5\n"
)

// Counts are divided by the time, and the share of busy time is reported.
func TestRemains(t *testing.T) {
	root := t.TempDir()
	look := func(timer, user string) interruptions {
		put(t, root, map[string]string{"proc/interrupts": strings.Replace(someInterrupts, "%LOC%", timer, 1),
			"proc/softirqs": someSoftirqs, "proc/stat": strings.Replace(someStat, "%USER%", user, 1)})
		found, err := host{root: root}.interruptions()
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	list := remains(look("1000", "0"), look("1250", "100"), set("1"), 2)
	if want := (Residue{CPU: 1, Timer: 125, Busy: 1}); len(list) != 1 || list[0] != want {
		t.Fatalf("%+v", list)
	}
	if text := list[0].String(); !strings.HasPrefix(text, "CPU 1: 125 timer") || strings.Contains(text, "busy") {
		t.Error(text)
	}
	list, err := Remains(t.Context(), root, set("1"), time.Millisecond)
	if want := (Residue{CPU: 1}); err != nil || len(list) != 1 || list[0] != want {
		t.Errorf("nothing was counted meanwhile: %+v, %v", list, err)
	}
}

// After a reboot only files are restored.
func TestAfterReboot(t *testing.T) {
	root, changes := all(t, 0)
	before, dir := snapshot(t, root), t.TempDir()
	if err := apply(root, changes, dir, nil); err != nil {
		t.Fatal(err)
	}
	put(t, root, map[string]string{"proc/sys/kernel/random/boot_id": "another\n"})
	if err := rollback(root, dir, nil); err != nil {
		t.Fatal(err)
	}
	after := snapshot(t, root)
	if after["etc/default/grub"] != before["etc/default/grub"] || after["etc/systemd"] != "" {
		t.Errorf("files: %v", after["etc/default/grub"])
	}
	if !strings.HasSuffix(after["proc/sys/kernel/numa_balancing"], "0") {
		t.Error("a setting of the last boot was put back into this one")
	}
}

// A setting that somebody else has changed is restored and reported; a thread that has ended, or whose TID another
// thread has now, is skipped.
func TestChangedSince(t *testing.T) {
	root, changes := all(t, 0)
	dir := t.TempDir()
	if err := apply(root, changes, dir, nil); err != nil {
		t.Fatal(err)
	}
	put(t, root, map[string]string{"proc/sys/vm/stat_interval": "7\n", procfs.ThreadDir(40, 41) +
		"/stat": "41 (new) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 0 0" + strings.Repeat(" 0", 20)})
	before := snapshot(t, root)[procfs.ThreadDir(40, 41)+"/status"]
	said := map[string]Outcome{}
	if err := rollback(root, dir, func(o Outcome) { said[o.What()] = o }); err != nil {
		t.Fatal(err)
	}
	if o := said["/proc/sys/vm/stat_interval"]; !o.is(Overridden, "'7'") {
		t.Errorf("%+v", o)
	}
	if o := said["thread ssh (2) x (41)"]; o.Result != Gone {
		t.Errorf("%+v", o)
	}
	after := snapshot(t, root)
	if after["proc/sys/vm/stat_interval"] != "-rw-r--r-- 1\n" || after[procfs.ThreadDir(40, 41)+"/status"] != before {
		t.Error(after["proc/sys/vm/stat_interval"], after[procfs.ThreadDir(40, 41)+"/status"])
	}
}

func FuzzParseJournal(f *testing.F) {
	for _, r := range []record{{Begin: &begin{Boot: "b", Root: "/"}},
		{Step: 1, Change: &Change{Kind: Write, Path: "x", Old: "1", New: "2"}},
		{Done: 1}, {Undone: 1}} {
		line, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(line, '\n'))
		f.Add([]byte("{\"begin\":{\"boot\":\"b\"}}\n" + string(line) + "\n{\"done\":1}\n{\"und"))
		f.Add([]byte("{\"begin\":{\"boot\":\"b\"}}\n" + string(line) + "\n{\"undone\":1}\n"))
	}
	f.Add([]byte("no JSON\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		steps, _, good, err := parseJournal(text)
		if err != nil {
			return
		}
		if good > len(text) || good > 0 && text[good-1] != '\n' {
			t.Fatalf("%d of %d are good", good, len(text))
		}
		again, _, all, err := parseJournal(text[:good])
		if err != nil || all != good || len(again) != len(steps) {
			t.Fatalf("the good part does not parse again: %v", err)
		}
	})
}

func FuzzMerge(f *testing.F) {
	f.Add("A=1\n# x\nB=2", "A=3\nC=4\n")
	f.Add("", "A=1\n")
	f.Fuzz(func(t *testing.T, old, text string) {
		seen := map[string]bool{}
		for line := range strings.Lines(text) {
			key := keyOf(line)
			if key != "" && seen[key] {
				return // no file of a plan sets a key twice
			}
			seen[key] = true
		}
		got := merge(old, text)
		if merge(got, text) != got {
			t.Errorf("%q into %q: %q, and again %q", text, old, got, merge(got, text))
		}
	})
}
