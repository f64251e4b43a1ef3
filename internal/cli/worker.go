// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cli/protoflag"
	"github.com/corelane/corelane/internal/limits"
)

var workerListing = listing[*apiv1.Worker]{
	key: workerName,
	columns: []column[*apiv1.Worker]{
		number("id", (*apiv1.Worker).GetId),
		number("cpu", (*apiv1.Worker).GetCpu),
		text("runs on", workerRunsOn),
		number("numa", func(w *apiv1.Worker) uint32 { return w.GetState().GetNuma() }),
		text("role", func(w *apiv1.Worker) string { return limits.EnumText(w.Role) }),
		text("idle", workerIdle),
		text("thread", func(w *apiv1.Worker) string { return w.GetState().GetThread() }),
		counter("packets", workerPackets),
		quotient("busy %", func(w *apiv1.Worker) uint64 { return 100 * w.GetState().GetBusyCycles() }, workerCycles),
		quotient("cycles/packet", func(w *apiv1.Worker) uint64 { return w.GetState().GetBusyCycles() }, workerPackets),
		quotient("packets/busy loop", workerPackets, func(w *apiv1.Worker) uint64 {
			return w.GetState().GetBusyLoops()
		}),
		counter("empty loops", func(w *apiv1.Worker) uint64 { return w.GetState().GetEmptyLoops() }),
		counter("calls", func(w *apiv1.Worker) uint64 { return w.GetState().GetSystemCalls() }),
		counter("missed", func(w *apiv1.Worker) uint64 { return w.GetState().GetRxMissed() }),
		counter("dropped", func(w *apiv1.Worker) uint64 { return w.GetState().GetDroppedPackets() }),
		number("waiting", workerDepth),
		text("behind", func(w *apiv1.Worker) string { return micros(uint64(w.GetState().GetBehindUs()) * 1000) }),
		text("gives to", (*apiv1.Worker).GetTarget),
		text("queues", workerQueues),
	},
}

var workerFlags = []fieldFlag{
	{flag: "cpu", help: "number of the CPU to run on"},
	{flag: "idle",
		help: "what it does after a loop without packets: spin, pause (one instruction), yield the CPU, sleep, or " +
			"wait for an interrupt"},
	{flag: "role",
		help: "its job: forwarding, isolated-rx (passes all packets that it polls to one forwarding worker), " +
			"host-path"},
	{flag: "target",
		help: "isolated-rx, host-path: forwarding worker that gets its packets (default: the one with the fewest " +
			"queues)"},
	{flag: "ring-size", help: "packets in the ring from each other worker (default: what corelaned was started with)"},
	{flag: "sleep-max-us", help: "longest sleep with --idle sleep, for which a packet may have to wait"},
	{flag: "loop-threshold-us", help: "record each loop that takes longer"},
}

func newWorkerCmd(a *app) *cobra.Command {
	return noun("worker", "Workers: the threads that move packets, one CPU each",
		newList(a, "List workers", "  corelane worker list --watch", workerListing, allWorkers(a)),
		newShow(a, "ID", "Show a worker with its queues and counters", "  corelane worker show 0", workerNames,
			func(arg string) (fetch[*apiv1.Worker], error) {
				id, err := protoflag.ParseField("worker", arg, &apiv1.Worker{}, "id")
				return where(allWorkers(a), func(w *apiv1.Worker) bool { return w.Id == id }), err
			}),
		newWorkerTop(a), newWorkerLatency(a), newWorkerAdd(a), newWorkerSet(a), newWorkerRings(a),
		newWorkerRebalance(a),
		newDel(a, "ID", "Stop workers; their queues go to the others", "  corelane worker del 3", workerNames,
			byNumber("worker", &apiv1.Worker{}, "id", func(ctx context.Context, id uint32) error {
				return a.done(call(ctx, a, apiv1.NewWorkersClient, apiv1.WorkersClient.Del,
					&apiv1.WorkerDelRequest{Id: id}))
			})))
}

func newWorkerAdd(a *app) *cobra.Command {
	req := &apiv1.WorkerAddRequest{Worker: &apiv1.Worker{}}
	cmd := verb("add [ID]", "Start a worker and print its id",
		"  corelane worker add --cpu 3\n  corelane worker add 7 --cpu 3 --idle yield",
		func(ctx context.Context, args []string) (err error) {
			if req.AutoId = len(args) == 0; !req.AutoId {
				if req.Worker.Id, err = protoflag.ParseField("worker", args[0], &apiv1.Worker{}, "id"); err != nil {
					return err
				}
			}
			w, err := call(ctx, a, apiv1.NewWorkersClient, apiv1.WorkersClient.Add, req)
			if err == nil && req.AutoId && !a.json() {
				_, err = fmt.Fprintln(a.stdout, w.Id)
			}
			return a.done(w, err)
		})
	a.bind(cmd, req.Worker, workerFlags)
	required(cmd, "cpu")
	return cmd
}

func newWorkerSet(a *app) *cobra.Command {
	w := &apiv1.Worker{}
	var cmd *cobra.Command
	cmd = verb("set ID", "Move a worker to another CPU or change how it idles",
		"  corelane worker set 0 --cpu 5\n  corelane worker set 0 --idle sleep --sleep-max-us 20",
		func(ctx context.Context, args []string) error {
			fields, err := needFields(cmd, workerFlags)
			if err != nil {
				return err
			}
			if w.Id, err = protoflag.ParseField("worker", args[0], &apiv1.Worker{}, "id"); err != nil {
				return err
			}
			return a.done(call(ctx, a, apiv1.NewWorkersClient, apiv1.WorkersClient.Set,
				&apiv1.WorkerSetRequest{Worker: w, Fields: fields}))
		})
	a.bind(cmd, w, workerFlags)
	cmd.ValidArgsFunction = a.complete(workerNames)
	return cmd
}

func allWorkers(a *app) fetch[*apiv1.Worker] {
	return listOf(a, apiv1.NewWorkersClient, apiv1.WorkersClient.List, &apiv1.WorkerListRequest{})
}

func workerName(w *apiv1.Worker) string { return strconv.Itoa(int(w.Id)) }

func workerPackets(w *apiv1.Worker) uint64 { return w.GetState().GetPackets() }

// workerRunsOn is the CPU on which the thread was last seen, and the CPUs that it may use unless that is only its own.
func workerRunsOn(w *apiv1.Worker) string {
	s := w.GetState()
	switch s.GetAffinity() {
	case "":
		return ""
	case strconv.Itoa(int(w.Cpu)):
		return strconv.Itoa(int(s.LastCpu))
	}
	return fmt.Sprintf("%d (allowed: %s)", s.LastCpu, s.Affinity)
}

// workerDepth sums the packets that wait in the queues whose devices report it.
func workerDepth(w *apiv1.Worker) (n uint32) {
	for _, q := range w.GetState().GetQueues() {
		n += q.Depth
	}
	return n
}

// micros writes a time in the unit in which loops are compared; empty for 0.
func micros(ns uint64) string {
	switch {
	case ns == 0:
		return ""
	case ns < 10000:
		return fmt.Sprintf("%.1f us", float64(ns)/1000)
	case ns < 10000000:
		return fmt.Sprintf("%d us", ns/1000)
	}
	return fmt.Sprintf("%d ms", ns/1000000)
}

// workerIdle is the policy, and the queue without interrupts that makes the worker sleep instead.
func workerIdle(w *apiv1.Worker) string {
	if q := w.GetState().GetPolledByTime(); q != "" {
		return fmt.Sprintf("%s (sleeps: %s gives no interrupts)", limits.EnumText(w.Idle), q)
	}
	return limits.EnumText(w.Idle)
}

func workerCycles(w *apiv1.Worker) uint64 {
	return w.GetState().GetBusyCycles() + w.GetState().GetIdleCycles()
}

func workerQueues(w *apiv1.Worker) string {
	var all []string
	for _, q := range w.GetState().GetQueues() {
		all = append(all, fmt.Sprintf("%s:%d", q.Port, q.Queue))
	}
	return strings.Join(all, " ")
}

var workerNames = named(allWorkers, func(w *apiv1.Worker) string { return fmt.Sprintf("%d\tCPU %d", w.Id, w.Cpu) })
