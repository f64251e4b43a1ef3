// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

var eventListing = listing[*apiv1.Event]{
	key: func(e *apiv1.Event) string { return strconv.FormatUint(e.Number, 10) },
	columns: []column[*apiv1.Event]{
		text("time", eventTime),
		text("severity", func(e *apiv1.Event) string { return limits.EnumText(e.Severity) }),
		text("kind", (*apiv1.Event).GetKind),
		text("subject", (*apiv1.Event).GetSubject),
		text("what happened", (*apiv1.Event).GetText),
	},
}

var eventKindListing = listing[*apiv1.EventKind]{
	key: (*apiv1.EventKind).GetName,
	columns: []column[*apiv1.EventKind]{
		text("kind", (*apiv1.EventKind).GetName),
		text("severity", func(k *apiv1.EventKind) string { return limits.EnumText(k.Severity) }),
		text("explanation", (*apiv1.EventKind).GetExplanation),
	},
}

func newEventCmd(a *app) *cobra.Command {
	return noun("event", "Events: what happened to the daemon that its operator should know", newEventList(a),
		verb("kinds", "List the kinds of events, with the explanation of each", "  corelane event kinds",
			func(ctx context.Context, _ []string) error { return eventKindListing.rows(ctx, a, allEventKinds(a)) }))
}

func newEventList(a *app) *cobra.Command {
	req := &apiv1.EventListRequest{}
	cmd := verb("list", "List events, the oldest one first", `  corelane event list
  corelane event list --follow --severity warning
  corelane event list --kind thread_stray -o json`,
		func(ctx context.Context, _ []string) error {
			f := listOf(a, apiv1.NewEventsClient, apiv1.EventsClient.List, req)
			if req.Follow {
				return a.follow(ctx, f)
			}
			return eventListing.rows(ctx, a, f)
		})
	cmd.Long = `List the events since the daemon's start, at most the last 4096. With --follow, also print new events,
line by line, until interrupted.`
	a.bind(cmd, req, []fieldFlag{
		{flag: "follow", help: "after the list, wait for new events"},
		{flag: "severity", help: "only events of this severity or worse"},
		{flag: "kind", help: "only events of this kind; 'corelane event kinds' lists them", names: eventKinds},
		{flag: "after", help: "only events with a higher number (see -o json)"},
	})
	return a.watchable(cmd)
}

// follow prints events as they come, until interrupted, which is its ordinary end.
func (a *app) follow(ctx context.Context, f fetch[*apiv1.Event]) error {
	err := f(ctx, func(e *apiv1.Event) error {
		if a.json() {
			return writeJSON(a.stdout, e)
		}
		_, err := fmt.Fprintf(a.stdout, "%s %s %s%s: %s\n", eventTime(e), limits.EnumText(e.Severity), e.Kind,
			optional(" ", e.Subject), e.Text)
		return err
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func eventTime(e *apiv1.Event) string {
	return time.Unix(0, int64(e.TimeNs)).Format("2006-01-02 15:04:05.000")
}

func allEventKinds(a *app) fetch[*apiv1.EventKind] {
	return listOf(a, apiv1.NewEventsClient, apiv1.EventsClient.Kinds, &apiv1.Empty{})
}

var eventKinds = named(allEventKinds, func(k *apiv1.EventKind) string { return k.Name + "\t" + k.Explanation })
