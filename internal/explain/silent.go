// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/api"
	"github.com/corelane/corelane/internal/explain/kernel"
)

// A daemon that does not answer is observed like any other process: its workers are found by their names in /proc.

// answerTimeout is for one set of questions; a daemon that is alive answers in far less.
const answerTimeout = 3 * time.Second

// workerThreads is how the names of worker threads begin.
const workerThreads = "pmd-"

// answers asks the daemon. It returns false if there was no answer in time.
func answers(ctx context.Context, ask func(context.Context) error) (bool, error) {
	asked, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	err := ask(asked)
	if err != nil && errors.Is(asked.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
		return false, nil
	}
	return true, err
}

// connect dials the daemon. If it does not answer, the session observes its process.
func (s *Session) connect(ctx context.Context) error {
	s.silent = 0
	answered, err := answers(ctx, func(ctx context.Context) (err error) {
		if s.client, err = api.Dial(ctx, s.o.Socket, "corelane explain"); err != nil {
			return err
		}
		_, s.event, err = events(ctx, s.client, 0)
		return err
	})
	if answered && err == nil {
		return nil
	}
	if s.client != nil {
		err = errors.Join(err, s.client.Close())
		s.client = nil
	}
	if !answered && err == nil {
		s.silent, err = Listener(s.o.Socket)
	}
	return err
}

// hush ends the connection to a daemon that does not answer any more.
func (s *Session) hush() {
	s.silent = s.Daemon()
	_ = s.client.Close() // nothing is waiting for its end
	s.client = nil
}

// Listener returns the process that listens on a Unix socket: the kernel accepts connections on its behalf.
func Listener(path string) (int, error) {
	c, err := net.Dial("unix", path)
	if err != nil {
		return 0, &api.Unavailable{Socket: path, Err: err}
	}
	defer func() { _ = c.Close() }() // nothing was written
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(err, failed); err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}

// workersOf returns the worker threads of a process, by their names.
func (s *Session) workersOf(pid int) (out []kernel.Target, err error) {
	s.names = map[int]string{}
	tids, err := s.root.Threads(pid)
	for _, tid := range tids {
		if t, ok := s.root.Thread(tid); ok && strings.HasPrefix(t.Name, workerThreads) {
			out = append(out, kernel.Target{TID: tid, CPU: t.CPU()})
			s.names[tid] = t.Name
		}
	}
	return out, err
}

// observeSilent waits for the end of the window, unless it is over, and describes the workers by what /proc says.
func (s *Session) observeSilent(ctx context.Context, e *Evidence, begin time.Time, waited bool) error {
	if !waited {
		if err := s.wait(ctx); err != nil {
			return err
		}
	}
	e.Started, e.Seconds, e.Silent = begin, time.Since(begin).Seconds(), true
	if len(s.names) == 0 {
		if _, err := s.workersOf(s.Daemon()); err != nil {
			return err
		}
	}
	for _, t := range s.targets {
		w := Worker{TID: t.TID, CPU: t.CPU, LastCPU: t.CPU, Thread: s.names[t.TID], Affinity: strconv.Itoa(t.CPU)}
		w.ID, _ = strconv.Atoi(w.Thread[strings.LastIndexByte(w.Thread, '-')+1:]) // 0: it has no number
		e.Workers = append(e.Workers, w)
	}
	slices.SortFunc(e.Workers, func(a, b Worker) int { return a.ID - b.ID })
	return nil
}
