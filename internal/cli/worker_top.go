// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cli/screen"
	"github.com/corelane/corelane/internal/stat"
)

var topListing = listing[*apiv1.Worker]{
	key: workerName,
	columns: slices.Concat(
		workerListing.only("id", "cpu", "runs on", "idle", "packets", "busy %", "cycles/packet", "packets/busy loop",
			"empty loops", "calls", "missed", "dropped", "waiting", "behind").columns,
		columns[*apiv1.Worker]{
			duration("p99", func(w *apiv1.Worker) uint64 { return w.GetState().GetBusyP99Ns() }),
			duration("longest", func(w *apiv1.Worker) uint64 { return w.GetState().GetLongestLoopNs() }),
			counter("taken", func(w *apiv1.Worker) uint64 { return w.GetState().GetTakenLoops() }),
		}),
}

func newWorkerTop(a *app) *cobra.Command {
	cmd := verb("top", "Watch all workers on a full screen", `  corelane worker top
  corelane worker top --interval 500ms
  corelane worker top --plain | tee workers.log`,
		func(ctx context.Context, _ []string) error {
			if a.interval == 0 {
				a.interval = time.Second
			}
			if a.plain || a.json() || !isTerminal(a.stdout) {
				a.plain = true
				return topListing.rows(ctx, a, allWorkers(a))
			}
			return runTop(ctx, a)
		})
	cmd.Long = `Watch all workers on a full screen: rates per second, and below the queues, drops and longest loops
of the selected one. Keys: up and down select, s sorts, space pauses, r resets the loop times, + and - change the
interval, q quits. Without a terminal, or with --plain, each interval prints a table; -o json prints the workers
themselves.`
	cmd.Flags().Var(&screen.Interval{To: &a.interval}, "interval", "time between two refreshes: 500ms, 2 (default 1s)")
	cmd.Flags().BoolVar(&a.plain, "plain", false, "print one table after the other instead of a full screen")
	return cmd
}

func runTop(ctx context.Context, a *app) error {
	p := tea.NewProgram(newTop(ctx, a), tea.WithContext(ctx), tea.WithInput(a.stdin),
		tea.WithOutput(a.stdout.(*os.File)))
	last, err := p.Run()
	if m, ok := last.(top); ok && m.fatal != nil {
		return m.fatal
	}
	if ctx.Err() != nil || errors.Is(err, tea.ErrInterrupted) {
		return nil // as --watch ends
	}
	return err
}

// Messages to the screen besides keys.
type (
	topTick   struct{ round int }
	topLooked struct {
		workers []*apiv1.Worker
		loops   *apiv1.WorkerLatency // of the selected one
		at      time.Time
		err     error
	}
)

var topOrders = []string{"id", "busy", "packets", "p99"}

// top is the screen. Its methods return a changed copy, as bubbletea requires.
type top struct {
	ctx           context.Context
	a             *app
	samples       []sample[*apiv1.Worker]
	loops         *apiv1.WorkerLatency
	at            time.Time
	selected      uint32 // worker
	order         int
	round         int // of ticks; ticks of an earlier round are stale
	paused        bool
	reset         bool
	width, height int
	err, fatal    error
}

func newTop(ctx context.Context, a *app) top { return top{ctx: ctx, a: a} }

func (m top) Init() tea.Cmd { return m.look() }

// look fetches the workers from the daemon.
func (m top) look() tea.Cmd {
	req := &apiv1.WorkerLatencyRequest{Id: m.selected, OneWorker: true}
	return func() tea.Msg {
		workers, err := all(m.ctx, allWorkers(m.a))
		looked := topLooked{workers: workers, at: time.Now(), err: err}
		if err == nil {
			loops, err := latencies(m.ctx, m.a, req, m.reset)
			var refused *api.Error
			switch {
			case errors.As(err, &refused) && refused.Code == codes.PermissionDenied:
				looked.err = err
			case err == nil && len(loops) > 0: // else the worker has just gone
				looked.loops = loops[0]
			}
		}
		return looked
	}
}

func (m top) wait() tea.Cmd {
	round := m.round
	return tea.Tick(m.a.interval, func(time.Time) tea.Msg { return topTick{round} })
}

func (m top) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m.key(msg.String())
	case topTick:
		if msg.round == m.round && !m.paused {
			return m, m.look()
		}
	case topLooked:
		return m.looked(msg)
	}
	return m, nil
}

func (m top) looked(l topLooked) (tea.Model, tea.Cmd) {
	m.err, m.reset = l.err, false
	if l.err != nil {
		if m.samples == nil {
			m.fatal = l.err
			return m, tea.Quit
		}
		return m, m.wait()
	}
	before := map[uint32]*apiv1.Worker{}
	for _, s := range m.samples {
		before[s.now.Id] = s.now
	}
	m.samples = slices.Clone(m.samples[:0])
	for _, w := range l.workers {
		s := sample[*apiv1.Worker]{now: w, watching: true}
		if old := before[w.Id]; old != nil {
			s.before, s.seconds = old, l.at.Sub(m.at).Seconds()
		}
		m.samples = append(m.samples, s)
	}
	m.at, m.loops = l.at, l.loops
	m.sort()
	return m, m.wait()
}

func (m top) key(key string) (tea.Model, tea.Cmd) {
	switch key {
	case "q", "esc", "ctrl+c":
		return m, tea.Quit
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "s":
		m.order = (m.order + 1) % len(topOrders)
		m.sort()
	case "space":
		m.paused = !m.paused
		return m.again()
	case "r":
		m.reset = true
		return m.again()
	case "+":
		m.a.interval *= 2
		return m.again()
	case "-":
		m.a.interval = max(m.a.interval/2, screen.LeastInterval)
		return m.again()
	}
	return m, nil
}

// again looks at once and makes the pending tick stale.
func (m top) again() (tea.Model, tea.Cmd) {
	m.round++
	if m.paused {
		return m, nil
	}
	return m, m.look()
}

func (m *top) index() int {
	return slices.IndexFunc(m.samples, func(s sample[*apiv1.Worker]) bool { return s.now.Id == m.selected })
}

func (m *top) move(by int) {
	if len(m.samples) > 0 {
		m.selected = m.samples[min(max(m.index()+by, 0), len(m.samples)-1)].now.Id
		m.loops = nil
	}
}

func (m *top) sort() {
	weight := func(s sample[*apiv1.Worker]) uint64 {
		now, before := s.now.GetState(), s.before.GetState()
		switch topOrders[m.order] {
		case "busy":
			return stat.Grown(now.GetBusyCycles(), before.GetBusyCycles())
		case "packets":
			return stat.Grown(now.GetPackets(), before.GetPackets())
		case "p99":
			return now.GetBusyP99Ns()
		}
		return 0
	}
	slices.SortStableFunc(m.samples, func(a, b sample[*apiv1.Worker]) int {
		if wa, wb := weight(a), weight(b); wa != wb {
			return map[bool]int{true: -1, false: 1}[wa > wb]
		}
		return int(a.now.Id) - int(b.now.Id)
	})
	if m.index() < 0 && len(m.samples) > 0 {
		m.selected = m.samples[0].now.Id
	}
}

func (m top) View() tea.View {
	v := tea.NewView(m.text())
	v.AltScreen = true
	return v
}

func (m top) text() string {
	var out strings.Builder
	b := bufio.NewWriter(&out)
	m.title(b)
	m.table(b)
	m.details(b)
	_ = b.Flush()
	return m.fit(out.String())
}

func (m top) title(b *bufio.Writer) {
	state := "every " + m.a.interval.String()
	if m.paused {
		state = "paused"
	}
	fmt.Fprintf(b, "corelane worker top  %s  %d workers  %s  by %s\n", m.at.Format("15:04:05"), len(m.samples), state,
		topOrders[m.order])
	if m.err != nil {
		fmt.Fprintf(b, "%v\n", m.err)
	}
	b.WriteByte('\n')
}

// table marks the selected worker.
func (m top) table(b *bufio.Writer) {
	mark := column[*apiv1.Worker]{text: func(s sample[*apiv1.Worker]) string {
		return map[bool]string{true: ">", false: " "}[s.now.Id == m.selected]
	}}
	cs := append(columns[*apiv1.Worker]{mark}, topListing.columns...)
	t := cs.head(m.a, b, true)
	for _, s := range m.samples {
		_ = t.Add(cs.cells(s)...) // into memory
	}
	_ = t.Flush()
}

func (m top) details(b *bufio.Writer) {
	i := m.index()
	if i < 0 {
		return
	}
	s := m.samples[i]
	fmt.Fprintf(b, "\nworker %d (%s, thread %d)\n", s.now.Id, s.now.GetState().GetThread(), s.now.GetState().GetTid())
	for _, q := range s.now.GetState().GetQueues() {
		waiting := fmt.Sprintf("%d waiting", q.Depth)
		if q.DepthUnknown {
			waiting = "the device does not report how many packets wait"
		}
		fmt.Fprintf(b, "  %s queue %d: %d packets, %s\n", q.Port, q.Queue, q.RxPackets, waiting)
	}
	for _, d := range s.now.GetState().GetDrops() {
		fmt.Fprintf(b, "  dropped %s: %d%s\n", d.Reason, d.Packets, dropRate(s, d))
	}
	if m.loops != nil && m.loops.Worker == m.selected {
		_ = writeLatency(m.a, b, []*apiv1.WorkerLatency{m.loops}, true)
	}
}

func dropRate(s sample[*apiv1.Worker], d *apiv1.WorkerDrop) string {
	if s.seconds == 0 {
		return ""
	}
	var before uint64
	for _, old := range s.before.GetState().GetDrops() {
		if old.Reason == d.Reason {
			before = old.Packets
		}
	}
	return " (" + rate(d.Packets, before, s.seconds) + "/s)"
}

const topKeys = "up/down select  s sort  space pause  r reset loop times  +/- interval  q quit"

// fit cuts the text to the screen and puts the keys into its last line.
func (m top) fit(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if m.height > 1 {
		lines = lines[:min(len(lines), m.height-1)]
		for len(lines) < m.height-1 {
			lines = append(lines, "")
		}
	}
	lines = append(lines, topKeys)
	for i, line := range lines {
		if r := []rune(line); m.width > 0 && len(r) > m.width {
			lines[i] = string(r[:m.width])
		}
	}
	return strings.Join(lines, "\n")
}
