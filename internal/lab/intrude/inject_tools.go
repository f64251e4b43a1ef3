// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/process"
	"github.com/corelane/corelane/internal/procfs"
	"github.com/corelane/corelane/internal/wait"
)

// --- Disturbances by the tools of a host. ---

// errMissing says which program a disturbance needs; its case is skipped.
type errMissing struct{ program string }

func (e errMissing) Error() string { return "needs the program " + e.program }

// runs makes a disturbance of a shell script, which starts on the worker's CPU, or on the others. The script finds the
// process and the worker's thread in $PID and $TID, and the worker's CPU in $CPU.
func runs(onWorker bool, script string, programs ...string) injector {
	return func(ctx context.Context, b *loadedVictim) (*injection, error) {
		for _, name := range programs {
			if _, err := exec.LookPath(name); err != nil {
				return nil, errMissing{name}
			}
		}
		cpus := []int{b.control()}
		if onWorker {
			cpus = []int{b.WorkerCPU}
		}
		w, err := b.worker(ctx, 0)
		if err != nil {
			return nil, err
		}
		p, err := process.Start(process.Command{Name: script, Argv: []string{"sh", "-c", script}, CPUs: cpus,
			Log: filepath.Join(b.Dir, "tool.log"), Env: []string{fmt.Sprintf("PID=%d", b.PID()),
				fmt.Sprintf("TID=%d", w.State.Tid), fmt.Sprintf("CPU=%d", b.WorkerCPU), "DIR=" + b.Dir}})
		if err != nil {
			return nil, err
		}
		return &injection{pid: p.Pid, undo: func() error {
			if p.Ended() != nil { // a remedy may end it
				return nil
			}
			return p.Stop()
		}}, nil
	}
}

// samples runs a profiler, and waits until it has opened its counters.
func samples(script, program string) injector {
	return func(ctx context.Context, b *loadedVictim) (*injection, error) {
		i, err := runs(false, script, program)(ctx, b)
		if err != nil {
			return nil, err
		}
		within, cancel := context.WithTimeout(ctx, startTimeout)
		defer cancel()
		err = wait.Until(within, 20*time.Millisecond, func() (bool, error) {
			files, err := procfs.Host.Files(i.pid)
			for _, to := range files {
				if strings.Contains(to, "perf_event") {
					return true, nil
				}
			}
			return false, err
		})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s opens no counters: %w", program, err), i.undo())
		}
		return i, nil
	}
}

// then adds what has to be restored after a disturbance.
func then(inject func(context.Context, *loadedVictim) (*injection, error),
	after func(b *loadedVictim) error) injector {
	return func(ctx context.Context, b *loadedVictim) (*injection, error) {
		i, err := inject(ctx, b)
		if err != nil {
			return nil, err
		}
		undo := i.undo
		i.undo = func() error { return errors.Join(undo(), after(b)) }
		return i, nil
	}
}

// resume lets a stopped process go on.
func resume(b *loadedVictim) error { return unix.Kill(b.PID(), unix.SIGCONT) }

// injectSignal stops the process until a remedy or the undo lets it go on.
func injectSignal(_ context.Context, b *loadedVictim) (*injection, error) {
	return &injection{undo: func() error { return resume(b) }}, unix.Kill(b.PID(), unix.SIGSTOP)
}

// injectFreezer freezes the process's control group: for 50 ms once a second, or until it is thawed.
func injectFreezer(always bool) injector {
	return func(ctx context.Context, b *loadedVictim) (*injection, error) {
		g, err := b.newGroup("/sys/fs/cgroup/unified", "cgroup.procs") // beside version 1
		if errors.Is(err, fs.ErrNotExist) {
			g, err = b.newGroup("/sys/fs/cgroup", "cgroup.procs")
		}
		if err != nil {
			return nil, err
		}
		file := filepath.Join(g.dir, "cgroup.freeze")
		thaw := func() error { return errors.Join(write(file, "0"), g.leave()) }
		if always {
			return &injection{undo: thaw}, write(file, "1")
		}
		i, err := runs(false, fmt.Sprintf("while :; do echo 1 >%[1]s; sleep 0.05; echo 0 >%[1]s; sleep 0.95; done",
			file))(ctx, b)
		if err != nil {
			return nil, errors.Join(err, thaw())
		}
		ended := i.undo
		i.undo = func() error { return errors.Join(ended(), thaw()) }
		return i, nil
	}
}

// group is a control group that has only the daemon.
type group struct {
	dir   string
	leave func() error // moves the daemon back and removes the group
}

func (b *loadedVictim) newGroup(top, member string) (*group, error) {
	if _, err := os.Stat(filepath.Join(top, "cgroup.procs")); err != nil {
		return nil, err
	}
	home, err := groupOf(b.PID(), top)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(top, fmt.Sprintf("corelane-intrude-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	enter := func(to string) error { return write(filepath.Join(to, member), strconv.Itoa(b.PID())) }
	g := &group{dir, func() error { return errors.Join(enter(home), removeGroup(dir)) }}
	if err := enter(dir); err != nil {
		return nil, errors.Join(err, g.leave())
	}
	return g, nil
}

// injectCpuset moves the process into a control group whose CPUs do not include the worker's.
func injectCpuset(_ context.Context, b *loadedVictim) (*injection, error) {
	const top = "/sys/fs/cgroup/cpuset"
	home, err := groupOf(b.PID(), top)
	if err != nil {
		return nil, errMissing{"cpuset of cgroup v1"}
	}
	dir := filepath.Join(top, fmt.Sprintf("corelane-intrude-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	enter := func(to string) error { return write(filepath.Join(to, "cgroup.procs"), strconv.Itoa(b.PID())) }
	undo := func() error { return errors.Join(enter(home), removeGroup(dir)) }
	mems, err := os.ReadFile(filepath.Join(home, "cpuset.effective_mems"))
	if err := errors.Join(err, write(filepath.Join(dir, "cpuset.mems"), string(mems)),
		write(filepath.Join(dir, "cpuset.cpus"), strconv.Itoa(b.control())), enter(dir)); err != nil {
		return nil, errors.Join(err, undo())
	}
	return &injection{culprit: Culprit{Name: filepath.Base(dir)}, undo: undo}, nil
}

// injectShares gives the process next to no share of its CPU, beside a thread that never sleeps.
func injectShares(ctx context.Context, b *loadedVictim) (*injection, error) {
	g, err := b.newGroup("/sys/fs/cgroup/cpu", "cgroup.procs")
	file, value := "cpu.shares", "2"
	if errors.Is(err, fs.ErrNotExist) {
		g, err = b.newGroup("/sys/fs/cgroup", "cgroup.procs")
		file, value = "cpu.weight", "1"
	}
	if err != nil {
		return nil, err
	}
	if err := write(filepath.Join(g.dir, file), value); err != nil {
		return nil, errors.Join(err, g.leave())
	}
	i, err := injectHog(ctx, b)
	if err != nil {
		return nil, errors.Join(err, g.leave())
	}
	hogged := i.undo
	i.undo = func() error { return errors.Join(hogged(), g.leave()) }
	return i, nil
}

// injectUprobes counts calls of functions of the packet path: each call is a breakpoint.
func injectUprobes(ctx context.Context, b *loadedVictim) (*injection, error) {
	const script = `exe=$(readlink /proc/$PID/exe)
perf probe -q -x $exe --add cl_walk=graph_walk --add cl_rx=port_rx || exit 1
trap 'kill $!' TERM
perf stat -a -e 'probe_corelaned:cl_*' sleep 1000 &
wait
perf probe -q -d 'probe_corelaned:cl_*'`
	return runs(false, script, "perf")(ctx, b)
}
