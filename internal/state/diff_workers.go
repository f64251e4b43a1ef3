// SPDX-License-Identifier: Apache-2.0
package state

import (
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

func (d *differ) workers() {
	if d.wantState.Workers == nil {
		return
	}
	leaving := map[uint32]bool{} // CPUs
	for _, w := range d.haveState.Workers {
		if d.want["workers"][keyOf(w)] == nil {
			leaving[w.Cpu] = true
		}
	}
	for _, w := range d.wantState.Workers {
		have, _ := d.have["workers"][keyOf(w)].(*apiv1.Worker)
		if have == nil {
			continue
		}
		if w = d.notYetWaiting(w, have.Idle); len(changed(w, have)) > 0 {
			d.op(Set, "workers", w, have, "")
		}
	}
	goes := len(leaving) > 0
	d.addWorkers(goes, func(w *apiv1.Worker) bool { return !leaving[w.Cpu] })
	for _, w := range d.haveState.Workers {
		if d.want["workers"][keyOf(w)] == nil {
			d.op(Del, "workers", nil, w, "")
		}
	}
	d.addWorkers(goes, func(w *apiv1.Worker) bool { return leaving[w.Cpu] })
}

// addWorkers: those on a free CPU come before others go, so that queues always have a worker. goes: some do.
func (d *differ) addWorkers(goes bool, now func(*apiv1.Worker) bool) {
	for _, w := range d.wantState.Workers {
		if d.have["workers"][keyOf(w)] == nil && now(w) {
			if goes {
				w = d.notYetWaiting(w, apiv1.IdlePolicy_IDLE_POLICY_SLEEP)
			}
			d.op(Add, "workers", w, nil, "")
		}
	}
}

// notYetWaiting is a worker as it is until the ports are there: one that waits for interrupts polls no queue that gives none, and such queues
// may still have to go to others, or to it.
func (d *differ) notYetWaiting(w *apiv1.Worker, idle apiv1.IdlePolicy) *apiv1.Worker {
	if w.Idle != apiv1.IdlePolicy_IDLE_POLICY_INTERRUPT || idle == w.Idle {
		return w
	}
	now := proto.CloneOf(w)
	now.Idle = idle
	d.waiting = append(d.waiting, now)
	return now
}

func (d *differ) waitForInterrupts() {
	for _, w := range d.waiting {
		d.op(Set, "workers", d.want["workers"][keyOf(w)], w, "")
	}
}
