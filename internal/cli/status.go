// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/table"
	"github.com/corelane/corelane/internal/wait"
)

// How much of the long lists fits on one screen.
const statusPorts, statusDrops = 8, 5

var statusPortListing = portListing.only("name", "role", "state", "in", "rx packets", "tx packets", "dropped")

func newStatusCmd(a *app) *cobra.Command {
	var patience time.Duration
	var cmd *cobra.Command
	cmd = a.watchable(verb("status", "Show the daemon on one screen",
		"  corelane status\n  corelane status --watch\n  corelane status --wait 30s",
		func(ctx context.Context, _ []string) error {
			if cmd.Flags().Changed("wait") {
				return a.waitUntilWell(ctx, patience)
			}
			s := &status{app: a}
			return a.repeat(ctx, func(w io.Writer, watching bool) error { return s.frame(ctx, w, watching) })
		}))
	cmd.Long = `Show the daemon on one screen. The line "verdict" names what keeps packets from being forwarded, or
changes from being kept: ports without a peer or link, and workers that are stalled. With --wait nothing is shown: the
command ends with status 0 as soon as all is well, and with what is wrong and another status when the time is over. 0s
looks once.`
	cmd.Flags().DurationVar(&patience, "wait", 0, "wait so long at most until corelaned answers and all is well")
	return cmd
}

const oneLook = 5 * time.Second // for the daemon's answers

// waitUntilWell returns nil as soon as the daemon answers and nothing is wrong.
func (a *app) waitUntilWell(ctx context.Context, patience time.Duration) error {
	limit := patience
	if limit == 0 {
		limit = oneLook
	}
	within, cancel := context.WithTimeoutCause(ctx, limit, errors.New("corelaned does not answer"))
	defer cancel()
	err := a.well(within)
	if err == nil || patience == 0 {
		return err
	}
	_ = wait.Until(within, 100*time.Millisecond, func() (bool, error) {
		if now := a.well(within); within.Err() == nil {
			err = now
		}
		return err == nil, nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("after %v: %w", patience, err)
	}
	return err
}

// well returns what is wrong, as an error.
func (a *app) well(ctx context.Context) error {
	st, err := call(ctx, a, apiv1.NewSystemClient, apiv1.SystemService.GetStatus, &apiv1.Empty{})
	if err == nil {
		_, wrong, faults := a.wrong(ctx, st)
		if err = faults; len(wrong) > 0 {
			return errors.New(strings.Join(wrong, "; "))
		}
	}
	var gone *api.Unavailable
	if errors.As(err, &gone) {
		a.client = nil // the next look connects anew
	}
	return err
}

// stalledUS is how late a worker must be with a change, in microseconds, to be called stalled.
const stalledUS = 500_000

// wrong lists the ports, and what keeps packets from being forwarded or changes from being kept.
func (a *app) wrong(ctx context.Context, st *apiv1.Status) (ports []*apiv1.Port, list []string, err error) {
	down := map[string][]string{}
	ports, err = all(ctx, portsNamed(a, ""))
	if err != nil {
		return nil, nil, err
	}
	for _, p := range ports {
		if state := portState(p); state != "up" && state != "disabled" {
			down[state] = append(down[state], p.Name)
		}
	}
	for _, state := range slices.Sorted(maps.Keys(down)) {
		list = append(list, fmt.Sprintf("%s: %s", state, someOf(down[state])))
	}
	workers, err := all(ctx, listOf(a, apiv1.NewWorkersClient, apiv1.WorkersClient.List, &apiv1.WorkerListRequest{}))
	for _, w := range workers {
		if w.GetState().GetBehindUs() >= stalledUS {
			list = append(list, fmt.Sprintf("worker %d is stalled", w.Id))
		}
	}
	if len(workers) == 0 && err == nil {
		list = append(list, "there is no worker")
	}
	if n := st.GetKept().GetRefused(); n > 0 {
		list = append(list, fmt.Sprintf("%d kept changes could not be made again at the start", n))
	}
	if problem := st.GetKept().GetProblem(); problem != "" {
		list = append(list, "changes are not kept any more: "+problem)
	}
	return ports, list, err
}

// someOf names the first few of many.
func someOf(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// status remembers the last round for the rates.
type status struct {
	*app
	before *apiv1.Status
	at     time.Time
}

func (s *status) frame(ctx context.Context, w io.Writer, watching bool) error {
	st, err := call(ctx, s.app, apiv1.NewSystemClient, apiv1.SystemService.GetStatus, &apiv1.Empty{})
	if err != nil {
		return err
	}
	if s.json() {
		return writeJSON(w, st)
	}
	ports, wrong, err := s.wrong(ctx, st)
	if err != nil {
		return err
	}
	drops, err := all(ctx, listOf(s.app, apiv1.NewStatsClient, apiv1.StatsClient.Drops, &apiv1.DropListRequest{}))
	if err != nil {
		return err
	}
	drops = slices.DeleteFunc(drops, func(d *apiv1.Drop) bool {
		harmless := slices.Contains(ordinary, d.Reason)
		if harmless {
			st.DroppedPackets -= min(d.Packets, st.DroppedPackets)
		}
		return harmless
	})
	return buffered(w, func(b *bufio.Writer) error {
		s.line(b, "verdict", "%s", cmp.Or(strings.Join(wrong, "; "), "all is well"))
		s.summary(b, st)
		if watching {
			s.before, s.at = st, time.Now()
		}
		return s.lists(ctx, b, ports, drops)
	})
}

func (s *status) summary(w io.Writer, st *apiv1.Status) {
	huge := "without hugepages"
	if st.Hugepages {
		huge = "on hugepages"
	}
	up := time.Duration(st.UptimeSeconds * float64(time.Second)).Round(time.Second)
	line := func(label, format string, args ...any) { s.line(w, label, format, args...) }
	line("corelaned", "%s  pid %d  up %s  %s", st.Version, st.Pid, up, s.client.Server.GetDpdk())
	line("memory", "%s %s, %d of %d mbufs in use, %d open files", mebibytes(st.MemoryBytes), huge, st.MbufsInUse,
		st.MbufsTotal, st.OpenFiles)
	line("ports", "%d, %d up      workers %d", st.Ports, st.PortsUp, st.Workers)
	line("routes", "%d IPv4, %d IPv6 in %d VRFs (tables %s, control copy %s)", st.RoutesIpv4, st.RoutesIpv6, st.Vrfs,
		mebibytes(st.FibBytes), mebibytes(st.RibBytes))
	line("tables", "%d next hops, %d labels, %d VNIs, %d bridges, %d MACs, %d neighbours", st.Nexthops, st.Labels,
		st.Vnis, st.Bridges, st.Macs, st.Neighbors)
	if m := st.Master; m != nil {
		line("master", "longest turn %.1f ms (%s %.1f ms); above 100 ms: %d, and %d that waited for a CPU",
			float64(m.Times.GetMaxNs())/1e6, cmp.Or(m.LongestWork, "unknown work"), float64(m.LongestWorkNs)/1e6,
			m.LongTurns, m.WaitingTurns)
	}
	line("api", "%d connections%s", st.ApiConnections, optional("; limits reached: ", apiLimits(st)))
	if k := st.Kept; k != nil {
		line("kept", "%d changes, %s in %s; %d restored at the start%s%s", k.Changes, mebibytes(k.Bytes), k.Directory,
			k.Restored, optional(", refused: ", counted(k.Refused)), optional("; NOT KEPT ANY MORE: ", k.Problem))
	}
	line("packets", "%s received, %s sent, %s dropped", s.total(st, (*apiv1.Status).GetRxPackets),
		s.total(st, (*apiv1.Status).GetTxPackets), s.total(st, (*apiv1.Status).GetDroppedPackets))
}

func (s *status) line(w io.Writer, label, format string, args ...any) {
	statusLine(w, s.tableWidth(), label, fmt.Sprintf(format, args...))
}

const labelWidth = len("corelaned ")

// statusLine writes a text behind a label, on as many lines as a screen of these columns needs; 0: on one.
func statusLine(w io.Writer, columns int, label, text string) {
	lines := []string{text}
	if columns > 2*labelWidth {
		lines = table.Wrap(text, columns-labelWidth)
	}
	for _, l := range lines {
		fmt.Fprintf(w, "%-*s%s\n", labelWidth, label, l)
		label = ""
	}
}

// apiLimits names the limits of the API that clients have reached, with how often.
func apiLimits(st *apiv1.Status) string {
	var parts []string
	for _, l := range st.ApiLimits {
		parts = append(parts, fmt.Sprintf("%s %d", l.Name, l.Count))
	}
	return strings.Join(parts, ", ")
}

func (s *status) total(st *apiv1.Status, get func(*apiv1.Status) uint64) string {
	text := fmt.Sprint(get(st))
	if s.before != nil {
		text += " (" + rate(get(st), get(s.before), time.Since(s.at).Seconds()) + "/s)"
	}
	return text
}

// counted returns a number as text, and nothing for 0.
func counted(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// lists adds the first ports and the most frequent drop reasons.
func (s *status) lists(ctx context.Context, w *bufio.Writer, ports []*apiv1.Port, drops []*apiv1.Drop) error {
	if err := section(ctx, s.app, w, statusPortListing, ports, statusPorts, "corelane port list"); err != nil {
		return err
	}
	slices.SortStableFunc(drops, func(a, b *apiv1.Drop) int { return cmp.Compare(b.Packets, a.Packets) })
	return section(ctx, s.app, w, dropListing(&apiv1.DropListRequest{}), drops, statusDrops, "corelane drops")
}

// section is a table of the first objects after an empty line, and says how to see the others.
func section[T proto.Message](ctx context.Context, a *app, w *bufio.Writer, l listing[T], objs []T, most int,
	more string) error {
	if len(objs) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	err := l.table(ctx, a, w, false, func(_ context.Context, each func(T) error) error {
		for _, obj := range objs[:min(len(objs), most)] {
			if err := each(obj); err != nil {
				return err
			}
		}
		return nil
	}, plain)
	if len(objs) > most {
		fmt.Fprintf(w, "... %d more: %s\n", len(objs)-most, more)
	}
	return err
}
