// SPDX-License-Identifier: Apache-2.0

// Package process starts programs, waits until they are ready, pauses and ends them.
package process

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

// Command is a program to run.
type Command struct {
	Name     string // in errors
	Argv     []string
	Env      []string // added to the environment of this program
	Log      string   // file for its output
	CPUs     []int    // that it may use; empty: those of this program
	Netns    string   // named network namespace; empty: that of this program
	Detached bool     // runs on when this program ends; otherwise it is killed then
	// Enroll, if not nil, is called with the process id before the program begins. When it fails, or this program is
	// killed in it, the program never begins.
	Enroll func(pid int) error
}

// Process is a running Command, in a process group of its own.
type Process struct {
	Pid     int
	command Command
	stdin   io.Closer     // nil when detached
	ended   chan struct{} // closed when the process has ended
	err     error         // of its end
}

// Start starts a command. It does not wait until the program is ready: see Await.
func Start(c Command) (*Process, error) {
	p, err := start(c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	return p, nil
}

func start(c Command) (*Process, error) {
	argv, gate, err := c.gated()
	if err != nil {
		return nil, err
	}
	defer gate.close()
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, gate.files()
	cmd.Env = append(os.Environ(), c.Env...)
	p := &Process{command: c, ended: make(chan struct{})}
	if c.Detached {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	} else {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		if p.stdin, err = cmd.StdinPipe(); err != nil { // stays open: some programs end with their input
			return nil, err
		}
	}
	started := make(chan error)
	go p.run(cmd, started)
	if err := <-started; err != nil {
		return nil, errors.Join(err, p.closeStdin())
	}
	if err := gate.open(c.Enroll, p.Pid); err != nil {
		return nil, errors.Join(err, p.closeStdin())
	}
	return p, nil
}

func (p *Process) closeStdin() error {
	if p.stdin == nil {
		return nil
	}
	return p.stdin.Close()
}

// run starts the command on a thread of its own, which lives until the command ends: a child inherits the CPUs and the
// namespace of the thread that starts it, and gets Pdeathsig when that thread ends. The thread then leaves the child's
// CPUs: where the child or others spin, it would learn of the end seconds later.
func (p *Process) run(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	var own unix.CPUSet
	err := unix.SchedGetaffinity(0, &own)
	if err == nil {
		err = p.command.confine()
	}
	if err == nil {
		err = cmd.Start()
	}
	_ = unix.SchedSetaffinity(0, &own)
	if err == nil {
		p.Pid = cmd.Process.Pid
	}
	started <- err
	if err == nil {
		p.err = cmd.Wait()
		_ = unix.Kill(-p.Pid, unix.SIGKILL) // its children
		close(p.ended)
	}
}

// confine gives the calling thread the command's CPUs and namespace.
func (c *Command) confine() error {
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

// Await calls ready until it returns nil. When the process ends or the time is over, the error has the last lines of
// the log.
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

// Ended returns nil while the process runs, and afterwards an error that says how it ended.
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

const patience = 5 * time.Second // between SIGTERM and SIGKILL, and for a pause

// Pause stops all threads of the process. It returns when none of them runs any more.
func (p *Process) Pause() error {
	if err := p.signal(unix.SIGSTOP); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience,
		fmt.Errorf("%s: does not pause", p.command.Name))
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

// signal sends a signal to the process group, unless the process has ended.
func (p *Process) signal(sig syscall.Signal) error {
	if err := p.Ended(); err != nil {
		return err
	}
	if err := unix.Kill(-p.Pid, sig); err != nil {
		return fmt.Errorf("%s: %v: %w", p.command.Name, sig, err)
	}
	return nil
}

// Stop ends the process and its children: with SIGTERM, and after a while with SIGKILL. It is an error when the process
// had ended by itself, or dies of another signal.
func (p *Process) Stop() error {
	if p == nil {
		return nil
	}
	defer func() { _ = p.closeStdin() }()
	if err := p.Ended(); err != nil {
		return err
	}
	gone := errors.Is(unix.Kill(-p.Pid, unix.SIGTERM), unix.ESRCH)
	_ = unix.Kill(-p.Pid, unix.SIGCONT) // a paused process does not see the first signal
	switch ended := p.waitEnded(); {
	case ended && (gone || p.crashed()):
		return p.Ended()
	case ended:
		return nil
	}
	_ = unix.Kill(-p.Pid, unix.SIGKILL)
	if p.waitEnded() {
		return nil
	}
	return fmt.Errorf("%s: pid %d is still alive", p.command.Name, p.Pid)
}

func (p *Process) waitEnded() bool {
	select {
	case <-p.ended:
		return true
	case <-time.After(patience):
		return false
	}
}

// crashed says whether a signal other than SIGTERM was the end of the process.
func (p *Process) crashed() bool {
	var exit *exec.ExitError
	if !errors.As(p.err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() != unix.SIGTERM
}
