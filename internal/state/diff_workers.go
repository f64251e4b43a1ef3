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
	leaving := map[uint32]bool{} // CPUs of workers that are deleted
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
	some := len(leaving) > 0
	d.addWorkers(some, func(w *apiv1.Worker) bool { return !leaving[w.Cpu] })
	for _, w := range d.haveState.Workers {
		if d.want["workers"][keyOf(w)] == nil {
			d.op(Del, "workers", nil, w, "")
		}
	}
	d.addWorkers(some, func(w *apiv1.Worker) bool { return leaving[w.Cpu] })
}

// addWorkers adds workers for which now is true. Those on a free CPU are added before others are deleted, so that
// queues always have a worker. leaving says whether some are deleted.
func (d *differ) addWorkers(leaving bool, now func(*apiv1.Worker) bool) {
	for _, w := range d.wantState.Workers {
		if d.have["workers"][keyOf(w)] == nil && now(w) {
			if leaving {
				w = d.notYetWaiting(w, apiv1.IdlePolicy_IDLE_POLICY_SLEEP)
			}
			d.op(Add, "workers", w, nil, "")
		}
	}
}

// notYetWaiting returns a worker as it is until the ports are complete. A worker that waits for interrupts cannot
// poll a queue that has none, and such queues may still have to move.
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
