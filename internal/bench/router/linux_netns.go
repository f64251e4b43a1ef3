// SPDX-License-Identifier: Apache-2.0
package router

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Network namespaces of routers are named after us and counted: a later benchmark knows those of one that was killed.
const (
	netnsDir    = "/run/netns"
	netnsPrefix = "corelane-bench-"
)

var netnsCount atomic.Uint32

// addNetns makes a namespace with loopback up, and returns its name. Where IPv6 is not needed it is off: it would send
// packets of its own.
func addNetns(what string, ipv6 bool) (string, error) {
	name := fmt.Sprintf("%s%d-%s%d", netnsPrefix, os.Getpid(), what, netnsCount.Add(1))
	err := errors.Join(removeAbandoned(netnsDir, "/proc"), onThread(func() error {
		ns, err := netns.NewNamed(name)
		if err != nil {
			return err
		}
		defer ns.Close()
		if err := ipv6Settings(ipv6); err != nil {
			return err
		}
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(lo)
	}))
	if err != nil {
		return "", errors.Join(fmt.Errorf("namespace %s: %w", name, err), removeNetns(filepath.Join(netnsDir, name)))
	}
	return name, nil
}

func ipv6Settings(on bool) error {
	if !on {
		return errors.Join(sysctl("net/ipv6/conf/all/disable_ipv6", "1"), sysctl("net/ipv6/conf/default/disable_ipv6", "1"))
	}
	for name, value := range map[string]string{
		"accept_dad": "0", "accept_ra": "0", "router_solicitations": "0",
		"mldv1_unsolicited_report_interval": "1", "mldv2_unsolicited_report_interval": "1", // ms: all reports are out before anybody listens
	} {
		if err := sysctl("net/ipv6/conf/default/"+name, value); err != nil {
			return err
		}
	}
	return nil
}

const sysctlDir = "/proc/sys"

// sysctl of the thread's namespace. What the kernel does not have needs no setting.
func sysctl(name, value string) error {
	err := os.WriteFile(filepath.Join(sysctlDir, name), []byte(value), 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// removeAbandoned removes the namespaces of benchmarks that do not run any more.
func removeAbandoned(dir, proc string) error {
	paths, err := filepath.Glob(filepath.Join(dir, netnsPrefix+"*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range paths {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), netnsPrefix), "-")
		if _, err := strconv.Atoi(pid); err != nil {
			continue // not one of ours
		}
		if _, err := os.Stat(filepath.Join(proc, pid)); errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, removeNetns(path))
		}
	}
	return errors.Join(errs...)
}

// delNetns removes a namespace, if it is there.
func delNetns(name string) error {
	if name == "" {
		return nil
	}
	return removeNetns(filepath.Join(netnsDir, name))
}

func removeNetns(path string) error {
	err := unix.Unmount(path, unix.MNT_DETACH)
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// inNetns runs f on a thread that is in a namespace.
func inNetns(name string, f func() error) error {
	return onThread(func() error {
		if err := (&Command{Netns: name}).dress(); err != nil {
			return err
		}
		return f()
	})
}

// onThread runs f on a thread that ends with it: what f changes of its thread, nobody else sees.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}

// output runs the command to its end, with this input, and returns what it prints.
func (c *Command) output(ctx context.Context, input []byte) ([]byte, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &errs
	err := onThread(func() error {
		if err := c.dress(); err != nil {
			return err
		}
		return cmd.Run()
	})
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		why, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n")
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(c.Argv[:min(len(c.Argv), 6)], " "), err, why)
	}
	return out.Bytes(), nil
}
