// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bufio"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
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
	dot, all := false, false
	var cmd *cobra.Command
	cmd = verb("graph", "The packet graph: what each node did and what a packet costs there", `  corelane graph
  corelane graph --watch --worker 0
  corelane graph --dot | dot -Tsvg > graph.svg`,
		func(ctx context.Context, _ []string) error {
			req.OneWorker = cmd.Flags().Changed("worker")
			f := listOf(a, apiv1.NewStatsClient, apiv1.StatsClient.Graph, req)
			if dot {
				req.Edges = true
				return buffered(a.stdout, func(w *bufio.Writer) error { return writeDot(ctx, w, f) })
			}
			req.Edges = a.json()
			return nodeListing.rows(ctx, a, where(f, func(n *apiv1.Node) bool { return all || a.json() || n.Calls != 0 }))
		})
	cmd.Long = `The packet graph: what each node did and what a packet costs there, summed over the workers. Cycles are those of the
time stamp counter; port_rx is also called when there is nothing to receive. With --watch the figures are those of the
interval.`
	a.bind(cmd, req, []fieldFlag{{flag: "worker", help: "only this worker", names: workerNames}})
	cmd.Flags().BoolVar(&dot, "dot", false, "print the graph with its edges for Graphviz")
	cmd.Flags().BoolVar(&all, "all", false, "nodes that were never called too")
	return a.watchable(cmd)
}

// writeDot draws nodes that saw packets solid, the others dotted.
func writeDot(ctx context.Context, w *bufio.Writer, f fetch[*apiv1.Node]) error {
	fmt.Fprintf(w, "digraph corelane {\n\trankdir=LR;\n\tnode [shape=box, fontname=\"monospace\"];\n")
	err := f(ctx, func(n *apiv1.Node) error {
		if n.Packets == 0 {
			fmt.Fprintf(w, "\t%q [style=dotted];\n", n.Name)
		} else {
			fmt.Fprintf(w, "\t%q [label=\"%s\\n%d packets\\n%.1f cycles/packet\"];\n", n.Name, n.Name, n.Packets,
				float64(n.Cycles)/float64(n.Packets))
		}
		for _, next := range n.Next {
			fmt.Fprintf(w, "\t%q -> %q;\n", n.Name, next)
		}
		return nil
	})
	fmt.Fprintln(w, "}")
	return err
}
