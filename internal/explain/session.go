// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"context"
	"errors"
	"time"

	"github.com/corelane/corelane/internal/api"
	"github.com/corelane/corelane/internal/explain/host"
	"github.com/corelane/corelane/internal/explain/kernel"
)

// Session looks at one daemon, window after window.
type Session struct {
	o       Options
	client  *api.Client
	watcher *kernel.Watcher
	noTrace string
	targets []kernel.Target
	event   uint64
}

// Open connects to the daemon. Close ends the session.
func Open(ctx context.Context, o Options) (*Session, error) {
	if o.Window <= 0 {
		o.Window = DefaultWindow
	}
	if o.Socket == "" {
		o.Socket = api.DefaultSocket
	}
	c, err := api.Dial(ctx, o.Socket, "corelane explain")
	if err != nil {
		return nil, err
	}
	s := &Session{o: o, client: c}
	if _, s.event, err = events(ctx, c, 0); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close takes everything out of the kernel that was put there.
func (s *Session) Close() error {
	var err error
	if s.watcher != nil {
		err = s.watcher.Close()
		s.watcher = nil
	}
	return errors.Join(err, s.client.Close())
}

// Next waits for the end of a window and explains it.
func (s *Session) Next(ctx context.Context) (*Report, error) {
	e, err := s.Evidence(ctx)
	if err != nil {
		return nil, err
	}
	return Explain(*e), nil
}

// Evidence of the next window.
func (s *Session) Evidence(ctx context.Context) (*Evidence, error) {
	pid := int(s.client.Server.Pid)
	workers, err := api.Collect(ctx, s.client, apiWorkers, apiWorkerList, workerListRequest)
	if err != nil {
		return nil, err
	}
	if err := s.watch(pid, targetsOf(workers)); err != nil {
		return nil, err
	}
	root := host.Root(s.o.Root)
	tids := tidsOf(s.targets)
	hostBefore := root.Take(pid, tids)
	if s.watcher != nil {
		if err := s.watcher.Begin(); err != nil {
			return nil, err
		}
	}
	before, err := ask(ctx, s.client)
	if err != nil {
		return nil, err
	}
	if err := wait(ctx, s.o.Window); err != nil {
		return nil, err
	}
	after, err := ask(ctx, s.client)
	if err != nil {
		return nil, err
	}
	e := &Evidence{Daemon: pid, Socket: s.o.Socket, NoTrace: s.noTrace}
	e.fill(before, after)
	if s.watcher != nil {
		if e.Trace, err = s.watcher.End(); err != nil {
			return nil, err
		}
	}
	e.fillHost(root, hostBefore, root.Take(pid, tids))
	e.Events, s.event, err = events(ctx, s.client, s.event)
	return e, err
}

// watch the workers as they are now.
func (s *Session) watch(pid int, targets []kernel.Target) error {
	same := len(targets) == len(s.targets)
	for i := range targets {
		same = same && targets[i] == s.targets[i]
	}
	if s.watcher != nil && same {
		return nil
	}
	if s.watcher != nil {
		if err := s.watcher.Close(); err != nil {
			return err
		}
	}
	s.targets, s.watcher = targets, nil
	if s.o.NoTrace {
		s.noTrace = "not asked for"
		return nil
	}
	w, err := kernel.Watch(pid, targets)
	if err != nil {
		s.noTrace = err.Error()
		return nil
	}
	s.watcher = w
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// Daemon is the process that is looked at.
func (s *Session) Daemon() int { return int(s.client.Server.Pid) }
