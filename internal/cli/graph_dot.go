// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// drawGraph writes the nodes that f lists for Graphviz.
func drawGraph(ctx context.Context, w *bufio.Writer, f fetch[*apiv1.Node], fold bool) error {
	var nodes []*apiv1.Node
	if err := f(ctx, func(n *apiv1.Node) error { nodes = append(nodes, n); return nil }); err != nil {
		return err
	}
	fmt.Fprintf(w, "digraph corelane {\n\trankdir=LR;\n\tnode [shape=box, fontname=\"monospace\"];\n")
	if fold {
		writePaths(w, foldNodes(nodes))
	} else {
		for _, n := range nodes {
			writeNode(w, n)
		}
	}
	fmt.Fprintln(w, "}")
	return nil
}

// writeNode draws a node that saw packets solid, and others dotted.
func writeNode(w *bufio.Writer, n *apiv1.Node) {
	if n.Packets == 0 {
		fmt.Fprintf(w, "\t%q [style=dotted];\n", n.Name)
	} else {
		fmt.Fprintf(w, "\t%q [label=\"%s\\n%d packets\\n%.1f cycles/packet\"];\n", n.Name, n.Name, n.Packets,
			float64(n.Cycles)/float64(n.Packets))
	}
	for _, next := range n.Next {
		fmt.Fprintf(w, "\t%q -> %q;\n", n.Name, next)
	}
}

// nextHop stands for the edges that all nodes share that send packets to their next hop.
const nextHop = "next hop"

// paths maps a family of nodes to the families that follow it.
type paths map[string][]string

// foldNodes joins the nodes of a family and leaves out where packets end, because every node can drop.
func foldNodes(nodes []*apiv1.Node) paths {
	p := paths{}
	for _, n := range nodes {
		from := family(n.Name)
		if p[from] == nil {
			p[from] = []string{} // it is drawn even where nothing follows
		}
		for _, next := range n.Next {
			if to := family(next); to != "drop" && to != from && !slices.Contains(p[from], to) {
				p[from] = append(p[from], to)
			}
		}
	}
	delete(p, "drop")
	p.shareNextHop()
	return p
}

// family is the name that a node shares with the nodes that do the same for IPv6 or for another encapsulation.
func family(node string) string {
	for _, kind := range []string{"encap_", "decap_"} {
		if strings.HasPrefix(node, kind) {
			return kind + "*"
		}
	}
	return strings.NewReplacer("4", "", "6", "").Replace(node)
}

// shareNextHop draws the edges once that all nodes leading to an encapsulation share.
func (p paths) shareNextHop() {
	var shared []string
	for _, next := range p {
		if !slices.Contains(next, "encap_*") {
			continue
		}
		if shared == nil {
			shared = slices.Clone(next)
		}
		shared = slices.DeleteFunc(shared, func(to string) bool { return !slices.Contains(next, to) })
	}
	for from, next := range p {
		if slices.Contains(next, "encap_*") {
			rest := slices.DeleteFunc(next, func(to string) bool { return slices.Contains(shared, to) })
			p[from] = append(rest, nextHop)
		}
	}
	if shared != nil {
		p[nextHop] = shared
	}
}

func writePaths(w *bufio.Writer, p paths) {
	names := make([]string, 0, len(p))
	for name := range p {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintf(w, "\t%q [shape=ellipse];\n", nextHop)
	for _, name := range names {
		next := slices.Sorted(slices.Values(p[name]))
		if len(next) == 0 {
			fmt.Fprintf(w, "\t%q;\n", name)
		}
		for _, to := range next {
			fmt.Fprintf(w, "\t%q -> %q;\n", name, to)
		}
	}
}
