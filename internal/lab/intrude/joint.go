// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/corelane/corelane/internal/explain"
	"github.com/corelane/corelane/internal/wait"
)

// part is one of several disturbances at once, and the cause that explain has to find among others.
type part struct {
	kind   explain.Kind
	inject injector
	late   time.Duration // begins so much later than the others
}

func kindsOf(parts []part) (list []explain.Kind) {
	for _, p := range parts {
		list = append(list, p.kind)
	}
	return list
}

// together starts all of these.
func together(parts []part) injector {
	return func(ctx context.Context, b *loadedVictim) (*injection, error) {
		var undo []func() error
		all := &injection{undo: func() (err error) {
			for _, f := range slices.Backward(undo) {
				err = errors.Join(err, f())
			}
			return err
		}}
		for _, p := range parts {
			inject := p.inject
			if p.late > 0 {
				inject = later(p.late, p.inject)
			}
			i, err := inject(ctx, b)
			if err != nil {
				return nil, errors.Join(err, all.undo())
			}
			undo = append(undo, i.undo)
		}
		return all, nil
	}
}

// later starts a disturbance after a time.
func later(after time.Duration, inject injector) injector {
	return func(ctx context.Context, b *loadedVictim) (*injection, error) {
		ctx, cancel := context.WithCancel(ctx)
		started := make(chan struct{})
		var i *injection
		var err error
		go func() {
			defer close(started)
			if wait.For(ctx, after) == nil {
				i, err = inject(ctx, b)
			}
		}()
		return &injection{undo: func() error {
			cancel()
			<-started
			if i != nil {
				err = errors.Join(err, i.undo())
			}
			return err
		}}, nil
	}
}

// alone measures what each part costs without the others, in frames/s. One that begins later costs so much less.
func (b *loadedVictim) alone(ctx context.Context, parts []part) (costs []float64, err error) {
	for _, p := range parts {
		cost, err := b.costOf(ctx, p)
		if err != nil {
			return nil, err
		}
		costs = append(costs, cost*(1-p.late.Seconds()/b.Window.Seconds()))
	}
	return costs, nil
}

func (b *loadedVictim) costOf(ctx context.Context, p part) (cost float64, err error) {
	i, err := p.inject(ctx, b)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, i.undo(), wait.For(ctx, takesHold)) }()
	if err := wait.For(ctx, takesHold); err != nil {
		return 0, err
	}
	t, err := b.watch(ctx, afterTime)
	return t.lost(), err
}

const clearly = 2 // times: parts whose costs differ less may be ranked either way

// misranked says what is wrong with the order in which the report has the parts; "": nothing.
func (o *Outcome) misranked(r *explain.Report, parts []part) string {
	place := func(k explain.Kind) int {
		return slices.IndexFunc(r.Causes, func(c explain.Cause) bool { return c.Kind == k && !c.Minor })
	}
	for i, p := range parts {
		if o.Alone[i] < cheap*o.Offered {
			continue
		}
		at := place(p.kind)
		if at < 0 {
			return fmt.Sprintf("%s was not found, although it costs %.2f Mpps alone", p.kind, o.Alone[i]/1e6)
		}
		for k, other := range parts {
			if after := place(other.kind); after >= 0 && after < at && o.Alone[i] > clearly*o.Alone[k] {
				return fmt.Sprintf("%s comes before %s, but costs %.2f Mpps alone, not %.2f", other.kind, p.kind,
					o.Alone[k]/1e6, o.Alone[i]/1e6)
			}
		}
	}
	return ""
}
