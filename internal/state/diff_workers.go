// SPDX-License-Identifier: Apache-2.0
package state

import (
	"slices"

	"google.golang.org/protobuf/proto"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

const maxWorkers = 64 // ids of workers are 0 to 63

// workers changes, adds and deletes workers so that each step is possible: a forwarding worker is always there, the
// target of another worker exists, and two workers have one CPU only while neither keeps it to itself. What a worker
// cannot be yet it becomes in finishWorkers.
func (d *differ) workers() {
	if d.wantState.Workers == nil {
		return
	}
	d.workersNow = map[uint32]*apiv1.Worker{}
	leaving := map[uint32]bool{} // CPUs of workers that are deleted
	for _, w := range d.haveState.Workers {
		d.workersNow[w.Id] = w
		if d.want["workers"][keyOf(w)] == nil {
			leaving[w.Cpu] = true
		}
	}
	onFreeCPU := func(w *apiv1.Worker) bool { return !leaving[w.Cpu] && len(d.workersNow) < maxWorkers }
	always := func(*apiv1.Worker) bool { return true }

	d.putWorkers(true, onFreeCPU)
	if len(leaving) > 0 {
		d.replaceLast()
		for _, w := range d.haveState.Workers {
			d.delWorker(w.Id)
		}
	}
	d.putWorkers(true, always)
	d.putWorkers(false, always)
}

// putWorkers changes and adds the wanted workers that forward, or the others.
func (d *differ) putWorkers(forwarding bool, now func(*apiv1.Worker) bool) {
	for _, w := range d.wantState.Workers {
		if forwards(w) == forwarding && (d.workersNow[w.Id] != nil || now(w)) {
			d.putWorker(w)
		}
	}
}

// replaceLast sees to it that a wanted worker can take the queues of all that are deleted.
func (d *differ) replaceLast() {
	wanted := slices.DeleteFunc(slices.Clone(d.wantState.Workers), func(w *apiv1.Worker) bool { return !forwards(w) })
	exists := func(w *apiv1.Worker) bool { return d.workersNow[w.Id] != nil }
	polls := func(w *apiv1.Worker) bool {
		return exists(w) && d.workersNow[w.Id].Idle != apiv1.IdlePolicy_IDLE_POLICY_INTERRUPT
	}
	if len(wanted) == 0 || slices.ContainsFunc(wanted, polls) {
		return
	}
	if i := slices.IndexFunc(wanted, exists); i >= 0 {
		d.rest(d.workersNow[wanted[i].Id]) // queues without interrupts may have to move to it
		return
	}
	for _, w := range d.haveState.Workers {
		if len(d.workersNow) == maxWorkers && (!forwards(w) || d.forwarding() > 1) {
			d.delWorker(w.Id)
		}
	}
	d.putWorker(wanted[0])
}

func (d *differ) forwarding() (n int) {
	for _, w := range d.workersNow {
		if forwards(w) {
			n++
		}
	}
	return n
}

// delWorker deletes a worker that is not wanted and still there.
func (d *differ) delWorker(id uint32) {
	if w := d.workersNow[id]; w != nil && d.want["workers"][keyOf(w)] == nil {
		d.op(Del, "workers", nil, w, "")
		delete(d.workersNow, id)
	}
}

// putWorker changes a worker, or adds it. If its CPU is another worker's, both give it away when they are idle.
func (d *differ) putWorker(want *apiv1.Worker) {
	have := d.workersNow[want.Id]
	w := proto.CloneOf(want)
	if waits(w) && (have == nil && d.someLeave() || have != nil && !waits(have)) {
		w.Idle = apiv1.IdlePolicy_IDLE_POLICY_SLEEP
		if have != nil {
			w.Idle = have.Idle
		}
	}
	if have == nil || have.Cpu != w.Cpu {
		for _, other := range d.sortedWorkers() {
			if other.Cpu != w.Cpu || other.Id == w.Id {
				continue
			}
			if keepsCPU(other) {
				d.rest(other)
			}
			if have != nil && keepsCPU(have) {
				have = d.rest(have)
			}
			if keepsCPU(w) {
				w.Idle = apiv1.IdlePolicy_IDLE_POLICY_SLEEP
			}
		}
	}
	d.stepWorker(w)
}

// rest makes a worker poll and give its CPU away in between.
func (d *differ) rest(have *apiv1.Worker) *apiv1.Worker {
	w := proto.CloneOf(have)
	w.Idle = apiv1.IdlePolicy_IDLE_POLICY_SLEEP
	d.stepWorker(w)
	return w
}

func (d *differ) stepWorker(w *apiv1.Worker) {
	have := d.workersNow[w.Id]
	if have == nil {
		d.op(Add, "workers", w, nil, "")
	} else if len(changed(w, have)) > 0 {
		d.op(Set, "workers", w, have, "")
	}
	d.workersNow[w.Id] = w
}

// finishWorkers makes workers what they could not be before the ports were complete and others were gone. A worker that
// waits for interrupts cannot poll a queue that has none.
func (d *differ) finishWorkers() {
	for _, w := range d.wantState.Workers {
		d.stepWorker(w)
	}
}

// someLeave says whether workers are deleted, so that their queues move.
func (d *differ) someLeave() bool {
	return slices.ContainsFunc(d.haveState.Workers, func(w *apiv1.Worker) bool {
		return d.want["workers"][keyOf(w)] == nil
	})
}

func (d *differ) sortedWorkers() []*apiv1.Worker {
	var list []*apiv1.Worker
	for id := range uint32(maxWorkers) {
		if w := d.workersNow[id]; w != nil {
			list = append(list, w)
		}
	}
	return list
}

func forwards(w *apiv1.Worker) bool { return w.Role == apiv1.WorkerRole_WORKER_ROLE_FORWARDING }

func waits(w *apiv1.Worker) bool { return w.Idle == apiv1.IdlePolicy_IDLE_POLICY_INTERRUPT }

// keepsCPU says whether a worker never gives its CPU to another thread.
func keepsCPU(w *apiv1.Worker) bool {
	return w.Idle == apiv1.IdlePolicy_IDLE_POLICY_SPIN || w.Idle == apiv1.IdlePolicy_IDLE_POLICY_PAUSE
}
