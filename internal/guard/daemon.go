// SPDX-License-Identifier: Apache-2.0
package guard

import (
	"context"
	"time"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// redial is the interval at which Follow tries to reach a data plane that does not answer. Guests wait meanwhile: a
// restarted data plane forwards nothing before it has its configuration.
const redial = 100 * time.Millisecond

// Follow passes on the events of a data plane from now on, until ctx ends. It waits for a data plane that does not
// run, and reconnects to one that was restarted. It calls connected after each connect, before it passes on events.
func Follow(ctx context.Context, dial func(context.Context) (*api.Client, error),
	connected func(*api.Client)) <-chan Event {
	events := make(chan Event, 64)
	go func() {
		defer close(events)
		for ctx.Err() == nil {
			if c, err := dial(ctx); err == nil {
				if connected != nil {
					connected(c)
				}
				follow(ctx, c, events)
				_ = c.Close()
			}
			select {
			case <-ctx.Done():
			case <-time.After(redial):
			}
		}
	}()
	return events
}

// follow returns when the connection ends. It drops events from before the call.
func follow(ctx context.Context, c *api.Client, events chan<- Event) {
	begun := time.Now()
	req := &apiv1.EventListRequest{Follow: true}
	_ = api.Stream(ctx, c, apiv1.NewEventsClient, apiv1.EventsClient.List, req, func(e *apiv1.Event) error {
		at := time.Unix(0, int64(e.TimeNs))
		if at.Before(begun) {
			return nil
		}
		select {
		case events <- Event{Time: at, Kind: Daemon, Check: e.Kind, Subject: e.Subject, Text: e.Text}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}
