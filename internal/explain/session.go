// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/explain/host"
	"github.com/corelane/corelane/internal/explain/kernel"
	"github.com/corelane/corelane/internal/input"
)

// Session observes one daemon, or threads of any program, window after window.
type Session struct {
	o       Options
	root    host.Root
	client  *api.Client // nil: threads of any program, or a daemon that does not answer
	silent  int         // pid of a daemon that does not answer; 0: it does
	asked   bool        // whether it answers was asked by Open, for the first window
	watcher *kernel.Watcher
	noTrace string
	targets []kernel.Target
	names   map[int]string // of threads of any program, by tid
	event   uint64
	met     map[int]host.Thread // threads that had a worker's CPU in the window; some end before the window
}

// Open connects to the daemon. Close ends the session.
func Open(ctx context.Context, o Options) (*Session, error) {
	if o.Window <= 0 {
		o.Window = DefaultWindow
	}
	if o.Socket == "" {
		o.Socket = api.DefaultSocket
	}
	s := &Session{o: o, root: host.Root(o.Root)}
	if len(o.Threads) > 0 {
		return s, nil
	}
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	s.asked = true
	return s, nil
}

// Daemon returns the pid of the daemon, 0 if threads of any program are observed.
func (s *Session) Daemon() int {
	if s.client == nil {
		return s.silent
	}
	return int(s.client.Server.Pid)
}

// Close removes the session's programs from the kernel and closes the connection.
func (s *Session) Close() error {
	var errs []error
	if s.watcher != nil {
		errs = append(errs, s.watcher.Close())
		s.watcher = nil
	}
	if s.client != nil {
		errs = append(errs, s.client.Close())
	}
	return errors.Join(errs...)
}

// Next waits for the end of a window and explains it.
func (s *Session) Next(ctx context.Context) (*Report, error) {
	e, err := s.Evidence(ctx)
	if err != nil {
		return nil, err
	}
	return Explain(*e), nil
}

// Evidence collects the evidence of the next window.
func (s *Session) Evidence(ctx context.Context) (*Evidence, error) {
	pid, targets, err := s.subjects(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.watch(pid, targets); err != nil {
		return nil, err
	}
	tids := tidsOf(s.targets)
	if s.silent != 0 {
		tids = append(tids, s.silent) // its main thread
	}
	hostBefore := s.root.Take(pid, tids)
	if s.watcher != nil {
		if err := s.watcher.Begin(); err != nil {
			return nil, err
		}
	}
	e := &Evidence{Daemon: pid, Socket: s.o.Socket, NoTrace: s.noTrace}
	switch {
	case s.client != nil:
		err = s.observeDaemon(ctx, e)
	case s.silent != 0:
		err = s.observeSilent(ctx, e, time.Now(), false)
	default:
		err = s.observeThreads(ctx, e)
	}
	if err != nil {
		return nil, err
	}
	if s.watcher != nil {
		if e.Trace, err = s.watcher.End(); err != nil {
			return nil, err
		}
	}
	e.Host.Threads = s.met
	e.fillHost(s.root, hostBefore, s.root.Take(pid, tids))
	return e, nil
}

// subjects returns the threads to observe.
func (s *Session) subjects(ctx context.Context) (pid int, targets []kernel.Target, err error) {
	asked := s.asked
	if s.asked = false; s.client == nil && s.silent != 0 && !asked {
		if err := s.connect(ctx); err != nil { // it may answer again
			return 0, nil, err
		}
	}
	if s.client != nil {
		answered, err := answers(ctx, func(ctx context.Context) error {
			workers, err := api.Collect(ctx, s.client, apiv1.NewWorkersClient, apiv1.WorkersClient.List,
				&apiv1.WorkerListRequest{})
			targets = targetsOf(workers)
			return err
		})
		if answered {
			return s.Daemon(), targets, err
		}
		s.hush()
	}
	if s.silent != 0 {
		targets, err = s.workersOf(s.silent)
		return s.silent, targets, err
	}
	s.names = map[int]string{}
	for _, tid := range s.o.Threads {
		t, ok := s.root.Thread(tid)
		if !ok || t.Dead() {
			return 0, nil, input.Errorf("--thread", "the id of a thread that runs", "there is no thread %d", tid)
		}
		targets = append(targets, kernel.Target{TID: tid, CPU: t.CPU()})
		s.names[tid], pid = t.Name, t.PID
	}
	return pid, targets, nil
}

// observeDaemon reads the daemon's state before and after the window.
func (s *Session) observeDaemon(ctx context.Context, e *Evidence) error {
	begin := time.Now()
	before, err := s.snapshot(ctx)
	if err != nil {
		return err
	}
	if before == nil {
		return s.observeSilent(ctx, e, begin, false)
	}
	if err := s.wait(ctx); err != nil {
		return err
	}
	after, err := s.snapshot(ctx)
	if err != nil {
		return err
	}
	if after == nil {
		return s.observeSilent(ctx, e, begin, true)
	}
	e.fill(before, after)
	if e.noisyFlows() {
		if err := e.readFlowTable(ctx, s.client); err != nil {
			return err
		}
	}
	if e.dropped(noBuffer) > 0 {
		if err := e.readBuffers(ctx, s.client); err != nil {
			return err
		}
	}
	e.Events, s.event, err = events(ctx, s.client, s.event)
	return err
}

// snapshot reads the daemon's state; nil: it did not answer.
func (s *Session) snapshot(ctx context.Context) (shot *snapshot, err error) {
	answered, err := answers(ctx, func(ctx context.Context) (err error) {
		shot, err = readSnapshot(ctx, s.client)
		return err
	})
	if !answered {
		s.hush()
		return nil, nil
	}
	return shot, err
}

// observeThreads waits for the end of the window: without a daemon there are no counters to read.
func (s *Session) observeThreads(ctx context.Context, e *Evidence) error {
	e.Started = time.Now()
	if err := s.wait(ctx); err != nil {
		return err
	}
	e.Seconds = time.Since(e.Started).Seconds()
	for i, t := range s.targets {
		d, ok := s.root.Thread(t.TID)
		ended := !ok || d.Dead()
		if !ended && d.Allowed.Len() > 1 {
			e.Host.Unread = append(e.Host.Unread, fmt.Sprintf("what happened to %s (%d) on CPUs other than %d: "+
				"it may run on %s", d.Name, t.TID, t.CPU, d.Allowed))
		}
		e.Workers = append(e.Workers, Worker{Plain: true, Ended: ended, ID: i, TID: t.TID, CPU: t.CPU, LastCPU: t.CPU,
			Thread: s.names[t.TID]})
	}
	return nil
}

// watch begins to watch the kernel events of these threads, unless it does so already.
func (s *Session) watch(pid int, targets []kernel.Target) error {
	if s.watcher != nil && slices.Equal(targets, s.targets) {
		return nil
	}
	if s.watcher != nil {
		if err := s.watcher.Close(); err != nil {
			return err
		}
	}
	s.targets, s.watcher = targets, nil
	if s.o.NoTrace {
		s.noTrace = "--no-trace was given"
		return nil
	}
	targets = slices.Clone(targets)
	for i := range targets {
		targets[i].Why = whyAway(s.root, targets[i])
	}
	w, err := kernel.Watch(pid, targets)
	if err != nil {
		s.noTrace = err.Error()
		return nil
	}
	s.watcher = w
	return nil
}

// wait waits for the end of the window. Each second it notes the threads that had a worker's CPU, as they may end.
func (s *Session) wait(ctx context.Context) error {
	s.met = map[int]host.Thread{}
	end := time.After(s.o.Window)
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-end:
			return nil
		case <-look.C:
			if err := s.meet(); err != nil {
				return err
			}
		}
	}
}

func (s *Session) meet() error {
	if s.watcher == nil {
		return nil
	}
	tids, err := s.watcher.Threads()
	for _, tid := range tids {
		if _, known := s.met[tid]; known || len(s.met) == mostSuspects {
			continue
		}
		if t, ok := s.root.Thread(tid); ok {
			s.met[tid] = t
		}
	}
	return err
}

// whyAway returns why a thread may be away from its CPU, by its state; 0: it is ready to run.
func whyAway(root host.Root, target kernel.Target) kernel.Why {
	t, ok := root.Thread(target.TID)
	frozen, _ := root.Frozen(target.TID)
	switch {
	case !ok || t.State == "":
		return 0
	case !t.Allowed.Empty() && !t.Allowed.Has(target.CPU):
		return kernel.WhyMoved
	case frozen != "":
		return kernel.WhyFrozen
	case isStopped(t.State):
		return kernel.WhyStopped
	case t.State[0] == 'S' || t.State[0] == 'D':
		return kernel.WhySleep
	}
	return 0
}
