// SPDX-License-Identifier: Apache-2.0
package workerbench

import (
	"context"
	"errors"
	"fmt"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/workerresult"
	"github.com/corelane/corelane/internal/stat"
)

const (
	isolatedRing = 8192
	wireRing     = 4096 // no loss on the way back while the generator does not run
	manyBursts   = 100
)

func measureIsolated(ctx context.Context, s *workersRun) (err error) {
	at := s.quietPlace(workerresult.DeviceRing)
	at.wire = wireRing
	l, err := s.open(ctx, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for _, frames := range s.Bursts {
		s.result.Isolated = append(s.result.Isolated, workerresult.Bursts{Frames: frames},
			workerresult.Bursts{Frames: frames, Isolated: true})
	}
	for repetition := range s.Repetitions {
		for _, i := range stat.Turns(repetition, len(s.result.Isolated)) {
			b := &s.result.Isolated[i]
			s.Step(fmt.Sprintf("isolated receive: %v, bursts of %d", b.Isolated, b.Frames), stepTime)
			if err := l.isolatedBursts(ctx, b); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *twoWorkers) isolatedBursts(ctx context.Context, b *workerresult.Bursts) (err error) {
	if b.Isolated {
		err = l.isolated(ctx, isolatedRing)
	} else {
		err = l.complete(ctx)
	}
	if err := errors.Join(err, l.delay(ctx, workerresult.Late)); err != nil {
		return err
	}
	before, err := l.Router.Counters(ctx)
	if err != nil {
		return err
	}
	t, err := l.bursts(ctx, b.Frames, manyBursts, b.Isolated)
	if err != nil {
		return err
	}
	after, err := l.Router.Counters(ctx)
	b.Lost += t.Lost + t.NoRoom
	b.Sent += t.Sent + t.NoRoom
	if why := lossReasons(t, before, after); t.Lost+t.NoRoom > 0 && why != "" {
		b.Why = append(b.Why, why)
	}
	return errors.Join(err, l.delay(ctx, 0), l.setRole(ctx, apiv1.WorkerRole_WORKER_ROLE_FORWARDING))
}
