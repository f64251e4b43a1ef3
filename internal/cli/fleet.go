// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
	"github.com/corelane/corelane/internal/input"
)

// Nouns of the fleet are the agent's: their commands talk to its socket.

// agent is the app for calls to the agent.
func (a *app) agent() *app {
	to := *a
	to.socket, to.client = a.agentSocket, nil
	to.dial = func(ctx context.Context, socket string) (*api.Client, error) {
		return api.Dial(ctx, socket, "corelane "+Version)
	}
	return &to
}

func instances(a *app, vrf string) fetch[*agentv1.InstanceStatus] {
	return func(ctx context.Context, each func(*agentv1.InstanceStatus) error) error {
		return where(listOf(a.agent(), agentv1.NewFleetClient, agentv1.FleetClient.ListInstances, &apiv1.Empty{}),
			func(i *agentv1.InstanceStatus) bool { return vrf == "" || i.Config.Vrf == vrf })(ctx, each)
	}
}

func attachments(a *app, port string) fetch[*agentv1.AttachmentStatus] {
	return func(ctx context.Context, each func(*agentv1.AttachmentStatus) error) error {
		return where(listOf(a.agent(), agentv1.NewFleetClient, agentv1.FleetClient.ListAttachments, &apiv1.Empty{}),
			func(i *agentv1.AttachmentStatus) bool { return port == "" || i.Config.Port.Name == port })(ctx, each)
	}
}

var (
	instanceVrf    = func(i *agentv1.InstanceStatus) string { return i.Config.Vrf }
	attachmentPort = func(i *agentv1.AttachmentStatus) string { return i.Config.Port.Name }
	peerAddress    = func(p *agentv1.PeerStatus) string { return p.Config.Address }
)

var instanceListing = listing[*agentv1.InstanceStatus]{key: instanceVrf, columns: columns[*agentv1.InstanceStatus]{
	text("vrf", instanceVrf),
	text("rd", (*agentv1.InstanceStatus).GetRd),
	number("label", (*agentv1.InstanceStatus).GetLabel),
	number("vni", func(i *agentv1.InstanceStatus) uint32 { return i.Config.Vni }),
	text("import", func(i *agentv1.InstanceStatus) string { return strings.Join(i.Config.ImportTargets, " ") }),
	text("export", func(i *agentv1.InstanceStatus) string { return strings.Join(i.Config.ExportTargets, " ") }),
	number("announced", (*agentv1.InstanceStatus).GetAnnounced),
	number("installed", (*agentv1.InstanceStatus).GetInstalled),
	text("error", (*agentv1.InstanceStatus).GetError),
}}

func newInstanceCmd(a *app) *cobra.Command {
	return noun("instance", "VRFs whose routes are shared with other hosts; the agent's intent directory has them",
		newList(a, "List instances", "  corelane instance list", instanceListing, instances(a, "")),
		newShow(a, "VRF", "Show an instance", "  corelane instance show red",
			named(func(a *app) fetch[*agentv1.InstanceStatus] { return instances(a, "") }, instanceVrf),
			func(vrf string) (fetch[*agentv1.InstanceStatus], error) { return instances(a, vrf), nil }))
}

func segments(a *app, bridge string) fetch[*agentv1.SegmentStatus] {
	return func(ctx context.Context, each func(*agentv1.SegmentStatus) error) error {
		return where(listOf(a.agent(), agentv1.NewFleetClient, agentv1.FleetClient.ListSegments, &apiv1.Empty{}),
			func(g *agentv1.SegmentStatus) bool { return bridge == "" || g.Config.Bridge == bridge })(ctx, each)
	}
}

var segmentBridge = func(g *agentv1.SegmentStatus) string { return g.Config.Bridge }

var segmentListing = listing[*agentv1.SegmentStatus]{key: segmentBridge, columns: columns[*agentv1.SegmentStatus]{
	text("bridge", segmentBridge),
	number("vni", func(g *agentv1.SegmentStatus) uint32 { return g.Config.Vni }),
	text("rd", (*agentv1.SegmentStatus).GetRd),
	text("import", func(g *agentv1.SegmentStatus) string { return strings.Join(g.Config.ImportTargets, " ") }),
	text("export", func(g *agentv1.SegmentStatus) string { return strings.Join(g.Config.ExportTargets, " ") }),
	number("announced", (*agentv1.SegmentStatus).GetAnnounced),
	number("remote macs", (*agentv1.SegmentStatus).GetRemoteMacs),
	number("learnt macs", (*agentv1.SegmentStatus).GetLearntMacs),
	text("duplicates", func(g *agentv1.SegmentStatus) string { return strings.Join(g.DuplicateMacs, " ") }),
	number("flood ends", (*agentv1.SegmentStatus).GetFloodEnds),
	text("error", (*agentv1.SegmentStatus).GetError),
}}

func newSegmentCmd(a *app) *cobra.Command {
	return noun("segment", "Bridges that hosts share over EVPN; the agent's intent directory has them",
		newList(a, "List segments", "  corelane segment list", segmentListing, segments(a, "")),
		newShow(a, "BRIDGE", "Show a segment", "  corelane segment show lan",
			named(func(a *app) fetch[*agentv1.SegmentStatus] { return segments(a, "") }, segmentBridge),
			func(bridge string) (fetch[*agentv1.SegmentStatus], error) { return segments(a, bridge), nil }))
}

var attachmentListing = listing[*agentv1.AttachmentStatus]{key: attachmentPort, columns: attachmentColumns}

var attachmentColumns = columns[*agentv1.AttachmentStatus]{
	text("port", attachmentPort),
	text("vrf", func(i *agentv1.AttachmentStatus) string { return i.Config.Port.Vrf }),
	text("bridge", func(i *agentv1.AttachmentStatus) string { return i.Config.Port.Bridge }),
	text("mac", func(i *agentv1.AttachmentStatus) string { return i.Config.Port.GuestMac }),
	text("addresses", func(i *agentv1.AttachmentStatus) string {
		return strings.Join(slices.Concat(i.Config.Port.GuestAddresses, i.Config.Addresses), " ")
	}),
	text("state", func(i *agentv1.AttachmentStatus) string {
		return strings.ToLower(strings.TrimPrefix(i.Config.State.String(), "ATTACHMENT_"))
	}),
	text("programmed", func(i *agentv1.AttachmentStatus) string { return yesNo(i.Programmed) }),
	text("announced", func(i *agentv1.AttachmentStatus) string { return yesNo(i.Announced) }),
	text("error", (*agentv1.AttachmentStatus).GetError),
}

func newAttachmentCmd(a *app) *cobra.Command {
	return noun("attachment", "Tenants' ports that the agent adds and announces; its intent directory has them",
		newList(a, "List attachments", "  corelane attachment list", attachmentListing, attachments(a, "")),
		newShow(a, "PORT", "Show an attachment", "  corelane attachment show vm1",
			named(func(a *app) fetch[*agentv1.AttachmentStatus] { return attachments(a, "") }, attachmentPort),
			func(port string) (fetch[*agentv1.AttachmentStatus], error) { return attachments(a, port), nil }))
}

func (a *app) bgpStatus(ctx context.Context) (*agentv1.BgpStatus, error) {
	return call(ctx, a.agent(), agentv1.NewFleetClient, agentv1.FleetClient.GetBgp, &apiv1.Empty{})
}

var peerListing = listing[*agentv1.PeerStatus]{key: peerAddress, columns: columns[*agentv1.PeerStatus]{
	text("peer", peerAddress),
	text("state", (*agentv1.PeerStatus).GetState),
	number("paths", (*agentv1.PeerStatus).GetReceived),
	number("stale", (*agentv1.PeerStatus).GetStale),
	text("complete", func(p *agentv1.PeerStatus) string { return yesNo(p.EndOfRib) }),
	text("last error", (*agentv1.PeerStatus).GetError),
}}

func newBgpCmd(a *app) *cobra.Command {
	peers := func(ctx context.Context, each func(*agentv1.PeerStatus) error) error {
		st, err := a.bgpStatus(ctx)
		for _, p := range st.GetPeers() {
			if err == nil {
				err = each(p)
			}
		}
		return err
	}
	show := a.watchable(verb("show", "Show the agent's settings, peers, the objects of its intent, and whether "+
		"the data plane is in step", "  corelane bgp show -o json",
		func(ctx context.Context, _ []string) error { return details(ctx, a, a.bgpStatus) }))
	return noun("bgp", "BGP sessions of the agent with reflectors and gateways",
		newList(a, "List the peers", "  corelane bgp list", peerListing, peers), show, newPathsCmd(a))
}

var pathListing = listing[*agentv1.Path]{
	key: func(p *agentv1.Path) string {
		return fmt.Sprint(p.Peer, p.Rd, p.Kind, p.Mac, p.Prefix, p.Vrf, p.Bridge)
	},
	columns: columns[*agentv1.Path]{
		text("kind", (*agentv1.Path).GetKind),
		text("mac", func(p *agentv1.Path) string { return cmp.Or(p.Mac, p.RouterMac) }),
		text("prefix", (*agentv1.Path).GetPrefix),
		text("peer", (*agentv1.Path).GetPeer),
		text("rd", (*agentv1.Path).GetRd),
		text("next hop", (*agentv1.Path).GetNexthop),
		number("label", (*agentv1.Path).GetLabel),
		number("vni", (*agentv1.Path).GetVni),
		number("sequence", (*agentv1.Path).GetSequence),
		text("vrf", (*agentv1.Path).GetVrf),
		text("bridge", (*agentv1.Path).GetBridge),
		text("stale", func(p *agentv1.Path) string { return yesNo(p.Stale) }),
		text("verdict", (*agentv1.Path).GetVerdict),
		text("reason", (*agentv1.Path).GetReason),
	},
}

func newPathsCmd(a *app) *cobra.Command {
	req := &agentv1.PathListRequest{}
	cmd := newList(a, "List the paths that are announced and received, and the verdict on each",
		"  corelane bgp paths --vrf red", pathListing,
		func(ctx context.Context, each func(*agentv1.Path) error) error {
			return listOf(a.agent(), agentv1.NewFleetClient, agentv1.FleetClient.ListPaths, req)(ctx, each)
		})
	cmd.Use = "paths"
	a.bind(cmd, req, []fieldFlag{
		{flag: "vrf", help: "only those judged for this VRF"},
		{flag: "prefix", help: "only those of this prefix"},
		{flag: "bridge", help: "only those of this segment"},
	})
	return cmd
}

var stageListing = listing[*agentv1.Stage]{key: (*agentv1.Stage).GetName, columns: columns[*agentv1.Stage]{
	text("stage", (*agentv1.Stage).GetName),
	text("ok", func(s *agentv1.Stage) string { return yesNo(s.Ok) }),
	text("evidence", (*agentv1.Stage).GetEvidence),
	text("fix", (*agentv1.Stage).GetFix),
}}

func newWhyNotCmd(a *app) *cobra.Command {
	req := &agentv1.WhyNotRequest{}
	cmd := verb("why-not PREFIX|MAC", "Say stage by stage why a prefix or a MAC address of the fleet is reached or not",
		"  corelane why-not 10.1.2.3 --vrf red\n  corelane why-not 02:00:00:00:00:01 --bridge lan",
		func(ctx context.Context, args []string) error {
			if err := whyNotSubject(req, args[0]); err != nil {
				return err
			}
			reply, err := call(ctx, a.agent(), agentv1.NewFleetClient, agentv1.FleetClient.WhyNot, req)
			if err != nil {
				return err
			}
			return stageListing.rows(ctx, a, func(_ context.Context, each func(*agentv1.Stage) error) error {
				for _, s := range reply.Stages {
					if err := each(s); err != nil {
						return err
					}
				}
				return nil
			})
		})
	a.bind(cmd, req, []fieldFlag{
		{flag: "vrf", help: "VRF of the prefix"},
		{flag: "bridge", help: "bridge of the MAC address"},
	})
	return cmd
}

// whyNotSubject puts a prefix or a MAC address into the request, and checks that the flag fits.
func whyNotSubject(req *agentv1.WhyNotRequest, subject string) error {
	m, err := net.ParseMAC(subject)
	mac := err == nil && len(m) == 6
	switch {
	case mac && req.Bridge == "":
		return input.Errorf("--bridge", "bridge of the MAC address", "missing")
	case mac && req.Vrf != "":
		return input.Errorf("--vrf", "", "a MAC address is one of a bridge")
	case !mac && req.Vrf == "":
		return input.Errorf("--vrf", "VRF of the prefix", "missing")
	case !mac && req.Bridge != "":
		return input.Errorf("--bridge", "", "a prefix is one of a VRF")
	case mac:
		req.Mac = m.String()
	default:
		req.Prefix = subject
	}
	return nil
}

const agentSocketHelp = "socket of corelane-agent; also CORELANE_AGENT_SOCKET in the environment"
