// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/procfs"
)

// fakeSystemctl stands for a systemd whose unit has process 10, and 11 after a reload.
const fakeSystemctl = `#!/bin/sh
case "$1 $STATE" in
"show missing") echo "MainPID=0"; echo "ActiveState=inactive"; echo "CanReload=no" ;;
"show old") echo "MainPID=10"; echo "ActiveState=active"; echo "CanReload=no" ;;
show*) echo "MainPID=$(cat "$DIR/pid")"; echo "ActiveState=active"; echo "CanReload=yes"; echo "ControlGroup=/unit" ;;
"reload fails") echo "Job for corelaned.service failed." >&2; exit 1 ;;
"reload nothing") ;;
reload*) echo 11 >"$DIR/pid" ;;
esac
`

func TestUpgrade(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("DIR", dir)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("systemctl", fakeSystemctl)
	write("proc/meminfo", "HugePages_Free:    100\nHugepagesize:    2048 kB\n")
	write("proc/10/cmdline", "corelaned\x00--memory\x00256\x00")
	for _, c := range []struct{ state, kind, want string }{
		{"missing", "", "is inactive: there is nothing to take over"},
		{"old", "", "has no ExecReload"},
		{"", "domain threaded\n", "partition of the workers' CPUs"},
		{"fails", "domain\n", "Job for corelaned.service failed.; the log says why"},
		{"nothing", "domain\n", "active with process 10"},
		{"", "domain\n", ""},
	} {
		t.Setenv("STATE", c.state)
		write("pid", "10\n")
		write("sys/fs/cgroup/unit/cgroup.type", c.kind)
		u, err := upgradable{"corelaned.service", "", procfs.Root(dir)}.upgrade(t.Context())
		switch {
		case c.want == "" && (err != nil || u.Before != 10 || u.Process != 11 ||
			!strings.HasPrefix(u.Lacks, "200 MB of hugepages are free, and a daemon that takes over needs 256 MB")):
			t.Errorf("%+v, %v", u, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("state '%s': %v, want %s", c.state, err, c.want)
		}
	}
}

// The process that answers on the daemon's socket, which is this test, is the unit's main one, another unit's, or one
// that systemd does not know.
func TestUpgradeOfAStranger(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "socket")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if err := os.MkdirAll(filepath.Join(dir, "proc", strconv.Itoa(os.Getpid())), 0o755); err != nil {
		t.Fatal(err)
	}
	h := upgradable{"corelaned.service", socket, procfs.Root(dir)}
	for _, c := range []struct {
		main, group string
		refused     bool
	}{
		{strconv.Itoa(os.Getpid()), "/system.slice/corelaned.service", false},
		{"0", "/system.slice/corelaned.service", true}, // a standby
		{"10", "/system.slice/corelaned.service", true},
		{"0", "/user.slice/session-1.scope", true}, // by hand
		{"10", "/system.slice/second.service", false},
	} {
		text := "0::" + c.group + "\n"
		path := filepath.Join(dir, "proc", strconv.Itoa(os.Getpid()), "cgroup")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		err := h.stranger(map[string]string{"MainPID": c.main, "ActiveState": "active"})
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), c.group) {
			t.Errorf("main process %s, %s: %v", c.main, c.group, err)
		}
	}
}
