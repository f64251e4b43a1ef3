// SPDX-License-Identifier: Apache-2.0
package host

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

func TestHandicaps(t *testing.T) {
	r := tree(t, map[string]string{"proc/101/status": "Name:\tx\nHugetlbPages:\t0 kB",
		"proc/202/comm": "perf", "sys/kernel/tracing/current_tracer": "function",
		"sys/kernel/debug/kprobes/list":                        "c00 k vfs_read+0x0\nc01 k vfs_open+0x0 [DISABLED]",
		"sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq": "1200000",
		"sys/devices/system/cpu/cpu1/cpufreq/cpuinfo_max_freq": "3000000",
		"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave",
		"sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq": "2900000",
		"sys/devices/system/cpu/cpu2/cpufreq/cpuinfo_max_freq": "3000000",
		"proc/101/task/101/stat":                               taskStat})
	for link, to := range map[string]string{"proc/101/exe": "/usr/sbin/corelaned",
		"proc/202/fd/5": "anon_inode:[perf_event]", "proc/202/fd/6": "anon_inode:[perf_event]"} {
		if err := os.MkdirAll(filepath.Dir(r.path(link)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, r.path(link)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, h := range r.Handicaps(101, []int{1, 2}) {
		got = append(got, h.What)
		if h.Remedy == "" || h.Passing == (h.What == "the process has no hugepages") {
			t.Errorf("%+v", h)
		}
	}
	want := "performance counters are open: perf (202); the kernel's tracer 'function' is on; " +
		"1 kprobes are set in the kernel; the process has no hugepages; " +
		"CPU 1 runs at 1200 MHz, although it could at 3000 (governor powersave)"
	if text := strings.Join(got, "; "); text != want {
		t.Errorf("%s\nnot\n%s", text, want)
	}
	if got := Root(t.TempDir()).Handicaps(1, []int{0}); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// What the kernel's tracing has set is switched off and removed by name; the events of other programs stay.
func TestTracefs(t *testing.T) {
	r := tree(t, map[string]string{"sys/kernel/debug/tracing/current_tracer": "nop",
		"sys/kernel/debug/tracing/uprobe_events": "p:mine/walk /usr/sbin/corelaned:0x0000000000001234 arg1=%di\n" +
			"r:mine/back /usr/sbin/corelaned:0x12\np:other/walk /usr/sbin/corelaned2:0x12\nnonsense\n",
		"sys/kernel/debug/tracing/kprobe_events": "p:kprobes/read vfs_read\np:kprobes/off vfs_open",
		// one that is defined only costs nothing, and stays
		"sys/kernel/debug/tracing/events/kprobes/read/enable": "1",
		"sys/kernel/debug/tracing/events/kprobes/off/enable":  "0"})
	if err := os.MkdirAll(r.path("proc/101"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/usr/sbin/corelaned", r.path("proc/101/exe")); err != nil {
		t.Fatal(err)
	}
	const d = "/sys/kernel/debug/tracing/"
	want := "echo 0 > " + d + "events/mine/walk/enable\necho '-:mine/walk' >> " + d + "uprobe_events\n" +
		"echo 0 > " + d + "events/mine/back/enable\necho '-:mine/back' >> " + d + "uprobe_events"
	if got := r.endOf("uprobe_events", r.uprobes(101)); got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
	want = "echo 0 > " + d + "events/kprobes/read/enable\necho '-:kprobes/read' >> " + d + "kprobe_events"
	if h, found := r.kprobed(101); !found || h.Fix != want || !strings.Contains(h.What, "1 kprobes") {
		t.Errorf("%+v", h)
	}
	if h, found := r.ftraced(101); found {
		t.Errorf("%+v", h)
	}
	if h, found := Root(t.TempDir()).kprobed(101); found {
		t.Errorf("%+v", h)
	}
}

// A breakpoint in a program is found; a program that nobody probes has none.
func TestBreakpoints(t *testing.T) {
	runtime.LockOSThread() // the thread that traces has to stay the same
	defer runtime.UnlockOSThread()
	cmd := exec.Command("sleep", "10")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		t.Skip("needs the right to trace: ", err)
	}
	defer func() {
		_ = cmd.Process.Kill() // fails once it has ended
		_ = cmd.Wait()
	}()
	pid := cmd.Process.Pid
	if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil { // it stops when it begins the program
		t.Fatal(err)
	}
	if h, found := Root("/").probed(pid); found {
		t.Errorf("%+v", h)
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		if f := strings.Fields(line); f[1] == "r-xp" && strings.HasSuffix(f[len(f)-1], "/sleep") {
			begin, _, _ := strings.Cut(f[0], "-")
			if _, err := syscall.PtracePokeText(pid, uintptr(hex(begin))+4, []byte{breakpoint}); err != nil {
				t.Fatal(err)
			}
		}
	}
	h, found := Root("/").probed(pid)
	if !found || !strings.HasPrefix(h.What, "somebody set 1 breakpoints") {
		t.Errorf("%+v, %s", h, maps)
	}
}

// A program that was compiled for debugging, or with AddressSanitizer, is not one to measure with.
func TestUnoptimized(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc")
	}
	for _, c := range []struct {
		options []string
		want    string
	}{
		{[]string{"-g", "-O0"}, "debug build"}, {[]string{"-g", "-O2"}, ""}, {[]string{"-O3"}, ""}, {nil, ""},
		{[]string{"-O2", "-fsanitize=address"}, "AddressSanitizer"},
	} {
		r := tree(t, map[string]string{"main.c": "int main(int n, char **v) { return v[n] != 0; }", "proc/101/x": ""})
		program := r.path("program")
		gcc := exec.Command("gcc", append(c.options, "-o", program, r.path("main.c"))...)
		if text, err := gcc.CombinedOutput(); err != nil {
			t.Skip(string(text)) // no library of AddressSanitizer
		}
		if err := os.Symlink(program, r.path("proc/101/exe")); err != nil {
			t.Fatal(err)
		}
		h, found := r.unoptimized(101)
		if found != (c.want != "") || !strings.Contains(h.What, c.want) || h.Passing {
			t.Errorf("%v: %+v, %v", c.options, h, found)
		}
	}
}

// What memory, siblings and limits of the clock cost is said with the command or the place that helps.
func TestPlaceHandicaps(t *testing.T) {
	const gib = "7f00 default file=/dev/hugepages/x huge anon=3 kernelpagesize_kB=1048576 "
	r := tree(t, map[string]string{
		"proc/101/numa_maps":                  gib + "N0=1 N1=2\n7f01 default anon=9 N1=9 kernelpagesize_kB=4",
		"proc/102/numa_maps":                  gib + "N0=9 N1=1",
		"proc/101/smaps_rollup":               "55d0-7fff ---p 00000000 00:00 0 [rollup]\nAnonHugePages:      2048 kB",
		"proc/102/smaps_rollup":               "55d0-7fff ---p 00000000 00:00 0 [rollup]\nAnonHugePages:         0 kB",
		"proc/vmstat":                         "thp_split_page 5\nthp_split_pmd 7",
		"sys/devices/system/cpu/cpu1/node0/x": "",
		"sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count":    "4",
		"sys/devices/system/cpu/cpu1/thermal_throttle/package_throttle_count": "3",
		"sys/devices/system/cpu/cpu2/thermal_throttle/core_throttle_count":    "0",
		"sys/devices/system/cpu/cpu1/topology/thread_siblings_list":           "1,33",
		"sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq":                "1200000",
		"sys/devices/system/cpu/cpu1/cpufreq/cpuinfo_max_freq":                "3000000",
		"sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq":                "1200000",
		"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor":                "performance"})
	busy := map[int]Ticks{33: {User: 150, System: 50, Idle: 600, Steal: 200}}
	for _, c := range []struct {
		found *Handicap
		want  string // empty: not found
	}{
		{found(r.farMemory(101, 1)),
			"2048 of 3072 MiB of the process's hugepages are on other"},
		{found(r.farMemory(102, 1)), ""},
		{found(r.Split(101, r.splitPages())), "the kernel split 12 transparent"},
		{found(r.Split(102, 12)), ""},
		{found(r.Split(101, 0)), ""},
		{found(r.BusySibling(1, busy, 8)),
			"CPU 33, the sibling of CPU 1 on the same core, was busy for 25 % of the time"},
		{found(r.BusySibling(1, busy, 20)), ""},
		{found(r.slowClock(101, 1)), "somebody limits it to 1200 MHz"},
		{found(Hot(1, r.throttled()[1])), "the hardware slowed CPU 1 down 7 times"},
		{found(Hot(2, r.throttled()[2])), ""},
	} {
		if h := c.found; (h != nil) != (c.want != "") ||
			h != nil && (!strings.Contains(h.What, c.want) || h.Remedy == "") {
			t.Errorf("%+v, want %q", h, c.want)
		}
	}
	h, _ := r.slowClock(101, 1)
	if !strings.HasPrefix(h.Fix, "echo 3000000 > /sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq") {
		t.Errorf("%+v", h)
	}
}

func found(h Handicap, yes bool) *Handicap {
	if !yes {
		return nil
	}
	return &h
}

// Only what is on is switched off.
func TestUnmapping(t *testing.T) {
	for want, run := range map[string]string{"": "0", "echo 0 > /sys/kernel/mm/ksm/run": "1"} {
		for balancing, also := range map[string]string{"0": "", "1": "sysctl kernel.numa_balancing=0 "} {
			r := tree(t, map[string]string{"sys/kernel/mm/ksm/run": run + "\n",
				"proc/sys/kernel/numa_balancing": balancing + "\n"})
			if got := strings.Join(r.Unmapping(), " "); got != strings.TrimSpace(also+want) {
				t.Errorf("KSM %s, NUMA balancing %s: %q", run, balancing, got)
			}
		}
	}
	if got := Root(t.TempDir()).Unmapping(); got != nil {
		t.Errorf("without these settings: %v", got)
	}
}
