// SPDX-License-Identifier: Apache-2.0
package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const smaps = `55d0c0a00000-55d0c0b00000 r-xp 00001000 fe:00 42   /usr/sbin/corelaned
Rss:                1024 kB
Anonymous:             8 kB
7f0000000000-7f0000100000 r-xp 00001000 fe:00 43   /usr/lib/libc.so.6
Anonymous:             4 kB
55d0c0c00000-55d0c0d00000 rw-p 00002000 fe:00 42   /usr/sbin/corelaned
Anonymous:            64 kB
`

func TestHandicaps(t *testing.T) {
	r := tree(t, map[string]string{"proc/101/smaps": smaps, "proc/101/status": "Name:\tx\nHugetlbPages:\t0 kB",
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
	want := "somebody set breakpoints in 8 kB of the program's code (uprobes, a debugger); " +
		"performance counters are open: perf (202); the kernel's tracer 'function' is on; " +
		"1 kprobes are set in the kernel; the process has no hugepages; " +
		"CPU 1 runs at 1200 MHz, although it could at 3000 (governor powersave)"
	if text := strings.Join(got, "; "); text != want {
		t.Errorf("%s\nnot\n%s", text, want)
	}
	if got := Root(t.TempDir()).Handicaps(1, []int{0}); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// The code of a program that nobody probes is not copied.
func TestNoHandicap(t *testing.T) {
	cmd := exec.Command("sleep", "10")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill() // fails once it has ended
		_ = cmd.Wait()
	}()
	if h, found := Root("/").probed(cmd.Process.Pid); found {
		t.Errorf("%+v", h)
	}
}
