// SPDX-License-Identifier: Apache-2.0
package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"
)

// Begin begins a window: earlier sums and records are discarded.
func (w *Watcher) Begin() error {
	if _, err := w.drain(); err != nil {
		return err
	}
	if _, err := w.take(); err != nil {
		return err
	}
	w.begin = monotonic()
	return nil
}

// End ends the window that began last.
func (w *Watcher) End() (*Window, error) {
	now := monotonic()
	sums, err := w.take()
	if err != nil {
		return nil, err
	}
	out := &Window{Sums: sums, Missing: w.missing}
	if out.Gaps, err = w.drain(); err != nil {
		return nil, err
	}
	if err := w.open(out, now); err != nil {
		return nil, err
	}
	for i := range out.Sums { // an interval may have begun before the window
		out.Sums[i].NS, out.Sums[i].Longest = min(out.Sums[i].NS, now-w.begin), min(out.Sums[i].Longest, now-w.begin)
	}
	var lost uint64
	if err := w.coll.Variables[workersVarLostRecords].Get(&lost); err != nil {
		return nil, err
	}
	out.Lost = lost
	return out, w.coll.Variables[workersVarLostRecords].Set(uint64(0))
}

func monotonic() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // cannot fail: the clock exists and t is valid
	return t.Nano()
}

// Threads returns the threads that had a worker's CPU for more than a millisecond in the window so far.
func (w *Watcher) Threads() (tids []int, err error) {
	var key workersKey
	var value workersSum
	it := w.coll.Maps[workersMapSums].Iterate()
	for it.Next(&key, &value) {
		if Kind(key.Kind) == KindThread && key.Id != 0 && value.Ns > 1_000_000 {
			tids = append(tids, int(key.Id))
		}
	}
	return tids, it.Err()
}

// take reads the sums from the kernel and deletes them there.
func (w *Watcher) take() ([]Sum, error) {
	m := w.coll.Maps[workersMapSums]
	var keys []workersKey
	var key workersKey
	var value workersSum
	it := m.Iterate()
	for it.Next(&key, &value) {
		keys = append(keys, key)
	}
	if err := it.Err(); err != nil {
		return nil, fmt.Errorf("eBPF sums: %w", err)
	}
	var out []Sum
	for _, key := range keys {
		err := m.LookupAndDelete(&key, &value)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("eBPF sums: %w", err)
		}
		out = append(out, Sum{CPU: int(key.Cpu), Worker: int(key.Worker), Kind: Kind(key.Kind), Why: Why(key.Why),
			ID: int(key.Id), NS: int64(value.Ns), Count: int64(value.Count), Longest: int64(value.Longest),
			PID: int(value.Pid), Name: text(value.Name[:]), Parent: int(value.Parent),
			ParentName: text(value.ParentName[:])})
	}
	return out, nil
}

// open adds the gaps that have not ended yet, and the threads that run in them.
func (w *Watcher) open(out *Window, now int64) error {
	for _, t := range w.targets {
		var worker workersWorker
		var cpu workersCpu
		if err := w.coll.Maps[workersMapWorkers].Lookup(uint32(t.TID), &worker); err != nil {
			return fmt.Errorf("eBPF workers: %w", err)
		}
		if err := w.coll.Maps[workersMapCpus].Lookup(uint32(t.CPU), &cpu); err != nil {
			return fmt.Errorf("eBPF CPUs: %w", err)
		}
		if worker.OutSince == 0 || worker.Assumed != 0 {
			continue
		}
		from := max(int64(worker.OutSince), w.begin)
		sum := Sum{CPU: t.CPU, Worker: t.TID, Kind: KindGap, Why: Why(worker.Why), Count: 1, NS: max(0, now-from)}
		sum.Longest = sum.NS
		gap := Gap{From: from - w.begin, NS: sum.NS, CPU: t.CPU, Worker: t.TID, Kind: KindThread, Why: sum.Why,
			ID: int(worker.MostTid), PID: int(worker.MostPid), Name: text(worker.MostName[:])}
		out.Sums = append(out.Sums, sum)
		if cpu.SliceSince != 0 && int(cpu.Running) != t.TID {
			sum.Kind, sum.ID = KindThread, int(cpu.Running)
			sum.NS = max(0, now-max(int64(cpu.SliceSince), w.begin))
			sum.Longest = sum.NS
			out.Sums = append(out.Sums, sum)
			if uint64(sum.NS) > worker.Most {
				gap.ID, gap.PID, gap.Name = sum.ID, 0, ""
			}
		}
		out.Gaps = append(out.Gaps, gap)
	}
	return nil
}

// drain reads the records of gaps.
func (w *Watcher) drain() ([]Gap, error) {
	var out []Gap
	w.records.SetDeadline(time.Now())
	for {
		record, err := w.records.Read()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("eBPF records: %w", err)
		}
		gap, err := w.gap(record)
		if err != nil {
			return nil, err
		}
		if gap.NS > 0 {
			out = append(out, gap)
		}
	}
}

func (w *Watcher) gap(record ringbuf.Record) (Gap, error) {
	var g workersGap
	if err := binary.Read(bytes.NewReader(record.RawSample), binary.LittleEndian, &g); err != nil {
		return Gap{}, fmt.Errorf("eBPF record: %w", err)
	}
	from := max(int64(g.Start), w.begin)
	return Gap{From: from - w.begin, NS: int64(g.End) - from, CPU: int(g.Cpu), Worker: int(g.Worker),
		Kind: Kind(g.Kind), Why: Why(g.Why), ID: int(g.Id), PID: int(g.Pid), Name: text(g.Name[:])}, nil
}

func text(name []int8) string {
	var b []byte
	for _, c := range name {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	return string(b)
}
