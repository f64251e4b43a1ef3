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

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cli/protoflag"
)

// loopTimes is one line of the table: the loops of a worker with packets, or those without.
type loopTimes struct {
	*apiv1.WorkerLatency
	kind  string
	times *apiv1.LoopTimes
}

var latencyColumns = columns[loopTimes]{
	number("worker", func(l loopTimes) uint32 { return l.Worker }),
	number("cpu", func(l loopTimes) uint32 { return l.Cpu }),
	text("loops", func(l loopTimes) string { return l.kind }),
	number("count", func(l loopTimes) uint64 { return l.times.GetLoops() }),
	duration("p50", func(l loopTimes) uint64 { return l.times.GetP50Ns() }),
	duration("p99", func(l loopTimes) uint64 { return l.times.GetP99Ns() }),
	duration("p99.9", func(l loopTimes) uint64 { return l.times.GetP999Ns() }),
	duration("max", func(l loopTimes) uint64 { return l.times.GetMaxNs() }),
	text("cpu taken", func(l loopTimes) string { // of both kinds
		return map[string]string{"busy": strconv.FormatUint(l.TakenLoops, 10)}[l.kind]
	}),
}

var longLoopColumns = columns[*apiv1.LongLoop]{
	text("when", func(l *apiv1.LongLoop) string { return time.Unix(0, int64(l.TimeNs)).Format("15:04:05.000000") }),
	duration("length", (*apiv1.LongLoop).GetNs),
	number("packets", (*apiv1.LongLoop).GetPackets),
	duration("receive", (*apiv1.LongLoop).GetReceiveNs),
	duration("graph", (*apiv1.LongLoop).GetGraphNs),
	duration("messages", (*apiv1.LongLoop).GetMessagesNs),
	duration("idle", (*apiv1.LongLoop).GetIdleNs),
	duration("delay", (*apiv1.LongLoop).GetDelayNs),
	text("cpu", longLoopCPU),
	text("nodes", longLoopNodes),
}

func duration[T any](head string, ns func(T) uint64) column[T] {
	return column[T]{head: head, right: true, text: func(s sample[T]) string { return micros(ns(s.now)) }}
}

// longLoopCPU is the CPU, and whether the kernel gave it to another thread meanwhile.
func longLoopCPU(l *apiv1.LongLoop) string {
	text := fmt.Sprint(l.Cpu)
	switch {
	case l.Moved:
		text += " taken, moved here"
	case l.Taken:
		text += " taken"
	}
	return text
}

// longLoopNodes names the nodes that took a tenth of the loop or more.
func longLoopNodes(l *apiv1.LongLoop) string {
	var parts []string
	for _, n := range l.Nodes {
		if n.Ns*10 >= l.Ns {
			parts = append(parts, n.Node+" "+micros(n.Ns))
		}
	}
	return strings.Join(parts, ", ")
}

func newWorkerLatency(a *app) *cobra.Command {
	req := &apiv1.WorkerLatencyRequest{}
	var tune apiv1.Worker
	var reset bool
	tuneFlags := []fieldFlag{{flag: "threshold", field: "loop_threshold_us",
		help: "record loops of at least this length, until it is changed again"}}
	var cmd *cobra.Command
	cmd = verb("latency [ID]", "Show how long workers' loops take, and what the longest ones did",
		`  corelane worker latency
  corelane worker latency 0 --threshold 50
  corelane worker latency --reset
  corelane worker latency --watch=2`,
		func(ctx context.Context, args []string) (err error) {
			if req.OneWorker = len(args) == 1; req.OneWorker {
				if req.Id, err = protoflag.ParseField("worker", args[0], &apiv1.Worker{}, "id"); err != nil {
					return err
				}
			}
			if fields := changed(cmd, tuneFlags); fields != nil {
				if err := setThreshold(ctx, a, req, &tune, fields); err != nil {
					return err
				}
			}
			return a.repeat(ctx, func(w io.Writer, _ bool) error { return latencyFrame(ctx, a, w, req, reset) })
		})
	cmd.Long = `Show how long the loops of workers took since they started or since the last --reset: one line for
loops with packets and one for loops without. Below are the longest loops over the threshold, with the time of each
stage: polling the queues, all other nodes of the graph, messages of the master thread, time that the worker gave away
itself (yielding, sleeping), and the delay of 'corelane debug delay'. "taken" means that the kernel gave the CPU to
another thread meanwhile. A long loop without it was long because of its own work, an interrupt, or the hypervisor.`
	cmd.Flags().BoolVar(&reset, "reset", false, "reset the times after this output")
	a.bind(cmd, &tune, tuneFlags)
	cmd.ValidArgsFunction = a.complete(workerNames)
	return a.watchable(cmd)
}

// setThreshold sets the threshold of one worker, or of all.
func setThreshold(ctx context.Context, a *app, req *apiv1.WorkerLatencyRequest, tune *apiv1.Worker,
	fields []string) error {
	workers, err := all(ctx, allWorkers(a))
	if err != nil {
		return err
	}
	for _, w := range workers {
		if req.OneWorker && w.Id != req.Id {
			continue
		}
		tune.Id = w.Id
		if _, err := call(ctx, a, apiv1.NewWorkersClient, apiv1.WorkersClient.Set,
			&apiv1.WorkerSetRequest{Worker: tune, Fields: fields}); err != nil {
			return err
		}
	}
	return nil
}

// latencies fetches the times, then resets them if asked to.
func latencies(ctx context.Context, a *app, req *apiv1.WorkerLatencyRequest,
	reset bool) ([]*apiv1.WorkerLatency, error) {
	workers, err := all(ctx, listOf(a, apiv1.NewWorkersClient, apiv1.WorkersClient.Latency, req))
	if err == nil && reset {
		_, err = call(ctx, a, apiv1.NewWorkersClient, apiv1.WorkersClient.ResetLatency, req)
	}
	return workers, err
}

func latencyFrame(ctx context.Context, a *app, w io.Writer, req *apiv1.WorkerLatencyRequest,
	reset bool) error {
	workers, err := latencies(ctx, a, req, reset)
	if err != nil {
		return err
	}
	return buffered(w, func(b *bufio.Writer) error {
		if a.json() {
			for _, l := range workers {
				if err := writeJSON(b, l); err != nil {
					return err
				}
			}
			return nil
		}
		return writeLatency(a, b, workers, req.OneWorker)
	})
}

const latencyLoops = 5 // of each of several workers

func writeLatency(a *app, b *bufio.Writer, workers []*apiv1.WorkerLatency, one bool) error {
	var rows []loopTimes
	for _, l := range workers {
		rows = append(rows, loopTimes{l, "busy", l.Busy}, loopTimes{l, "empty", l.Empty})
	}
	if err := writeTable(a, b, latencyColumns, rows); err != nil {
		return err
	}
	for _, l := range workers {
		fmt.Fprintf(b, "\nworker %d: %d loops over %d us in %s%s\n", l.Worker, len(l.Longest), l.ThresholdUs,
			time.Duration(l.SinceSeconds*float64(time.Second)).Round(time.Second), takenNote(l))
		shown := l.Longest
		if !one && len(shown) > latencyLoops {
			shown = slices.Clone(shown)
			slices.SortFunc(shown, func(a, b *apiv1.LongLoop) int { return cmp.Compare(b.Ns, a.Ns) })
			shown = shown[:latencyLoops]
		}
		if len(shown) == 0 {
			continue
		}
		if err := writeTable(a, b, longLoopColumns, shown); err != nil {
			return err
		}
		if left := len(l.Longest) - len(shown); left > 0 {
			fmt.Fprintf(b, "... %d more: corelane worker latency %d\n", left, l.Worker)
		}
	}
	return nil
}

// takenNote says when "taken" is unknown.
func takenNote(l *apiv1.WorkerLatency) string {
	if l.TakenSeenBy == "rseq" {
		return ""
	}
	return "; without rseq it is unknown in which loops the CPU was taken: see involuntary_switches of 'corelane " +
		"worker show'"
}

func writeTable[T any](a *app, b *bufio.Writer, cs columns[T], rows []T) error {
	t := cs.head(a, b, false)
	for _, row := range rows {
		if err := t.Add(cs.cells(plain(row))...); err != nil {
			return err
		}
	}
	return t.Flush()
}
