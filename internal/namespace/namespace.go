// SPDX-License-Identifier: Apache-2.0

// Package namespace creates named network namespaces, as `ip netns` shows them, and runs functions in them.
package namespace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Dir has the names.
const Dir = "/run/netns"

// New creates a namespace, runs prepare in it, and sets loopback up. After an error the caller calls Delete.
func New(name string, prepare func() error) error {
	err := OnThread(func() error {
		ns, err := netns.NewNamed(name)
		if err != nil {
			return err
		}
		defer ns.Close()
		if err := prepare(); err != nil {
			return err
		}
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(lo)
	})
	return named(name, err)
}

// Delete removes a namespace of which any part may exist.
func Delete(name string) error {
	path := filepath.Join(Dir, name)
	err := unix.Unmount(path, unix.MNT_DETACH)
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Do runs f in a namespace. Processes that it starts are in the namespace, goroutines are not.
func Do(name string, f func() error) error {
	return OnThread(func() error {
		if err := Enter(name); err != nil {
			return err
		}
		return f()
	})
}

// Enter moves the calling thread, which the caller has locked (runtime.LockOSThread).
func Enter(name string) error {
	ns, err := netns.GetFromName(name)
	if err != nil {
		return named(name, err)
	}
	defer ns.Close()
	return named(name, netns.Set(ns))
}

// OnThread runs f on a thread that ends with it, so that no other goroutine sees what f changes of its thread.
func OnThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}

// Sysctl writes a setting, such as "net/ipv4/ip_forward", of the thread's namespace. The error is fs.ErrNotExist for a
// setting that the kernel does not have.
func Sysctl(name, value string) error {
	return os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0o644)
}

func named(name string, err error) error {
	if err != nil {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	return nil
}
