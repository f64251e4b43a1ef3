// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/process"
	"github.com/corelane/corelane/internal/procfs"
	"github.com/corelane/corelane/internal/wait"
)

// Process is a process that the lab started. A process id may be used again; id and start time together are unique.
type Process struct {
	Name  string `json:"name"`
	Pid   int    `json:"pid"`
	Start int64  `json:"start"` // ticks since boot, /proc/PID/stat
}

// Alive says whether the process still runs.
func (p Process) Alive() bool {
	now, err := procfs.Host.Process(p.Pid)
	return err == nil && now.Started == p.Start && now.State != 'Z'
}

// signal sends a signal to this process, and to no later one with its id.
func (p Process) signal(sig syscall.Signal) error {
	fd, err := unix.PidfdOpen(p.Pid, 0)
	if err != nil {
		return ignoreGone(err)
	}
	defer unix.Close(fd)
	if !p.Alive() { // from here on the pidfd keeps the id from being used again
		return nil
	}
	return ignoreGone(unix.PidfdSendSignal(fd, sig, nil, 0))
}

func ignoreGone(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

func startTime(pid int) (int64, error) {
	p, err := procfs.Host.Process(pid)
	return p.Started, err
}

// start runs a command in a namespace, in the background and beyond the end of this program. The process is in the
// ledger before its program begins.
func (l *Ledger) start(name, netns, log string, argv ...string) (*process.Process, error) {
	enroll := func(pid int) error {
		begun, err := startTime(pid)
		if err != nil {
			return err
		}
		l.Processes = append(slices.DeleteFunc(l.Processes, func(p Process) bool {
			return !p.Alive()
		}), Process{name, pid, begun})
		return l.save()
	}
	return process.Start(process.Command{Name: name, Argv: argv, Log: log, Netns: netns, Detached: true,
		Enroll: enroll})
}

const (
	patience  = 5 * time.Second // between SIGTERM and SIGKILL
	pollEvery = 20 * time.Millisecond
)

// stopAll ends processes of the lab: with SIGTERM, and after a while with SIGKILL.
func stopAll(list []Process) error {
	var errs []error
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for _, p := range list {
			if err := p.signal(sig); err != nil {
				errs = append(errs, fmt.Errorf("%s, pid %d: %w", p.Name, p.Pid, err))
			}
		}
		if waitGone(list) {
			return nil
		}
	}
	return errors.Join(append(errs, fmt.Errorf("still alive: %v", list))...)
}

func waitGone(list []Process) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return wait.Until(ctx, pollEvery, func() (bool, error) {
		return !slices.ContainsFunc(list, Process.Alive), nil
	}) == nil
}
