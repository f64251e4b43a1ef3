// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/process"
	"github.com/corelane/corelane/internal/procfs"
)

// intruders are the disturbances that this program can run as a child process. Each runs until it is ended, or its
// parent ends.
var intruders = map[string]func(ctx context.Context, args []string) error{
	"hog":   hog,
	"load":  load,
	"disk":  disk,
	"flood": flood,
	"sink":  sink,
	"pin":   pin,
}

// Intruder runs in the child process.
func Intruder(ctx context.Context, kind string, args []string) error {
	f := intruders[kind]
	if f == nil {
		return input.Errorf("intruder", strings.Join(slices.Sorted(maps.Keys(intruders)), ", "), "'%s' is unknown",
			kind)
	}
	if err := rename("cl-" + kind); err != nil {
		return err
	}
	go func() {
		<-ctx.Done()
		os.Exit(0) // some intruders do not check ctx
	}()
	return f(ctx, args)
}

// rename renames all threads of the process. New threads inherit the name.
func rename(name string) error {
	threads, err := procfs.Host.Threads(os.Getpid())
	for _, tid := range threads {
		path := filepath.Join("/", procfs.ThreadDir(os.Getpid(), tid), "comm")
		_ = os.WriteFile(path, []byte(name), 0) // a thread may have gone
	}
	return err
}

// intrusion is a running child process that disturbs.
type intrusion struct{ *process.Process }

// intrude starts a child process on some CPUs, and returns when it is at work.
func (o *Options) intrude(dir, netns string, cpus []int, kind string, args ...string) (*intrusion, error) {
	path, err := self()
	if err != nil {
		return nil, err
	}
	argv := append([]string{path, "lab", "intruder", kind}, args...)
	p, err := process.Start(process.Command{Name: "intruder " + kind, Argv: argv, Env: []string{"GOMAXPROCS=16"},
		Log: filepath.Join(dir, "intruder-"+kind+".log"), CPUs: cpus, Netns: netns})
	if err != nil {
		return nil, err
	}
	i := &intrusion{p}
	err = p.Await(context.Background(), startTimeout, func(context.Context) error {
		if name := procfs.Host.Name(p.Pid); name != "cl-"+kind {
			return fmt.Errorf("it is still '%s'", name)
		}
		return nil
	})
	if err != nil {
		_ = i.Stop() // err has its end already
		return nil, err
	}
	return i, nil
}

const startTimeout = 10 * time.Second

// hog uses a whole CPU; `hog idle` only the time that no other thread wants, and `hog BUSY REST` rests in turn.
func hog(_ context.Context, args []string) error {
	runtime.LockOSThread()
	if len(args) == 1 && args[0] == "idle" {
		if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE},
			0); err != nil {
			return err
		}
	}
	busy, pause := time.Second, time.Duration(0)
	if len(args) == 2 {
		var err, err2 error
		busy, err = time.ParseDuration(args[0])
		pause, err2 = time.ParseDuration(args[1])
		if err := errors.Join(err, err2); err != nil {
			return err
		}
	}
	if err := renameThread("cl-hog"); err != nil {
		return err
	}
	for {
		spin(busy)
		if pause > 0 {
			rest(pause)
		}
	}
}

func renameThread(name string) error {
	return os.WriteFile(fmt.Sprintf("/proc/self/task/%d/comm", unix.Gettid()), []byte(name), 0)
}

// spin keeps this thread busy.
func spin(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
}

// rest sleeps in a system call of this thread, so that no other thread of the Go runtime has to wake it.
func rest(d time.Duration) {
	t := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&t, nil) // a signal may end it early
}
