// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/table"
)

// How much of the long lists fits on one screen.
const statusPorts, statusDrops = 8, 5

var statusPortListing = portListing.only("name", "role", "state", "in", "rx packets", "tx packets", "dropped")

func newStatusCmd(a *app) *cobra.Command {
	return a.watchable(verb("status", "Show the daemon on one screen", "  corelane status\n  corelane status --watch",
		func(ctx context.Context, _ []string) error {
			s := &status{app: a}
			return a.repeat(ctx, func(w io.Writer, watching bool) error { return s.frame(ctx, w, watching) })
		}))
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
	return buffered(w, func(b *bufio.Writer) error {
		s.summary(b, st)
		if watching {
			s.before, s.at = st, time.Now()
		}
		return s.lists(ctx, b)
	})
}

func (s *status) summary(w io.Writer, st *apiv1.Status) {
	huge := "without hugepages"
	if st.Hugepages {
		huge = "on hugepages"
	}
	up := time.Duration(st.UptimeSeconds * float64(time.Second)).Round(time.Second)
	line := func(label, format string, args ...any) {
		statusLine(w, s.tableWidth(), label, fmt.Sprintf(format, args...))
	}
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
func (s *status) lists(ctx context.Context, w *bufio.Writer) error {
	ports, err := all(ctx, portsNamed(s.app, ""))
	if err != nil {
		return err
	}
	if err := section(ctx, s.app, w, statusPortListing, ports, statusPorts, "corelane port list"); err != nil {
		return err
	}
	drops, err := all(ctx, listOf(s.app, apiv1.NewStatsClient, apiv1.StatsClient.Drops, &apiv1.DropListRequest{}))
	if err != nil {
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
