// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bufio"
	"context"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/input"
)

var nodeListing = listing[*apiv1.Node]{
	key: (*apiv1.Node).GetName,
	columns: []column[*apiv1.Node]{
		text("node", (*apiv1.Node).GetName),
		counter("packets", (*apiv1.Node).GetPackets),
		counter("calls", (*apiv1.Node).GetCalls),
		quotient("packets/call", (*apiv1.Node).GetPackets, (*apiv1.Node).GetCalls),
		quotient("cycles/call", (*apiv1.Node).GetCycles, (*apiv1.Node).GetCalls),
		quotient("cycles/packet", (*apiv1.Node).GetCycles, (*apiv1.Node).GetPackets),
	},
}

func newGraphCmd(a *app) *cobra.Command {
	req := &apiv1.NodeListRequest{}
	dot, fold, all := false, false, false
	var cmd *cobra.Command
	cmd = verb("graph", "The packet graph: what each node did and what a packet costs there", `  corelane graph
  corelane graph --watch --worker 0
  corelane graph --dot | dot -Tsvg > graph.svg
  corelane graph --dot --fold | dot -Tsvg > graph.svg`,
		func(ctx context.Context, _ []string) error {
			req.OneWorker = cmd.Flags().Changed("worker")
			f := listOf(a, apiv1.NewStatsClient, apiv1.StatsClient.Graph, req)
			if fold && !dot {
				return input.Errorf("--fold", "--fold together with --dot", "has no effect without --dot")
			}
			if dot {
				req.Edges = true
				return buffered(a.stdout, func(w *bufio.Writer) error { return drawGraph(ctx, w, f, fold) })
			}
			req.Edges = a.json()
			return nodeListing.rows(ctx, a, where(f, func(n *apiv1.Node) bool {
				return all || a.json() || n.Calls != 0
			}))
		})
	cmd.Long = `The packet graph: what each node did and what a packet costs there, summed over the workers. Cycles
are counted by the time-stamp counter; port_rx is also called when there is nothing to receive. With --watch the
figures cover the last interval.`
	a.bind(cmd, req, []fieldFlag{{flag: "worker", help: "only this worker", names: workerNames}})
	cmd.Flags().BoolVar(&dot, "dot", false, "print the graph with its edges for Graphviz")
	cmd.Flags().BoolVar(&fold, "fold", false,
		"with --dot: draw only paths, with each family of nodes (IPv4 and IPv6, the encapsulations) as one node")
	cmd.Flags().BoolVar(&all, "all", false, "also nodes that were never called")
	return a.watchable(cmd)
}
