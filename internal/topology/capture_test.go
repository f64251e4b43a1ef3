// SPDX-License-Identifier: Apache-2.0
package topology_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/rounds"
	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/topology/topologytest"
)

// asJSON returns a machine as JSON.
func asJSON(t testing.TB, m *topology.Machine) string {
	t.Helper()
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// captured packs a machine and returns the archive's name.
func captured(t testing.TB, tree topology.Tree) (string, *topology.Captured) {
	t.Helper()
	var b bytes.Buffer
	c, err := topology.CaptureTree(tree, &b)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "m.tar.gz")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name, c
}

// read reads a machine that must be readable.
func read(t testing.TB, root string) *topology.Machine {
	t.Helper()
	m, err := topology.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A captured machine reads like the machine: the archive has everything that is read, except what is left out on
// purpose. Files that could not be read on the machine cannot be read in the archive.
func TestCaptureIsWhole(t *testing.T) {
	for _, name := range topologytest.Names() {
		want := topologytest.Machine(t, name)
		archive, c := captured(t, topologytest.Describe(t, name).Tree(t))
		want.Kernel.Cmdline = strings.ReplaceAll(want.Kernel.Cmdline, "root=UUID=228c59ea-82f0-4ee8-9d03-5620e5f0fafb",
			"root=(left-out)")
		if a, b := asJSON(t, read(t, archive)), asJSON(t, want); a != b {
			t.Errorf("%s: the archive reads as\n%s\nthe machine as\n%s", name, a, b)
		}
		if c.Files < 50 || c.Hostname != want.Hostname {
			t.Errorf("%s: %d files of '%s'", name, c.Files, c.Hostname)
		}
	}
}

// What a container sees of its host is left out of an archive, too, and nothing else.
func TestCaptureOfContainer(t *testing.T) {
	rounds.Seeds(t, 30, 200, func(seed uint64) {
		s, own := topologytest.RandomContainer(seed)
		m := s.Machine(t)
		archive, _ := captured(t, s.Tree(t))
		if a, b := asJSON(t, read(t, archive)), asJSON(t, m); a != b || !m.Usable().Equal(own) {
			t.Errorf("seed %d: CPUs %s of %s, the archive reads as\n%s\nthe container as\n%s", seed, m.Usable(), own,
				a, b)
		}
	})
}

// A machine reads the same from a directory and from memory.
func TestDirectory(t *testing.T) {
	for _, name := range []string{"odd-even-16", "partition"} {
		if a, b := asJSON(t, read(t, topologytest.Dir(t, name))), asJSON(t, topologytest.Machine(t, name)); a != b {
			t.Errorf("%s: the directory reads as\n%s\nmemory as\n%s", name, a, b)
		}
	}
}

func TestCaptureHasNoSecrets(t *testing.T) {
	s := topologytest.Describe(t, "odd-even-16")
	s.Cmdline += " ks=http://host/ks.cfg?id=hunter2 admin.password=hunter2 rd.luks.key=hunter2 -- --auth=hunter2"
	s.Files["etc/nova/nova.conf"] = "[DEFAULT]\ntransport_url=rabbit://nova:hunter2@mq\n[compute]\n" +
		"cpu_dedicated_set=2-7\n[libvirt]\nrbd_secret_uuid=hunter2\n"
	s.Files["etc/kubernetes/kubelet.conf"] = "kind: Config\nusers:\n- user: {token: hunter2}\n"
	s.Files["var/lib/kubelet/config.yaml"] = "kind: KubeletConfiguration\nauthentication: {x: hunter2}\n" +
		"cpuManagerPolicy: static\nreservedSystemCPUs: \"0\"\n"
	s.Files["var/lib/kubelet/cpu_manager_state"] =
		`{"policyName":"static","defaultCpuSet":"0-3","entries":{"hunter2":{"c":"4-5"}}}`
	s.Files["proc/23329/cmdline"] += "\x00-netdev\x00tap,fds=1:2:3,id=hunter2,vhost=on\x00-vnc\x00password=hunter2"
	s.Files["proc/23329/environ"] = "PASSWORD=hunter2"
	s.Files["etc/default/irqbalance"] = "IRQBALANCE_BANNED_CPULIST=2-3\nSECRET=hunter2\n"
	name, c := captured(t, s.Tree(t))
	for file, text := range unpacked(t, name) {
		for _, secret := range []string{"hunter2", "52:54:00", "bigip.qcow2", "9e2e8a0e"} {
			if strings.Contains(file+text, secret) {
				t.Errorf("%s has '%s': %s", file, secret, text)
			}
		}
	}
	m := read(t, name)
	equal(t, "nova", m.Services.Nova, "map[cpu_dedicated_set:2-7]")
	equal(t, "kubelet", m.Services.Kubelet,
		"map[cpuManagerPolicy:static reservedSystemCPUs:0 state.defaultCpuSet:0-3 state.exclusive:4-5 "+
			"state.policyName:static]")
	equal(t, "bans", m.Services.IrqbalanceBans, "2-3")
	equal(t, "queues", m.Guests[0].Queues, "[1 4 4]")
	equal(t, "cmdline", m.Kernel.Cmdline, "BOOT_IMAGE=/vmlinuz-3.13.0-24-generic ro quiet ks=(left-out) "+
		"admin.password=(left-out) rd.luks.key=(left-out)")
	left := strings.Join(c.Left, "\n")
	for _, what := range []string{"/proc/cmdline: ks, admin.password, rd.luks.key, arguments of init",
		"/etc/nova/nova.conf: 2 other settings",
		"/etc/libvirt/qemu/bigip-virtio.xml: all but the name, vCPUs, pins, memory nodes and queues",
		"/etc/kubernetes/kubelet.conf: the whole file"} {
		if !strings.Contains(left, what) {
			t.Errorf("what was left out does not say '%s':\n%s", what, left)
		}
	}
}

// unpacked returns the files of an archive.
func unpacked(t testing.TB, name string) map[string]string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all, in := map[string]string{}, tar.NewReader(z)
	for {
		h, err := in.Next()
		if err != nil {
			return all
		}
		var b bytes.Buffer
		if _, err := b.ReadFrom(in); err != nil {
			t.Fatal(err)
		}
		all[h.Name] = b.String()
	}
}

// archive makes an archive by hand.
func archive(t testing.TB, headers ...tar.Header) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	out := tar.NewWriter(z)
	for _, h := range headers {
		if err := out.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write(bytes.Repeat([]byte("0"), int(min(h.Size, 1<<20)))); err != nil {
			t.Fatal(err)
		}
	}
	_ = out.Flush()
	_ = z.Close()
	name := filepath.Join(t.TempDir(), "evil.tar.gz")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestEvilArchives(t *testing.T) {
	for why, name := range map[string]string{
		"'../etc/passwd' is not a name": archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "../etc/passwd"}),
		"'/etc/passwd' is not a name":   archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "/etc/passwd"}),
		"occurs twice": archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "a"},
			tar.Header{Typeflag: tar.TypeReg, Name: "a"}),
		"'a' is not a directory": archive(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "/"},
			tar.Header{Typeflag: tar.TypeReg, Name: "a/b"}),
		"is not a file, directory or": archive(t, tar.Header{Typeflag: tar.TypeFifo, Name: "proc/interrupts"}),
		"is not a file, directory or symbolic": archive(t, tar.Header{Typeflag: tar.TypeLink, Name: "proc/cpuinfo",
			Linkname: "/etc/shadow"}),
		"exceeds the limits of an archive": archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "a", Size: 1 << 40}),
		"damaged archive":                  archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "a", Size: 4 << 20}),
		"no CPU was found, neither in":     archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "proc/interrupts"}),
		"is not an archive":                os.Args[0],
		"no such file or directory":        "/nonexistent",
	} {
		if _, err := topology.Read(name); err == nil || !input.Is(err) || !strings.Contains(err.Error(), why) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// A link that leads out of the directory is not followed.
func TestLinkOutOfDirectory(t *testing.T) {
	root := topologytest.Dir(t, "one-cpu")
	name := filepath.Join(root, "proc/sys/kernel/hostname")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/proc/sys/kernel/hostname", name); err != nil {
		t.Fatal(err)
	}
	m := read(t, root)
	if m.Hostname != "" || !strings.Contains(unread(m), "/proc/sys/kernel/hostname path escapes") {
		t.Errorf("host name %s, unread %s", m.Hostname, unread(m))
	}
}

// A link within the directory is followed, and what is no file does not block.
func TestLinkInDirectory(t *testing.T) {
	root := topologytest.Dir(t, "one-cpu")
	kernel := filepath.Join(root, "proc/sys/kernel")
	for _, name := range []string{"hostname", "osrelease"} {
		if err := os.Rename(filepath.Join(kernel, name), filepath.Join(root, "proc", name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../hostname", filepath.Join(kernel, "hostname")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(kernel, "osrelease"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := read(t, root)
	if want := topologytest.Machine(t, "one-cpu").Hostname; m.Hostname != want || want == "" ||
		!strings.Contains(unread(m), "/proc/sys/kernel/osrelease is not a regular file") {
		t.Errorf("host name %s, unread %s", m.Hostname, unread(m))
	}
}
