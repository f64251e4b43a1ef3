// SPDX-License-Identifier: Apache-2.0
package namespace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	name := fmt.Sprintf("corelane-test-%d", os.Getpid())
	t.Cleanup(func() {
		for range 2 { // the second time nothing is there
			if err := Delete(name); err != nil {
				t.Error(err)
			}
		}
		if _, err := os.Stat(filepath.Join(Dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", name, err)
		}
	})
	if err := New(name, func() error { return Sysctl("net/ipv4/ip_forward", "1") }); err != nil {
		t.Fatal(err)
	}
	err := Do(name, func() error {
		links, err := netlink.LinkList()
		if err != nil || len(links) != 1 || links[0].Attrs().Name != "lo" {
			return fmt.Errorf("links %v, %w", links, err)
		}
		text, err := os.ReadFile("/proc/sys/net/ipv4/ip_forward")
		if string(text) != "1\n" {
			return fmt.Errorf("ip_forward is %q, %w", text, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := Sysctl("net/ipv4/no_such_setting", "1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing setting: %v", err)
	}
	if err := Do(name+"x", func() error { return nil }); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing namespace: %v", err)
	}
	bad := errors.New("bad luck")
	if err := New(name+"y", func() error { return bad }); !errors.Is(err, bad) {
		t.Errorf("preparation fails: %v", err)
	}
	if err := Delete(name + "y"); err != nil {
		t.Error(err)
	}
}
