// SPDX-License-Identifier: Apache-2.0
package procfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const interrupts = `            CPU0       CPU2
   0:         42          0  IR-IO-APIC    2-edge      timer
  16:          1          2   IO-APIC-fasteoi   ehci_hcd:usb1, eth0
  53:          5          6  IR-PCI-MSI-0000:3b:00.0   3-edge      mlx5_comp2@pci:0000:3b:00.0
  99:          0          7     GICv3  27 Level     arch_timer
 100:          0          8  dummy  no trigger here
 LOC:     264456     277665   Local timer interrupts
 ERR:          7
`

const stat = "cpu  10 20 30 40 50 60 70 80 0 0\n" +
	"cpu0 1 2 3 4 5 6 7 8 0 0\ncpu2 11 12 13 14 15 16 17 18 0 0\nintr 5 1 2\n"

const rest = " S 1 101 101 0 -1 69238848 7 0 9 0 30 40 0 0 -51 0 4 0 4711 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 17 3 50 1 0 " +
	"0 0\n"

func TestStat(t *testing.T) {
	cpus, err := ParseStat(stat)
	if err != nil || len(cpus) != 2 || cpus[2] != (CPUTime{11, 12, 13, 14, 15, 16, 17, 18}) {
		t.Fatalf("%+v, %v", cpus, err)
	}
	if n := cpus[0]; n.Total() != 36 || n.Unused() != 9 {
		t.Errorf("%+v", n)
	}
	if d := cpus[2].Since(CPUTime{User: 1, Steal: 2, IOWait: 16}); d.User != 10 || d.Steal != 16 || d.IOWait != 0 {
		t.Errorf("%+v", d)
	}
	for _, text := range []string{"", "intr 5\n", "cpux 1 2 3 4 5 6 7 8\n", "cpu1 1 2 x 4 5 6 7 8\n",
		"cpu1 1 2 3 4 5 6 7\n", "cpu99999999 1 2 3 4 5 6 7 8\n", "cpu0 1 2 3 4 -5 6 7 8\n"} {
		if times, err := ParseStat(text); err == nil {
			t.Errorf("%q: %v", text, times)
		}
	}
}

func TestInterrupts(t *testing.T) {
	rows, bad, err := ParseInterrupts(interrupts)
	if err != nil || len(bad) != 0 || len(rows) != 7 {
		t.Fatal(rows, bad, err)
	}
	var got []string
	for _, r := range rows[:5] {
		got = append(got, fmt.Sprintf("%s %s %d %d", r.Label, r.Handlers(), r.Counts[0], r.Counts[2]))
	}
	const want = "0 timer 42 0; 16 ehci_hcd:usb1, eth0 1 2; 53 mlx5_comp2@pci:0000:3b:00.0 5 6; 99 arch_timer 0 7; " +
		"100 here 0 8"
	if text := strings.Join(got, "; "); text != want {
		t.Error(text)
	}
	if r := rows[5]; r.Name != "Local timer interrupts" || r.Counts[2] != 277665 {
		t.Errorf("%+v", r)
	}
	if r := rows[6]; r.Label != "ERR" || r.Counts != nil {
		t.Errorf("a row without columns: %+v", r)
	}
	_, bad, _ = ParseInterrupts("CPU0 CPU1\n7: 1\n8: 1 x\n")
	if len(bad) != 2 || bad[1].Error() != "IRQ 8 has no count for CPU 1" {
		t.Error(bad)
	}
	for _, text := range []string{"", "CPU0 x1\n", "7: 1\n", "CPU0 CPU70000\n"} {
		if _, _, err := ParseInterrupts(text); err == nil {
			t.Errorf("%q has no head", text)
		}
	}
}

func TestSince(t *testing.T) {
	a := []Row{{"1", "x", map[int]int64{0: 5, 1: 5}}, {"2", "y", map[int]int64{0: 1}}, {"3", "z", map[int]int64{0: 9}}}
	b := []Row{{"1", "x", map[int]int64{0: 5, 1: 9}}, {"2", "y", map[int]int64{0: 1}}, {"3", "z", map[int]int64{0: 2}},
		{"ERR", "", nil}}
	if d := Since(a, b); len(d) != 1 || d[0].Counts[1] != 4 || len(d[0].Counts) != 1 {
		t.Errorf("%+v", d)
	}
}

func TestTask(t *testing.T) {
	for _, name := range []string{"sh", "a) S 1", "x y", ")(", "a (b) c"} {
		s, err := ParseTask("12 (" + name + ")" + rest)
		want := Task{12, name, 'S', 1, 69238848, 7, 9, 70, 4711, 3, 50, 0, 1}
		if err != nil || s != want || !s.Kernel() || !s.Fixed() {
			t.Errorf("%q: %+v %v", name, s, err)
		}
	}
	for _, text := range []string{"", "12 (sh", "12 (sh) S 1 2", "x (a)" + rest, "0 (a)" + rest, "12 (sh)" +
		strings.Repeat(" x", 50)} {
		if s, err := ParseTask(text); err == nil {
			t.Errorf("%q gives %+v", text, s)
		}
	}
}

func TestCgroup(t *testing.T) {
	for _, c := range [][3]string{
		{"0::/a/b", "cpuset", "/a/b 2"}, {"5:cpuset:/x\n3:cpu,cpuacct:/y\n0::/z", "cpuset", "/x 1"},
		{"4:devices,cpuset:/q", "cpuset", "/q 1"},
		{"1:name=systemd:/s", "cpuset", " 0"}, {"0::/with:colon", "cpu", "/with:colon 2"},
		{"3:cpu,cpuacct:/x\n", "cpu", "/x 1"},
		{"9:name=systemd:/\n1:cpu:/a/b\n0::/c\n", "cpu", "/a/b 1"}, {"5:cpuset:/x\n0::/z", "", "/z 2"},
		{"", "cpu", " 0"}, {"nonsense\n", "cpu", " 0"},
	} {
		path, version := ParseCgroup(c[0], c[1])
		if got := fmt.Sprint(path, " ", version); got != c[2] {
			t.Errorf("%q: %s, want %s", c[0], got, c[2])
		}
	}
}

func TestSNMP(t *testing.T) {
	n := ParseSNMP("Tcp: MaxConn InErrs\nTcp: -1 3\nUdp: InDatagrams RcvbufErrors\nUdp: 5 6\nIp6InDiscards\t7\n")
	if fmt.Sprint(n) != "map[Ip6InDiscards:7 TcpInErrs:3 UdpInDatagrams:5 UdpRcvbufErrors:6]" {
		t.Error(n)
	}
}

func TestUnixListeners(t *testing.T) {
	const text = `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0005 01 22013 /run/bench/wire.sock
0000000000000000: 00000002 00000000 00000000 0005 01 22014 /run/bench/tenant0.sock
0000000000000000: 00000003 00000000 00000000 0001 03 19456
`
	if list := ParseUnixListeners(text); fmt.Sprint(list) != "[/run/bench/wire.sock]" {
		t.Error(list)
	}
}

func TestCPUInfo(t *testing.T) {
	const x86 = "processor\t: 3\nmodel name\t: AMD EPYC\nflags\t\t: fpu hypervisor\n\nprocessor : x\nmodel name : Y\n"
	const arm = "processor : 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\nprocessor : 1\nflags : nohypervisor\n"
	if list := ParseCPUInfo(x86); fmt.Sprint(list) != "[{3 AMD EPYC   true}]" {
		t.Errorf("%+v", list)
	}
	if list := ParseCPUInfo(arm); fmt.Sprint(list) != "[{0  0x41 0xd0c false} {1    false}]" {
		t.Errorf("%+v", list)
	}
	if list := ParseCPUInfo("model name : X\nprocessor : -1\nprocessor : 99999999\n"); list != nil {
		t.Errorf("%+v", list)
	}
}

func TestSmallFiles(t *testing.T) {
	if ran, n, err := ParseSchedstat("100 200 3\n"); ran != 100 || n != 200 || err != nil {
		t.Error(n, err)
	}
	if _, n, err := ParseSchedstat("100"); err == nil {
		t.Error(n)
	}
	if s, err := ParseUptime("20.5 30.0\n"); s != 20.5 || err != nil {
		t.Error(s, err)
	}
	for _, text := range []string{"", "x", "NaN 1", "-1 2", "Inf"} {
		if s, err := ParseUptime(text); err == nil {
			t.Errorf("%q: %v", text, s)
		}
	}
	if s := ParseStatus("Name:\ta: b\nUid:\t0\t1\nnothing\n"); s["Name"] != "a: b" || s["Uid"] != "0\t1" ||
		len(s) != 2 {
		t.Error(s)
	}
}

func TestRoot(t *testing.T) {
	root := Root(t.TempDir())
	for name, text := range map[string]string{
		"proc/12/stat": "12 (sh)" + rest, "proc/12/task/12/stat": "12 (sh)" + rest, "proc/12/task/13/stat": "13",
		"proc/12/comm":         "sh\n",
		"proc/12/task/13/comm": "poll\n", "proc/12/cmdline": "sh\x00-c\x00x\x00", "proc/12/status": "PPid:\t1\n",
		"proc/uptime": "7.5 1\n", "proc/3/x": "",
	} {
		path := filepath.Join(string(root), name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := root.Process(12); err != nil || p.Started != 4711 {
		t.Error(p, err)
	}
	if _, err := root.Thread(12, 13); err == nil ||
		!strings.Contains(err.Error(), "/proc/12/task/13/stat has no name") {
		t.Error(err)
	}
	if _, err := root.Process(99); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(string(root), "proc/12/fd"), 0o755),
		os.Symlink("socket:[5]", filepath.Join(string(root), "proc/12/fd/7"))); err != nil {
		t.Fatal(err)
	}
	if files, err := root.Files(12); fmt.Sprint(files) != "map[7:socket:[5]]" || err != nil {
		t.Error(files, err)
	}
	if files, err := root.Files(99); !errors.Is(err, fs.ErrNotExist) {
		t.Error(files, err)
	}
	pids, err := root.Processes()
	tids, err2 := root.Threads(12)
	if fmt.Sprint(pids, tids, err, err2) != "[3 12] [12 13] <nil> <nil>" {
		t.Error(pids, tids, err, err2)
	}
	if tid, err := root.ThreadNamed(12, "poll"); tid != 13 || err != nil {
		t.Error(tid, err)
	}
	if tid, err := root.ThreadNamed(12, "none"); err == nil {
		t.Error(tid)
	}
	status, err := root.Status("proc/12")
	up, err2 := root.Uptime()
	if root.Name(12) != "sh" || root.CommandLine(12) != "sh -c x" || status["PPid"] != "1" || up != 7.5 || err != nil ||
		err2 != nil {
		t.Error(root.Name(12), root.CommandLine(12), status, up, err, err2)
	}
}

// The files of the machine that runs the test are parsed.
func TestHost(t *testing.T) {
	text, err := Host.Read("proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	if cpus, err := ParseStat(text); err != nil || cpus[0].Total() == 0 {
		t.Error(cpus, err)
	}
	if p, err := Host.Process(os.Getpid()); err != nil || p.TID != os.Getpid() || p.Started == 0 {
		t.Error(p, err)
	}
}

func FuzzStat(f *testing.F) {
	f.Add(stat)
	for _, text := range []string{"intr 5\n", "cpu65536 1 2 3 4 5 6 7 8\n", "cpu0 1 2 3\n", "cpu0 1 2 3 4 5 6 7 -8\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cpus, err := ParseStat(text)
		for id, c := range cpus {
			if err != nil || id >= maxCPU || c.User < 0 {
				t.Errorf("%q: CPU %d, %v", text, id, err)
			}
		}
	})
}

func FuzzInterrupts(f *testing.F) {
	for _, text := range []string{interrupts, "", "no CPUs\n",
		"CPU0 CPU1\nno label\n 24: 1\nERR: 0\n 25: 1 2 x 5-fasteoi\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rows, _, err := ParseInterrupts(text)
		for _, r := range rows {
			if _, numbered := r.IRQ(); err != nil || r.Label == "" || numbered && len(r.Counts) == 0 ||
				len(r.Handlers()) > len(r.Name) {
				t.Errorf("%q: %+v %v", text, r, err)
			}
		}
		if d := Since(rows, rows); len(rows) == 1 && len(d) != 0 {
			t.Errorf("%q has counted since itself: %+v", text, d)
		}
	})
}

func FuzzTask(f *testing.F) {
	f.Add("12 (a) b (c))" + rest)
	for _, text := range []string{"12 a", "12 (a) S 1 2", "x (a)" + rest, "12 (a)" + strings.Repeat(" x", 50)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := ParseTask(text); err == nil && (s.TID <= 0 || s.State == 0 ||
			!strings.ContainsAny(text, "0123456789")) {
			t.Errorf("%q: %+v", text, s)
		}
	})
}

func FuzzSmallFiles(f *testing.F) {
	f.Add("5:cpuset:/x\n0::/z")
	f.Add("Udp: InDatagrams RcvbufErrors\nUdp: 5 6\n")
	f.Add("20.5 30.0\n")
	f.Add("100 200 3\n")
	f.Add("100\n")
	f.Add("5:cpu,cpuacct:/x\nx\n0::/z")
	f.Add("model name : AMD EPYC\nCPU implementer : 0x41\nCPU part : 0xd0c\nflags : fpu hypervisor\nprocessor : x\n")
	f.Add("Udp6RcvbufErrors 5\nIp: MaxConn In\nIp: -1 6\n")
	f.Add("00000000: 00000002 00000000 00010000 0001 01 1234 /run/x.sock\n")
	f.Fuzz(func(t *testing.T, text string) {
		if path, version := ParseCgroup(text, "cpu"); version == 0 && path != "" || !strings.Contains(text, path) {
			t.Errorf("%q: %q of version %d", text, path, version)
		}
		if _, n, err := ParseSchedstat(text); err == nil && n < 0 {
			t.Errorf("%q: %d", text, n)
		}
		if s, err := ParseUptime(text); err == nil && !(s >= 0) {
			t.Errorf("%q: %v", text, s)
		}
		for _, p := range ParseCPUInfo("processor : 1\n" + text) {
			if p.ID < 0 || p.ID >= maxCPU {
				t.Errorf("%q: CPU %d", text, p.ID)
			}
		}
		ParseStatus(text)
		ParseSNMP(text)
		ParseUnixListeners(text)
	})
}
