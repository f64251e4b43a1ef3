// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
	"github.com/corelane/corelane/internal/verify"
)

var portListing = listing[*apiv1.Port]{
	key: (*apiv1.Port).GetName,
	columns: []column[*apiv1.Port]{
		text("name", (*apiv1.Port).GetName),
		text("role", func(p *apiv1.Port) string { return limits.EnumText(p.Role) }),
		text("device", portDevice),
		text("state", portState),
		text("in", portPlace),
		text("addresses", func(p *apiv1.Port) string {
			return strings.Join(slices.Concat(p.Addresses, p.Gateways, p.GuestAddresses), ",")
		}),
		counter("rx packets", func(p *apiv1.Port) uint64 { return p.GetState().GetCounters().GetRxPackets() }),
		counter("rx bytes", func(p *apiv1.Port) uint64 { return p.GetState().GetCounters().GetRxBytes() }),
		counter("tx packets", func(p *apiv1.Port) uint64 { return p.GetState().GetCounters().GetTxPackets() }),
		counter("tx bytes", func(p *apiv1.Port) uint64 { return p.GetState().GetCounters().GetTxBytes() }),
		counter("missed", func(p *apiv1.Port) uint64 { return p.GetState().GetCounters().GetRxMissed() }),
		counter("dropped", func(p *apiv1.Port) uint64 { return p.GetState().GetCounters().GetDropped() }),
	},
}

// portFlags are the flags that add and set share: settings that may change while the port exists.
var portFlags = []fieldFlag{
	{flag: "mtu", help: "largest IP packet"},
	{flag: "disabled", help: "administratively down: what it receives and what is sent to it is dropped"},
	{flag: "vlan", help: "fabric: 802.1Q tag of all underlay traffic, 0 = untagged; subport (only with port add): " +
		"its 802.1Q tag"},
	{flag: "address", field: "addresses", help: "fabric: own addresses with prefix length, 192.0.2.1/24"},
	{flag: "vrf", help: "tenant: VRF that routes the guest's packets", names: vrfNames},
	{flag: "bridge",
		help: "tenant: bridge domain; with --vrf, frames to the gateway's MAC are routed", names: bridgeNames},
	{flag: "gateway", field: "gateways", help: "tenant: the virtual gateway's addresses with prefix length, " +
		"10.1.0.1/24"},
	{flag: "guest-mac", help: "tenant: the guest's MAC (default: resolved with ARP and ND)"},
	{flag: "guest-address", field: "guest_addresses", help: "tenant: the guest's addresses or prefixes, " +
		"10.1.0.11/32: each becomes a route of the VRF, if the port has one"},
	{flag: "proxy-arp", help: "tenant: the gateway answers for every address that the VRF has a route for"},
	{flag: "mss-clamp", help: "tenant: upper bound of TCP's MSS option, 0 = none, 1 = computed from the tunnel's MTU"},
	{flag: "unresolved-rate", help: "tenant: packets/s that the guest may send to neighbours whose MAC is unknown, " +
		"0 = the most"},
	{flag: "no-anycast-gateway", help: "tenant: do not answer ICMP echo to the gateway"},
	{flag: "stateful", help: "tenant: keep flows, so that rules, translation and quotas apply"},
	{flag: "flow-limit", help: "stateful: most flows at a time, 0 = no limit"},
	{flag: "source-check",
		help: "tenant: check of the guest's source addresses: none, reverse_path (their route leads to this port), " +
			"strict (only guest_mac and guest_addresses); default: strict if both are given, else none"},
	{flag: "allow-router", help: "tenant: the guest may be a router, with source check strict"},
	{flag: "allow-dhcp-server", help: "tenant: the guest may be a DHCP server or relay, with source check strict"},
	{flag: "flow-rate", help: "stateful: most new flows per second, 0 = no limit"},
	{flag: "egress-meter", help: "stateful: meter that limits what the guest sends", names: meterNames},
	{flag: "ingress-meter", help: "stateful: meter that limits what the guest receives", names: meterNames},
	{flag: "mirror", help: "stateful: mirror that gets copies of what the guest sends and receives",
		names: mirrorNames},
	{flag: "egress-rules", help: "tenant: rule list that decides what the guest may send (default: everything)",
		names: ruleListNames},
	{flag: "dhcp4", help: "tenant: answer the guest's DHCPv4 with its address, the gateway, the MTU and what follows"},
	{flag: "dhcp6", help: "tenant: answer the guest's DHCPv6 in the same way"},
	{flag: "router-advertisements", help: "tenant: advertise the router to the guest, with MTU, prefixes, name " +
		"servers and IPv6 routes"},
	{flag: "slaac", help: "tenant: the guest makes its own IPv6 addresses in the prefixes that are advertised"},
	{flag: "boot-address", field: "boot_addresses", help: "tenant: what the guest is told to be its address " +
		"(default: the first of --guest-address, in the gateway's subnet)"},
	{flag: "boot-router", field: "boot_routers", help: "tenant: the guest's default router (default: the gateway)"},
	{flag: "boot-route", field: "boot_routes", help: "tenant: more routes of the guest, '10.9.0.0/16 via 10.1.0.5'"},
	{flag: "dns-server", field: "dns_servers", help: "tenant: name servers that the guest is told"},
	{flag: "dns-domain", help: "tenant: domain in which the guest looks for short names"},
	{flag: "host-name", help: "tenant: the guest's own name"},
	{flag: "ntp-server", field: "ntp_servers", help: "tenant: time servers that the guest is told"},
	{flag: "lease-seconds", help: "tenant: how long the guest may use its address without renewal, 0 = 86,400"},
	{flag: "boot-file", help: "tenant: name or URL of what the guest's firmware boots"},
	{flag: "boot-server", help: "tenant: IPv4 address of the server that has the boot file"},
	{flag: "mode",
		help: "which worker finishes a packet: run_to_completion (the one that polled it), hybrid (one of " +
			"--spread-workers, by a hash), auto (hybrid only under load)"},
	{flag: "ring-full",
		help: "hybrid: what happens when the ring to a packet's worker is full: drop it, local (the worker that " +
			"polled it finishes it), wait (stop polling)"},
	{flag: "spread-workers", help: "hybrid: workers that share the packets (default: all forwarding workers equally)"},
	{flag: "polled-by",
		help: "worker that polls a queue, as long as it exists (default: the one with the fewest queues)"},
	{flag: "ingress-rules", help: "tenant: rule list that decides what may be sent to the guest (default: everything)",
		names: ruleListNames},
}

var portAddFlags = []fieldFlag{
	{flag: "queues", help: "pairs of receive and transmit queues (default 1; fabric: one per worker where the " +
		"device can)"},
	{flag: "mac", help: "own MAC (default: the device's; tenant: that of the virtual gateway)"},
	{flag: "offload", help: "tenant, with tap or vhost: what the guest may leave to the router: all (large segments " +
		"and checksums), checksum, none"},
	{flag: "fabric", help: "host: the fabric port whose MAC, MTU and VLAN the kernel's interface shares",
		names: portNames},
}

func newPortCmd(a *app) *cobra.Command {
	return noun("port", "Ports: where packets enter and leave",
		newPortList(a), newPortShow(a), newPortAdd(a), newPortSet(a), newPortAssign(a),
		newDel(a, "PORT", "Remove ports", "  corelane port del vm1", portNames,
			func(ctx context.Context, name string) error {
				return a.done(call(ctx, a, apiv1.NewPortsClient, apiv1.PortsClient.Del,
					&apiv1.PortDelRequest{Name: name}))
			}))
}

func newPortList(a *app) *cobra.Command {
	req := &apiv1.PortListRequest{}
	cmd := newList(a, "List ports", "  corelane port list --role tenant\n  corelane port list --watch=2s",
		portListing, listOf(a, apiv1.NewPortsClient, apiv1.PortsClient.List, req))
	a.bind(cmd, req, []fieldFlag{{flag: "role", help: "only ports of this role"}})
	return cmd
}

func newPortShow(a *app) *cobra.Command {
	cmd := newShow(a, "PORT", "Show a port with its queues and counters", `  corelane port show vm1 --watch
  corelane port show fab0 --by-worker --watch=2`, portNames,
		func(name string) (fetch[*apiv1.Port], error) { return portsNamed(a, name), nil })
	byWorker, whole := false, cmd.RunE
	cmd.Flags().BoolVar(&byWorker, "by-worker", false, "show what each worker received, sent and dropped on the port")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !byWorker {
			return whole(cmd, args)
		}
		return portWorkerListing.rows(cmd.Context(), a, listOf(a, apiv1.NewWorkersClient, apiv1.WorkersClient.Ports,
			&apiv1.WorkerPortsRequest{Port: args[0]}))
	}
	return cmd
}

var portWorkerListing = listing[*apiv1.WorkerPort]{
	key: func(p *apiv1.WorkerPort) string { return fmt.Sprintf("%s %d", p.Port, p.Worker) },
	columns: []column[*apiv1.WorkerPort]{
		number("worker", (*apiv1.WorkerPort).GetWorker),
		number("cpu", (*apiv1.WorkerPort).GetCpu),
		counter("rx packets", (*apiv1.WorkerPort).GetRxPackets),
		counter("rx bytes", (*apiv1.WorkerPort).GetRxBytes),
		counter("tx packets", (*apiv1.WorkerPort).GetTxPackets),
		counter("tx bytes", (*apiv1.WorkerPort).GetTxBytes),
		counter("dropped", (*apiv1.WorkerPort).GetDropped),
	},
}

func newPortSet(a *app) *cobra.Command {
	port := &apiv1.Port{}
	var cmd *cobra.Command
	cmd = verb("set PORT", "Change a port", `  corelane port set vm1 --mtu 1400
  corelane port set fab0 --address 192.0.2.1/24,2001:db8::1/64
  corelane port set vm1 --disabled=false --guest-address ""`,
		func(ctx context.Context, args []string) error {
			fields, err := needFields(cmd, portFlags)
			if err != nil {
				return err
			}
			port.Name = args[0]
			return a.portDone(call(ctx, a, apiv1.NewPortsClient, apiv1.PortsClient.Set,
				&apiv1.PortSetRequest{Port: port, Fields: fields}))
		})
	a.bind(cmd, port, portFlags)
	cmd.ValidArgsFunction = a.complete(portNames)
	return cmd
}

// portDone ends a command that added or changed a port. It warns of rules that its guest can pass.
func (a *app) portDone(p *apiv1.Port, err error) error {
	if err == nil {
		a.warnUnchecked(p)
	}
	return a.done(p, err)
}

func (a *app) warnUnchecked(p *apiv1.Port) {
	if text := verify.PassableRules(p); text != "" {
		fmt.Fprintf(a.stderr, "warning: port %s %s; %s\n", p.Name, text, verify.SourceCheckHint)
	}
}

func newPortAssign(a *app) *cobra.Command {
	req := &apiv1.PortAssignRequest{}
	flags := []fieldFlag{
		{flag: "queue", help: "receive queue, 0 is the first"},
		{flag: "worker", help: "worker that is to poll it", names: workerNames},
	}
	cmd := verb("assign PORT", "Let a worker poll a queue of a port",
		"  corelane port assign fab0 --queue 1 --worker 2",
		func(ctx context.Context, args []string) error {
			req.Name = args[0]
			return a.done(call(ctx, a, apiv1.NewPortsClient, apiv1.PortsClient.Assign, req))
		})
	a.bind(cmd, req, flags)
	for _, f := range flags {
		required(cmd, f.flag)
	}
	cmd.ValidArgsFunction = a.complete(portNames)
	return cmd
}

func portDevice(p *apiv1.Port) string {
	switch d := p.Device.(type) {
	case *apiv1.Port_Dpdk:
		return "dpdk " + d.Dpdk.Devargs
	case *apiv1.Port_Tap:
		return strings.TrimSpace("tap " + d.Tap.Ifname + optional(" in ", d.Tap.Netns))
	case *apiv1.Port_Memif:
		return fmt.Sprintf("memif %s %d %s", d.Memif.Socket, d.Memif.Id, limits.EnumText(d.Memif.Role))
	case *apiv1.Port_Vhost:
		return "vhost " + d.Vhost.Socket + map[bool]string{true: " client"}[d.Vhost.Client]
	case *apiv1.Port_Subport:
		tags := strconv.Itoa(int(d.Subport.Vlan))
		if d.Subport.OuterVlan != 0 {
			tags = fmt.Sprintf("%d.%s", d.Subport.OuterVlan, tags)
		}
		return "vlan " + tags + " of " + d.Subport.Parent
	}
	return ""
}

// portState is the first reason why packets cannot pass, else "up".
func portState(p *apiv1.Port) string {
	switch s := p.GetState(); {
	case p.Disabled:
		return "disabled"
	case s == nil:
		return ""
	case (p.GetMemif() != nil || p.GetVhost() != nil) && !s.PeerConnected:
		return "no peer"
	case !s.LinkUp:
		return "no link"
	}
	return "up"
}

func portPlace(p *apiv1.Port) string {
	var in []string
	if p.Vlan != 0 {
		in = append(in, "vlan "+strconv.Itoa(int(p.Vlan)))
	}
	if p.Vrf != "" {
		in = append(in, "vrf "+p.Vrf)
	}
	if p.Fabric != "" {
		in = append(in, "fabric "+p.Fabric)
	}
	if p.Bridge != "" {
		in = append(in, "bridge "+p.Bridge)
	}
	return strings.Join(in, ", ")
}

func optional(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

func portsNamed(a *app, name string) fetch[*apiv1.Port] {
	return listOf(a, apiv1.NewPortsClient, apiv1.PortsClient.List, &apiv1.PortListRequest{Name: name})
}

var portNames = named(func(a *app) fetch[*apiv1.Port] { return portsNamed(a, "") }, func(p *apiv1.Port) string {
	return p.Name + "\t" + limits.EnumText(p.Role) + " " + portDevice(p)
})
