// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

var workerListing = listing[*apiv1.Worker]{
	key: workerName,
	columns: []column[*apiv1.Worker]{
		number("id", (*apiv1.Worker).GetId),
		number("cpu", (*apiv1.Worker).GetCpu),
		number("numa", func(w *apiv1.Worker) uint32 { return w.GetState().GetNuma() }),
		text("idle", func(w *apiv1.Worker) string { return enumText(w.Idle) }),
		text("thread", func(w *apiv1.Worker) string { return w.GetState().GetThread() }),
		counter("packets", func(w *apiv1.Worker) uint64 { return w.GetState().GetPackets() }),
		quotient("busy %", func(w *apiv1.Worker) uint64 { return 100 * w.GetState().GetBusyCycles() }, workerCycles),
		quotient("cycles/packet", func(w *apiv1.Worker) uint64 { return w.GetState().GetBusyCycles() },
			func(w *apiv1.Worker) uint64 { return w.GetState().GetPackets() }),
		quotient("packets/busy loop", func(w *apiv1.Worker) uint64 { return w.GetState().GetPackets() },
			func(w *apiv1.Worker) uint64 { return w.GetState().GetBusyLoops() }),
		text("queues", workerQueues),
	},
}

var workerFlags = []fieldFlag{
	{flag: "cpu", help: "CPU to run on, as the kernel counts them"},
	{flag: "idle", help: "what to do when there was nothing: spin, pause (one instruction), yield the CPU, or sleep up to 50 us"},
}

func newWorkerCmd(a *app) *cobra.Command {
	return noun("worker", "Workers: the threads that move packets, one CPU each",
		newList(a, "List workers", "  corelane worker list --watch", workerListing, allWorkers(a)),
		newShow(a, "ID", "Show a worker with its queues and counters", "  corelane worker show 0", workerNames,
			func(arg string) (fetch[*apiv1.Worker], error) {
				id, err := parseID("worker", arg, 0, anyID)
				return where(allWorkers(a), func(w *apiv1.Worker) bool { return w.Id == id }), err
			}),
		newWorkerAdd(a), newWorkerSet(a),
		newDel(a, "ID", "Stop workers; their queues go to the others", "  corelane worker del 3", workerNames,
			func(ctx context.Context, arg string) error {
				id, err := parseID("worker", arg, 0, anyID)
				if err != nil {
					return err
				}
				return a.done(call(ctx, a, apiv1.NewWorkersClient, apiv1.WorkersClient.Del, &apiv1.WorkerDelRequest{Id: id}))
			}))
}

func newWorkerAdd(a *app) *cobra.Command {
	req := &apiv1.WorkerAddRequest{Worker: &apiv1.Worker{}}
	cmd := verb("add [ID]", "Start a worker and print its id", "  corelane worker add --cpu 3\n  corelane worker add 7 --cpu 3 --idle yield",
		func(ctx context.Context, args []string) (err error) {
			if req.AutoId = len(args) == 0; !req.AutoId {
				if req.Worker.Id, err = parseID("worker", args[0], 0, anyID); err != nil {
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
	cmd = verb("set ID", "Move a worker to another CPU or change how it idles", "  corelane worker set 0 --cpu 5\n  corelane worker set 0 --idle sleep",
		func(ctx context.Context, args []string) error {
			fields, err := needFields(cmd, workerFlags)
			if err != nil {
				return err
			}
			if w.Id, err = parseID("worker", args[0], 0, anyID); err != nil {
				return err
			}
			return a.done(call(ctx, a, apiv1.NewWorkersClient, apiv1.WorkersClient.Set, &apiv1.WorkerSetRequest{Worker: w, Fields: fields}))
		})
	a.bind(cmd, w, workerFlags)
	cmd.ValidArgsFunction = a.complete(workerNames)
	return cmd
}

func allWorkers(a *app) fetch[*apiv1.Worker] {
	return listOf(a, apiv1.NewWorkersClient, apiv1.WorkersClient.List, &apiv1.WorkerListRequest{})
}

func workerName(w *apiv1.Worker) string { return strconv.Itoa(int(w.Id)) }

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
