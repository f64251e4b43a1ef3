// SPDX-License-Identifier: Apache-2.0
package fleet

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
	"github.com/corelane/corelane/internal/vpn"
)

// WhyNot says for each stage from the intent to the data plane whether a prefix or a MAC address gets past it.
func (s service) WhyNot(ctx context.Context, in *agentv1.WhyNotRequest) (*agentv1.WhyNotReply, error) {
	switch {
	case in.Mac != "" && in.Bridge == "", in.Prefix != "" && in.Vrf == "", (in.Mac == "") == (in.Prefix == ""):
		return nil, status.Error(codes.InvalidArgument, "either a prefix with a VRF, or a MAC address with a bridge")
	case in.Mac != "":
		m, err := net.ParseMAC(in.Mac)
		if err != nil || len(m) != len(vpn.Mac{}) {
			return nil, status.Errorf(codes.InvalidArgument, "mac '%s' is not a MAC address", in.Mac)
		}
		s.f.enter()
		defer s.f.mu.Unlock()
		return &agentv1.WhyNotReply{Stages: s.f.whyNotMac(in.Bridge, vpn.Mac(m))}, nil
	}
	p, err := netip.ParsePrefix(in.Prefix)
	if a, aerr := netip.ParseAddr(in.Prefix); aerr == nil {
		p, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "prefix '%s' is neither an address nor a prefix", in.Prefix)
	}
	return &agentv1.WhyNotReply{Stages: s.f.whyNotPrefix(ctx, in.Vrf, p.Masked())}, nil
}

type stages []*agentv1.Stage

func (l *stages) add(name string, ok bool, fix, evidence string, args ...any) bool {
	if ok {
		fix = ""
	}
	*l = append(*l, &agentv1.Stage{Name: name, Ok: ok, Fix: fix, Evidence: fmt.Sprintf(evidence, args...)})
	return ok
}

func (f *Fleet) whyNot(vrf string, p netip.Prefix) stages {
	var l stages
	var instance *agentv1.InstanceStatus
	for _, i := range f.engine.Instances() {
		if i.Config.Vrf == vrf {
			instance = i
		}
	}
	if instance == nil {
		l.add("intent", false, "add an instance of this VRF to "+f.Intent, "no instance of VRF '%s'", vrf)
		return l
	}
	if !l.add("intent", instance.Error == "", "change the instance as the text says",
		"instance %s, RD %s, imports %v%s", vrf, instance.Rd, instance.Config.ImportTargets, after(instance.Error)) {
		return l
	}
	for _, a := range f.engine.Attachments() {
		if a.Config.Port.Vrf == vrf && vpn.HasGuest(a.Config.Port, p) {
			f.whyNotLocal(&l, a)
			return l
		}
	}
	f.addSession(&l)
	var judged []vpn.Judged
	f.engine.Judge(vrf, p, func(j vpn.Judged) { judged = append(judged, j) })
	if !l.add("received", len(judged) > 0, "run this command on the host that has the address, which must announce it",
		"%d paths to %v", len(judged), p) {
		return l
	}
	used := false
	for _, j := range judged {
		used = used || j.Verdict == vpn.Used
		number := "label"
		if j.Path.Kind == vpn.KindPrefix {
			number = "VNI"
		}
		l.add(string(j.Verdict), j.Verdict == vpn.Used, fixes[j.Verdict], "path of %v, %s %d, RD %v, from %v%s",
			j.Path.Nexthop, number, j.Path.Label, j.Path.RD, j.Path.Peer, after(j.Reason))
	}
	if !used {
		return l
	}
	why := f.refused["route "+vrf+" "+p.String()]
	f.addAccepted(&l, why, fmt.Sprintf("'corelane route lookup %v --vrf %s' shows the tunnel", p.Addr(), vrf))
	return l
}

// addSession adds the stage of the sessions with peers.
func (f *Fleet) addSession(l *stages) {
	up := 0
	for _, x := range f.intent.Peers {
		if st := f.sessions[netip.MustParseAddr(x.Address)]; st != nil && st.state == established {
			up++
		}
	}
	l.add("session", up > 0, "'corelane bgp list' lists the peers and their states",
		"%d of %d sessions are established", up, len(f.intent.Peers))
}

const established = "established"

var fixes = map[vpn.Verdict]string{
	vpn.NotImported: "add one of its targets to import_targets of the instance, or to export_targets on the " +
		"other host",
	vpn.NoEncap:      "set default_encap of the peer, or encaps of bgp",
	vpn.OtherKind:    "give the instance a vni on both hosts, or on none",
	vpn.BadRouterMac: "let the other host announce its router MAC: the model without an interface of RFC 9136",
	vpn.Overlay:      "let the other host announce its prefixes without a gateway address and Ethernet segment",
	vpn.Unreachable:  "corelane route add PREFIX --vrf fabric --nexthop ID",
}

func textOf(refusal, sync string) string {
	switch {
	case refusal != "":
		return "the data plane refused it: " + refusal
	case sync != "":
		return "the last change of the data plane failed: " + sync
	}
	return "the data plane has it"
}

func (f *Fleet) whyNotLocal(l *stages, a *agentv1.AttachmentStatus) {
	name := a.Config.Port.Name
	why := f.refused["port "+name]
	if !l.add("programmed", a.Programmed, "change the attachment as the evidence says", "port %s: %s", name,
		textOf(why, f.sync.Error)) {
		return
	}
	l.add("exported", a.Announced, "set state: ATTACHMENT_ACTIVE, and export_targets of the instance",
		"attachment %s has state %v", name, a.Config.State)
}
