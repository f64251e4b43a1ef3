// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/corelane/corelane/internal/namespace"
	"github.com/corelane/corelane/internal/wait"
)

// gate waits for a line on descriptor 3 before it becomes the command in its arguments. When whoever holds the other
// end dies first, it ends and nothing has been started.
const gate = `read -r go <&3 || exit 1; exec 3<&-; exec "$@"`

// started is a process of the lab that we are the parent of.
type started struct {
	Process
	ended chan struct{} // closed when it has
	err   error         // how
}

// start runs a command in a namespace, in the background, after it has been written into the ledger. Output goes to the
// file log.
func (l *Ledger) start(name, netns, log string, argv ...string) (*started, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	hold, release, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer hold.Close()
	defer release.Close()
	cmd := exec.Command("sh", append([]string{"-c", gate, "sh"}, argv...)...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = out, out, []*os.File{hold}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := namespace.Do(netns, cmd.Start); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := &started{Process: Process{Name: name, Pid: cmd.Process.Pid}, ended: make(chan struct{})}
	p.Start, err = startTime(p.Pid)
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	l.Processes = append(slices.DeleteFunc(l.Processes, func(p Process) bool { return !p.Alive() }), p.Process)
	if err := l.save(); err != nil {
		return nil, err // the gate stays shut
	}
	if _, err := release.WriteString("go\n"); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

const (
	patience  = 5 * time.Second // before a process that was asked to end is killed
	pollEvery = 20 * time.Millisecond
)

// stopAll ends processes of the lab, politely first.
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

// output runs a command in a namespace and returns what it prints. What it prints matters even when it fails.
func output(ctx context.Context, netns string, argv ...string) (stdout, stderr string, err error) {
	var out, errs strings.Builder
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	if err := namespace.Do(netns, cmd.Start); err != nil {
		return "", "", err
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out.String(), errs.String(), err
}
