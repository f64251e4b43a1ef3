// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cli/protoflag"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/limits"
)

func newFlowCmd(a *app) *cobra.Command {
	return noun("flow", "Flows: sessions of stateful ports, with what was decided about them",
		newFlowList(a), newFlowWatch(a), newFlowShow(a), newFlowTop(a), newFlowCount(a), newFlowExplain(a),
		newFlowFlush(a), newFlowResize(a))
}

func fromTo(d *apiv1.FlowDirection) string {
	return endpoint(d.GetSource(), d.GetSourcePort()) + " > " + endpoint(d.GetDestination(), d.GetDestinationPort())
}

func whereFrom(port string) string {
	if port == "" {
		return "-"
	}
	return port
}

// why names the rules that decided about the flow, or the reason of its denial.
func why(f *apiv1.Flow) string {
	if f.Reason != "" {
		return f.Reason
	}
	var parts []string
	for _, p := range []struct {
		name string
		rule uint32
	}{{"egress", f.EgressRule}, {"ingress", f.IngressRule}, {"nat", f.Nat}} {
		if p.rule != 0 {
			parts = append(parts, p.name+" "+strconv.Itoa(int(p.rule)))
		}
	}
	if f.Service != "" {
		parts = append(parts, "service "+f.Service)
	}
	if len(parts) == 0 {
		return "default"
	}
	return strings.Join(parts, ", ")
}

// extras lists the meters and mirrors of both directions.
func extras(f *apiv1.Flow) string {
	var parts []string
	for _, d := range []*apiv1.FlowDirection{f.GetForward(), f.GetReverse()} {
		for _, m := range d.GetMeters() {
			parts = append(parts, "meter "+m)
		}
		for _, m := range d.GetMirrors() {
			parts = append(parts, "mirror "+m)
		}
	}
	slices.Sort(parts)
	if parts = slices.Compact(parts); len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

var flowListing = listing[*apiv1.Flow]{
	key: func(f *apiv1.Flow) string { return strconv.Itoa(int(f.Id)) },
	columns: []column[*apiv1.Flow]{
		number("id", (*apiv1.Flow).GetId),
		text("vrf", func(f *apiv1.Flow) string { return whereFrom(f.GetForward().GetVrf()) }),
		text("bridge", func(f *apiv1.Flow) string { return whereFrom(f.GetForward().GetBridge()) }),
		text("protocol", (*apiv1.Flow).GetProtocol),
		text("forward", func(f *apiv1.Flow) string { return fromTo(f.GetForward()) }),
		text("reverse", func(f *apiv1.Flow) string { return fromTo(f.GetReverse()) }),
		text("in", func(f *apiv1.Flow) string { return whereFrom(f.InPort) }),
		text("out", func(f *apiv1.Flow) string { return whereFrom(f.OutPort) }),
		text("action", func(f *apiv1.Flow) string { return limits.EnumText(f.Action) }),
		text("state", func(f *apiv1.Flow) string { return limits.EnumText(f.State) }),
		text("by", why),
		text("with", extras),
		counter("packets", func(f *apiv1.Flow) uint64 { return f.GetForward().GetPackets() }),
		counter("answers", func(f *apiv1.Flow) uint64 { return f.GetReverse().GetPackets() }),
		counter("bytes", func(f *apiv1.Flow) uint64 { return f.GetForward().GetBytes() + f.GetReverse().GetBytes() }),
		text("age", func(f *apiv1.Flow) string { return strconv.Itoa(int(f.AgeSeconds)) + " s" }),
	},
}

func flowFlags(f *apiv1.FlowFilter) []fieldFlag {
	return []fieldFlag{
		{flag: "vrf", help: "only those of this VRF", names: vrfNames},
		{flag: "bridge", help: "only those of this bridge domain", names: bridgeNames},
		{flag: "prefix", help: "only those from or to addresses of this prefix"},
		{flag: "port", help: "only those that come in or leave by this port", names: portNames},
		{flag: "protocol", help: "only this protocol: tcp, udp, icmp, icmpv6, sctp or its number",
			names: fixed("tcp", "udp", "icmp", "icmpv6", "sctp")},
		{flag: "l4-port", help: "only those from or to this TCP, UDP or SCTP port"},
		{flag: "action", help: "only those that are allowed, or denied"},
		{flag: "state", help: "only those in this state"},
		{flag: "nat", help: "only those that this rule translates"},
		{flag: "service", help: "only those of this service", names: serviceNames},
	}
}

func flowsOf(a *app, f *apiv1.FlowFilter) fetch[*apiv1.Flow] {
	return listOf(a, apiv1.NewFlowsClient, apiv1.FlowsClient.List, f)
}

func newFlowList(a *app) *cobra.Command {
	req := &apiv1.FlowFilter{}
	cmd := newList(a, "List flows", `  corelane flow list --port vm1
  corelane flow list --vrf red --prefix 10.1.0.0/16 --protocol tcp --state established
  corelane flow list --action deny --watch`, flowListing, flowsOf(a, req))
	a.bind(cmd, req, append(flowFlags(req), fieldFlag{flag: "limit", help: "most flows to show"}))
	return cmd
}

// newFlowWatch is the list with --watch.
func newFlowWatch(a *app) *cobra.Command {
	cmd := newFlowList(a)
	cmd.Use, cmd.Short = "watch", "Watch flows: list them every second, with counters as rates"
	cmd.Example = "  corelane flow watch --port vm1 --limit 20\n  corelane flow watch --vrf red --watch=5s"
	list := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("watch") {
			a.interval = time.Second
		}
		return list(cmd, args)
	}
	return cmd
}

const flowTopMax = 10000

var flowCapacity = protoflag.Field(&apiv1.FlowResizeRequest{}, "capacity")

func newFlowShow(a *app) *cobra.Command {
	return newShow(a, "ID", "Show a flow", "  corelane flow show 17", fixed(),
		func(arg string) (fetch[*apiv1.Flow], error) {
			n, err := parseID("flow", arg, 1, uint32(limits.Max(flowCapacity)))
			return where(flowsOf(a, &apiv1.FlowFilter{}), func(f *apiv1.Flow) bool { return f.Id == n }), err
		})
}

// newFlowTop shows the flows with the most traffic. It keeps only the flows that it shows in memory.
func newFlowTop(a *app) *cobra.Command {
	req := &apiv1.FlowFilter{}
	var n int
	var byPackets bool
	cmd := a.watchable(verb("top", "Show the flows with the most traffic",
		"  corelane flow top --port vm1\n  corelane flow top --packets --count 50 --watch",
		func(ctx context.Context, _ []string) error {
			if n < 1 || n > flowTopMax {
				return input.Errorf("--count", fmt.Sprintf("1 to %d", flowTopMax), "'%d' is out of range", n)
			}
			return flowListing.rows(ctx, a, largest(flowsOf(a, req), n, func(f *apiv1.Flow) uint64 {
				if byPackets {
					return f.GetForward().GetPackets() + f.GetReverse().GetPackets()
				}
				return f.GetForward().GetBytes() + f.GetReverse().GetBytes()
			}))
		}))
	cmd.Flags().IntVar(&n, "count", 20, fmt.Sprintf("how many, 1 to %d", flowTopMax))
	cmd.Flags().BoolVar(&byPackets, "packets", false, "by packets instead of bytes")
	a.bind(cmd, req, flowFlags(req))
	return cmd
}

func largest(f fetch[*apiv1.Flow], n int, size func(*apiv1.Flow) uint64) fetch[*apiv1.Flow] {
	return func(ctx context.Context, yield func(*apiv1.Flow) error) error {
		var top []*apiv1.Flow
		err := f(ctx, func(flow *apiv1.Flow) error {
			if len(top) == n && size(flow) <= size(top[n-1]) {
				return nil
			}
			at, _ := slices.BinarySearchFunc(top, size(flow), func(have *apiv1.Flow, want uint64) int {
				if size(have) >= want {
					return -1
				}
				return 1
			})
			top = slices.Insert(top, at, flow)
			if len(top) > n {
				top = top[:n]
			}
			return nil
		})
		for _, flow := range top {
			if err == nil {
				err = yield(flow)
			}
		}
		return err
	}
}

func newFlowCount(a *app) *cobra.Command {
	req := &apiv1.FlowFilter{}
	cmd := a.watchable(verb("count", "Count flows, and show how full the table is", "  corelane flow count\n  "+
		"corelane flow count --port vm1 --state new",
		func(ctx context.Context, _ []string) error {
			return details(ctx, a, func(ctx context.Context) (*apiv1.FlowCount, error) {
				return call(ctx, a, apiv1.NewFlowsClient, apiv1.FlowsClient.Count, req)
			})
		}))
	a.bind(cmd, req, flowFlags(req))
	return cmd
}

func newFlowFlush(a *app) *cobra.Command {
	req := &apiv1.FlowFilter{}
	var everything bool
	var cmd *cobra.Command
	cmd = verb("flush", "End flows: their next packets are decided anew",
		"  corelane flow flush --port vm1\n  corelane flow flush --all", func(ctx context.Context, _ []string) error {
			given := false
			for _, f := range flowFlags(req) {
				given = given || cmd.Flags().Changed(f.flag)
			}
			if given == everything {
				return input.Errorf("--all", "--all, or flags such as --port",
					"give either --all or flags that select flows")
			}
			return details(ctx, a, func(ctx context.Context) (*apiv1.FlowCount, error) {
				return call(ctx, a, apiv1.NewFlowsClient, apiv1.FlowsClient.Flush, req)
			})
		})
	cmd.Flags().BoolVar(&everything, "all", false, "all flows")
	a.bind(cmd, req, flowFlags(req))
	return cmd
}

func newFlowResize(a *app) *cobra.Command {
	req := &apiv1.FlowResizeRequest{}
	cmd := verb("resize FLOWS", "Make room for more flows while packets flow", "  corelane flow resize 4000000",
		func(ctx context.Context, args []string) (err error) {
			if req.Capacity, err = protoflag.ParseField("flows", args[0], req, "capacity"); err != nil {
				return err
			}
			return details(ctx, a, func(ctx context.Context) (*apiv1.FlowCount, error) {
				return call(ctx, a, apiv1.NewFlowsClient, apiv1.FlowsClient.Resize, req)
			})
		})
	cmd.Long = "Make room for more flows while packets flow: " + limits.Numbers(flowCapacity) +
		", and at least as many as now."
	return cmd
}

func newFlowExplain(a *app) *cobra.Command {
	req := &apiv1.FlowExplainRequest{}
	cmd := verb("explain PROTOCOL SOURCE DESTINATION", "Say what would happen to a packet, and why",
		`  corelane flow explain tcp 10.1.0.11:40000 10.1.0.12:443 --port vm1
  corelane flow explain udp [fd00::11]:53 [fd00::12]:53 --vrf red
  corelane flow explain icmp 10.1.0.11 10.1.0.12 --port vm1
  corelane flow explain tcp 10.1.0.11:40000 10.1.0.12:443 --bridge lan --destination-mac 02:00:00:00:00:01`,
		func(ctx context.Context, args []string) error {
			var err error
			req.Protocol = args[0]
			if req.Source, req.SourcePort, err = parseFlowEnd("source", args[1]); err != nil {
				return err
			}
			if req.Destination, req.DestinationPort, err = parseFlowEnd("destination", args[2]); err != nil {
				return err
			}
			return details(ctx, a, func(ctx context.Context) (*apiv1.FlowExplanation, error) {
				return call(ctx, a, apiv1.NewFlowsClient, apiv1.FlowsClient.Explain, req)
			})
		})
	a.bind(cmd, req, []fieldFlag{
		{flag: "port", help: "tenant port that the packet comes in by", names: portNames},
		{flag: "vrf", help: "VRF, for a packet that comes from a tunnel", names: vrfNames},
		{flag: "bridge", help: "bridge domain, for a frame that comes from a tunnel", names: bridgeNames},
		{flag: "destination-mac", help: "MAC address that the frame is for; by default, that of the guest or station " +
			"with the destination address"},
	})
	return cmd
}

// parseFlowEnd takes "10.0.0.1", "10.0.0.1:80", "fd00::1" and "[fd00::1]:80".
func parseFlowEnd(argument, text string) (string, uint32, error) {
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return ap.Addr().String(), uint32(ap.Port()), nil
	}
	addr, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		return "", 0, input.Errorf(argument, validEndpoint, "'%s' is not an address, with or without a port", text)
	}
	return addr.String(), 0, nil
}
