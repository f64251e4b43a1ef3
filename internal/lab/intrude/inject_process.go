// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/procfs"
	"github.com/corelane/corelane/internal/wait"
)

// --- Disturbances of the process of corelaned. ---

func injectQuota(ctx context.Context, b *loadedVictim) (*injection, error) {
	return quotaOf(50)(ctx, b)
}

// quotaOf moves it into a cgroup with a quota of so many percent of a CPU.
func quotaOf(percent int) injector {
	return func(_ context.Context, b *loadedVictim) (*injection, error) { return b.quota(1000 * percent) }
}

func (b *loadedVictim) quota(us int) (*injection, error) {
	top, file, value := "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", strconv.Itoa(us)
	if _, err := os.Stat(filepath.Join(top, "cgroup.procs")); errors.Is(err, fs.ErrNotExist) {
		top, file, value = "/sys/fs/cgroup", "cpu.max", value+" 100000"
	}
	home, err := groupOf(b.PID(), top)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("corelane-intrude-%d", os.Getpid())
	group := filepath.Join(top, name)
	if err := os.Mkdir(group, 0o755); err != nil {
		return nil, err
	}
	enter := func(group string) error { return write(filepath.Join(group, "cgroup.procs"), strconv.Itoa(b.PID())) }
	undo := func() error { return errors.Join(enter(home), removeGroup(group)) }
	if err := errors.Join(write(filepath.Join(group, file), value), enter(group)); err != nil {
		return nil, errors.Join(err, undo())
	}
	return &injection{culprit: Culprit{Name: name}, undo: undo}, nil
}

// groupOf returns the cgroup of a process, as a directory below top.
func groupOf(pid int, top string) (string, error) {
	text, err := procfs.Host.Read(fmt.Sprintf("proc/%d/cgroup", pid))
	controller, want := filepath.Base(top), 1
	if top == "/sys/fs/cgroup" || top == "/sys/fs/cgroup/unified" {
		controller, want = "", 2
	}
	if group, version := procfs.ParseCgroup(text, controller); version == want {
		return filepath.Join(top, group), nil
	}
	return "", errors.Join(err, fmt.Errorf("process %d is in no cgroup below %s", pid, top))
}

// removeGroup removes a group that has just become empty, which the kernel may refuse for a moment.
func removeGroup(group string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = wait.Until(ctx, 20*time.Millisecond, func() (bool, error) {
		err = os.Remove(group)
		return err == nil, nil
	})
	return err
}

func write(path, text string) error { return os.WriteFile(path, []byte(text), 0) }

// every calls f periodically until the returned undo is called.
func every(period time.Duration, f func() error) (undo func() error) {
	stop, ended := make(chan struct{}), make(chan error)
	go func() {
		var err error
		for tick := time.NewTicker(period); err == nil; {
			select {
			case <-tick.C:
				err = f()
			case <-stop:
				ended <- nil
				return
			}
		}
		<-stop
		ended <- err
	}()
	return func() error { close(stop); return <-ended }
}

const stopFor = 50 * time.Millisecond

func injectStop(_ context.Context, b *loadedVictim) (*injection, error) {
	return &injection{culprit: Culprit{PID: os.Getpid()}, undo: stopEvery(b.PID(), stopFor, time.Second)}, nil
}

// stopEvery stops a process for a time in each period.
func stopEvery(pid int, stop, period time.Duration) (undo func() error) {
	return every(period, func() error {
		err := unix.Kill(pid, unix.SIGSTOP)
		time.Sleep(stop)
		return errors.Join(err, unix.Kill(pid, unix.SIGCONT))
	})
}
