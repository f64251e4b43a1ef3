// SPDX-License-Identifier: Apache-2.0
package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/namespace"
	"github.com/corelane/corelane/internal/wait"
)

// Command is a program to run beside the benchmark.
type Command struct {
	Name  string // in errors
	Argv  []string
	Env   []string // besides our own
	Log   string   // file that its output goes to
	CPUs  []int    // that it may use; empty: as we do
	Netns string   // named network namespace; empty: ours
}

// Process is a Command that runs, in a process group of its own. It does not outlive us.
type Process struct {
	Pid     int
	command Command
	stdin   io.Closer
	ended   chan struct{} // closed when it has
	err     error         // how
}

// StartProcess starts a command. It is not ready then: see Await.
func StartProcess(c Command) (*Process, error) {
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p := &Process{command: c, ended: make(chan struct{})}
	if p.stdin, err = cmd.StdinPipe(); err != nil { // stays open: some programs end with their input
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	started := make(chan error)
	go p.run(cmd, started)
	if err := <-started; err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", c.Name, err), p.stdin.Close())
	}
	return p, nil
}

// run has a thread of its own that ends with it: the child gets the CPUs and the namespace of the thread that starts
// it, and Pdeathsig is about that thread.
func (p *Process) run(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	err := p.command.dress()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		p.Pid = cmd.Process.Pid
	}
	started <- err
	if err == nil {
		p.err = cmd.Wait()
		_ = unix.Kill(-p.Pid, unix.SIGKILL) // what it started, and left
		close(p.ended)
	}
}

// dress gives this thread the command's CPUs and namespace.
func (c *Command) dress() error {
	if len(c.CPUs) > 0 {
		var set unix.CPUSet
		for _, cpu := range c.CPUs {
			set.Set(cpu)
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("CPUs %v: %w", c.CPUs, err)
		}
	}
	if c.Netns == "" {
		return nil
	}
	return namespace.Enter(c.Netns)
}

const pollEvery = 10 * time.Millisecond

// Await calls ready until it is nil. It gives up when the process ends or after a time, with the last lines of the log.
func (p *Process) Await(ctx context.Context, timeout time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not ready after %v", timeout))
	defer cancel()
	var missing error
	err := wait.Until(ctx, pollEvery, func() (bool, error) {
		if missing = ready(ctx); missing == nil {
			return true, nil
		}
		return false, p.Ended()
	})
	if err != nil && p.Ended() == nil {
		err = p.explain(fmt.Errorf("%w: %w", err, missing))
	}
	return err
}

// Ended is nil as long as the process runs, else how it ended.
func (p *Process) Ended() error {
	select {
	case <-p.ended:
		if p.err == nil {
			return p.explain(errors.New("has ended"))
		}
		return p.explain(fmt.Errorf("has ended: %w", p.err))
	default:
		return nil
	}
}

func (p *Process) explain(err error) error {
	return fmt.Errorf("%s: %w; the end of %s:\n%s", p.command.Name, err, p.command.Log, lastLines(p.command.Log))
}

func lastLines(path string) string {
	const some = 8
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-some):], "\n  ")
}

const patience = 5 * time.Second // with a process that was asked to stop

// Pause returns when none of the process' threads runs any more.
func (p *Process) Pause() error {
	if err := p.signal(unix.SIGSTOP); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, fmt.Errorf("%s: does not pause", p.command.Name))
	defer cancel()
	return wait.Until(ctx, 50*time.Microsecond, func() (bool, error) {
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_PID, p.Pid, &info, unix.WSTOPPED|unix.WNOHANG, nil); err != nil {
			return false, errors.Join(fmt.Errorf("%s: pause: %w", p.command.Name, err), p.Ended())
		}
		return info.Signo != 0, nil
	})
}

// Resume ends a pause.
func (p *Process) Resume() error { return p.signal(unix.SIGCONT) }

// signal reaches the whole group, as long as the process runs.
func (p *Process) signal(sig syscall.Signal) error {
	if err := p.Ended(); err != nil {
		return err
	}
	if err := unix.Kill(-p.Pid, sig); err != nil {
		return fmt.Errorf("%s: %v: %w", p.command.Name, sig, err)
	}
	return nil
}

// Stop ends the process and what it started, politely first. It is an error when it had ended by itself.
func (p *Process) Stop() error {
	if p == nil {
		return nil
	}
	defer p.stdin.Close()
	for _, sig := range []syscall.Signal{unix.SIGTERM, unix.SIGKILL} {
		if err := p.Ended(); err != nil {
			return err
		}
		_ = unix.Kill(-p.Pid, sig)
		_ = unix.Kill(-p.Pid, unix.SIGCONT) // a paused one would not notice
		if p.waitGone() {
			return nil
		}
	}
	return fmt.Errorf("%s: pid %d is still alive", p.command.Name, p.Pid)
}

// waitGone does not trust `ended` alone: a busy kernel has been seen to take seconds from the end of a process to that
// of the wait for it.
func (p *Process) waitGone() bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return wait.Until(ctx, time.Millisecond, func() (bool, error) {
		return p.Ended() != nil || errors.Is(unix.Kill(-p.Pid, 0), unix.ESRCH), nil
	}) == nil
}
