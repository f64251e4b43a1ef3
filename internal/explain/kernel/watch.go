// SPDX-License-Identifier: Apache-2.0
package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// Target is a worker's thread and its CPU.
type Target struct {
	TID, CPU int
	Why      Why // the reason if the thread is away from its CPU when the watch begins; 0: it is ready to run
}

// Watcher keeps eBPF programs in the kernel until it is closed.
type Watcher struct {
	coll    *ebpf.Collection
	links   []link.Link
	records *ringbuf.Reader
	targets []Target
	missing []string
	begin   int64 // monotonic ns
}

// FaultTime is in Window.Missing if page faults are counted, but not timed.
const FaultTime = "handle_mm_fault"

const (
	recordNS      = 10_000 // shorter gaps are only in the sums
	recordsSecond = 1000   // records per second of one CPU
	maxCPUs       = 4096
	maxWatched    = 64
)

// Watch begins to watch what happens to threads of the process pid. The error says what the kernel refused.
func Watch(pid int, targets []Target) (*Watcher, error) {
	if err := rlimit.RemoveMemlock(); err != nil { // before Linux 5.11
		return nil, fmt.Errorf("limit of locked memory for eBPF: %w", err)
	}
	spec, err := loadWorkers()
	if err != nil {
		return nil, err
	}
	w := &Watcher{targets: targets}
	if w.missing, err = prune(spec); err != nil {
		return nil, err
	}
	if err := configure(spec, pid, targets); err != nil {
		return nil, err
	}
	if w.coll, err = load(spec, &w.missing); err != nil {
		return nil, fmt.Errorf("eBPF: %w", err)
	}
	if err := w.attach(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// prune removes the programs whose events this kernel does not have, and returns the names of those events.
func prune(spec *ebpf.CollectionSpec) (missing []string, err error) {
	types, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, fmt.Errorf("the kernel's type information (/sys/kernel/btf/vmlinux): %w", err)
	}
	for name, p := range spec.Programs {
		var def *btf.Typedef
		var fn *btf.Func
		if event, ok := strings.CutPrefix(p.SectionName, "tp_btf/"); ok {
			err = types.TypeByName("btf_trace_"+event, &def)
		} else {
			err = types.TypeByName(p.AttachTo, &fn)
		}
		if err == nil {
			continue
		}
		if name == workersProgOnSwitch {
			return nil, fmt.Errorf("the kernel has no sched_switch to watch: %w", err)
		}
		if name != workersProgOnFreezerV1 { // a kernel without version 1 of control groups does not need it
			missing = append(missing, p.AttachTo)
		}
		delete(spec.Programs, name)
	}
	slices.Sort(missing)
	return missing, nil
}

// load loads the programs. If that fails, it tries without those that hook a function, which some kernels refuse.
func load(spec *ebpf.CollectionSpec, missing *[]string) (*ebpf.Collection, error) {
	coll, err := ebpf.NewCollection(spec)
	if err == nil {
		return coll, nil
	}
	for name, p := range spec.Programs {
		if !strings.HasPrefix(p.SectionName, "tp_btf/") {
			delete(spec.Programs, name)
			*missing = append(*missing, p.AttachTo)
		}
	}
	return ebpf.NewCollection(spec)
}

func configure(spec *ebpf.CollectionSpec, pid int, targets []Target) error {
	if len(targets) > maxWatched {
		return fmt.Errorf("%d workers cannot be watched at once; valid: up to %d", len(targets), maxWatched)
	}
	var watched [maxCPUs]uint8
	var cpus [maxWatched]uint32
	n := uint32(0)
	for _, t := range targets {
		if t.CPU >= maxCPUs {
			return fmt.Errorf("CPU %d cannot be watched; valid: CPUs below %d", t.CPU, maxCPUs)
		}
		if watched[t.CPU] == 0 {
			cpus[n] = uint32(t.CPU)
			n++
		}
		watched[t.CPU] = 1
	}
	return errors.Join(spec.Variables[workersVarWatched].Set(watched), spec.Variables[workersVarWatchedCpus].Set(cpus),
		spec.Variables[workersVarN_watched].Set(n), spec.Variables[workersVarDaemonPid].Set(uint32(pid)),
		spec.Variables[workersVarRecordNs].Set(uint64(recordNS)),
		spec.Variables[workersVarRecordsSecond].Set(uint32(recordsSecond)),
		spec.Variables[workersVarNrYield].Set(uint32(unix.SYS_SCHED_YIELD)),
		spec.Variables[workersVarNrPtrace].Set(uint32(unix.SYS_PTRACE)),
		spec.Variables[workersVarNrSetaffinity].Set(uint32(unix.SYS_SCHED_SETAFFINITY)))
}

// attach attaches the programs. The one for context switches comes last, so that no gap is counted while others attach.
func (w *Watcher) attach() error {
	now := uint64(monotonic())
	for _, t := range w.targets {
		worker := workersWorker{Home: uint32(t.CPU), OutSince: now, Why: uint32(cmp.Or(t.Why, WhyTaken)), Assumed: 1}
		cpu := workersCpu{Out: uint32(t.TID), SliceSince: now}
		if t.Why == WhyMoved { // it cannot be on its CPU
			worker.Assumed, cpu.Out = 0, 0
		}
		err := errors.Join(w.coll.Maps[workersMapWorkers].Put(uint32(t.TID), worker),
			w.coll.Maps[workersMapCpus].Put(uint32(t.CPU), cpu))
		if err != nil {
			return fmt.Errorf("eBPF map: %w", err)
		}
	}
	for name, p := range w.coll.Programs {
		if name != workersProgOnSwitch {
			if err := w.attachOne(p); err != nil {
				w.missing = append(w.missing, name+": "+err.Error())
			}
		}
	}
	if err := w.attachOne(w.coll.Programs[workersProgOnSwitch]); err != nil {
		return fmt.Errorf("sched_switch: %w", err)
	}
	var err error
	w.records, err = ringbuf.NewReader(w.coll.Maps[workersMapGaps])
	return err
}

func (w *Watcher) attachOne(p *ebpf.Program) error {
	l, err := link.AttachTracing(link.TracingOptions{Program: p})
	if err == nil {
		w.links = append(w.links, l)
	}
	return err
}

// Close removes the programs from the kernel.
func (w *Watcher) Close() error {
	var errs []error
	for _, l := range w.links {
		errs = append(errs, l.Close())
	}
	if w.records != nil {
		errs = append(errs, w.records.Close())
	}
	w.coll.Close()
	return errors.Join(errs...)
}
