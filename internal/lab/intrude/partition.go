// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cores"
	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

// partition isolates the worker's CPU, as `corelane plan make` and `corelane cores apply` do. back restores the
// machine.
func (l *victim) partition(ctx context.Context) (back func() error, err error) {
	m, err := topology.Read(l.Root)
	if err != nil {
		return nil, err
	}
	p, err := plan.Make(m, plan.Request{Forwarding: 1, ForwardingCPUs: cpuset.Of(l.WorkerCPU),
		HousekeepingCPUs: cpuset.Of(l.others()...)})
	if err != nil {
		return nil, err
	}
	b := &loadedVictim{victim: l}
	site := &cores.Site{Root: l.Root, Dir: filepath.Join(l.Dir, "cores"),
		MoveWorker: func(ctx context.Context, worker, cpu int) error {
			return b.setWorker(ctx, &apiv1.Worker{Id: uint32(worker), Cpu: uint32(cpu)}, "cpu")
		}}
	back = func() error { return site.Rollback(context.Background()) }
	if err := site.Carry(ctx, m, p, cores.Options{Self: os.Getpid()}, nil); err != nil {
		return nil, errors.Join(err, back())
	}
	return back, nil
}
