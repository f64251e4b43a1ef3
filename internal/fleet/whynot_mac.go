// SPDX-License-Identifier: Apache-2.0
package fleet

import (
	"fmt"
	"net"
	"slices"

	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
	"github.com/corelane/corelane/internal/vpn"
)

func (f *Fleet) whyNotMac(bridge string, m vpn.Mac) []*agentv1.Stage {
	var l stages
	list := f.engine.Segments()
	i := slices.IndexFunc(list, func(g *agentv1.SegmentStatus) bool { return g.Config.Bridge == bridge })
	if i < 0 {
		l.add("intent", false, "add a segment of this bridge to "+f.Intent, "no segment of bridge '%s'", bridge)
		return l
	}
	g := list[i]
	if !l.add("intent", g.Error == "", "change the segment as the evidence says",
		"segment %s, VNI %d, RD %s, imports %v%s", bridge, g.Config.Vni, g.Rd, g.Config.ImportTargets, after(g.Error)) {
		return l
	}
	for _, a := range f.engine.Attachments() {
		if guest, err := net.ParseMAC(a.Config.Port.GuestMac); a.Config.Port.Bridge == bridge && err == nil &&
			guest.String() == m.String() {
			if f.whyNotGuest(&l, a, g) {
				return l
			}
		}
	}
	f.addSession(&l)
	var judged []vpn.Judged
	f.engine.JudgeMac(bridge, m, func(j vpn.Judged) { judged = append(judged, j) })
	if !l.add("received", len(judged) > 0, "run this command on the host that has the guest, which must announce it",
		"%d paths to %v", len(judged), m) {
		return l
	}
	used := false
	for _, j := range judged {
		fix := fixes[j.Verdict]
		if f := segmentFixes[j.Verdict]; f != "" {
			fix = f
		}
		address := ""
		if j.Path.Prefix.IsValid() {
			address = " with " + j.Path.Prefix.Addr().String()
		}
		used = used || j.Verdict == vpn.Used
		l.add(string(j.Verdict), j.Verdict == vpn.Used, fix, "path of %v%s, VNI %d, sequence %d, RD %v, from %v%s",
			j.Path.Nexthop, address, j.Path.Label, j.Path.Sequence, j.Path.RD, j.Path.Peer, after(j.Reason))
	}
	if used {
		f.addProgrammed(&l, bridge, m)
	}
	return l
}

func after(text string) string {
	if text != "" {
		text = ": " + text
	}
	return text
}

// whyNotGuest adds the stages of a guest of this node. It returns false if its address is at another host.
func (f *Fleet) whyNotGuest(l *stages, a *agentv1.AttachmentStatus, g *agentv1.SegmentStatus) bool {
	name, state := a.Config.Port.Name, a.Config.State
	if !l.add("programmed", a.Programmed, "change the attachment as the evidence says", "port %s: %s", name,
		textOf(f.refused["port "+name], f.sync.Error)) {
		return true
	}
	if a.Error != "" {
		l.add("place", false, "remove the attachment; if the guest is here, add it again: the address then moves here",
			"port %s: %s", name, a.Error)
		return false
	}
	if state != agentv1.AttachmentState_ATTACHMENT_ACTIVE {
		l.add("exported", false, "set state: ATTACHMENT_ACTIVE", "attachment %s has state %v", name, state)
		return false
	}
	if !l.add("exported", a.Announced && len(g.Config.ExportTargets) > 0, "set export_targets of the segment",
		"attachment %s has state %v, the segment exports %v", name, state, g.Config.ExportTargets) {
		return true
	}
	f.addSession(l)
	return true
}

// addProgrammed adds whether the data plane has the MAC address of a path that is used.
func (f *Fleet) addProgrammed(l *stages, bridge string, m vpn.Mac) {
	why := ""
	for _, key := range []string{"bridge " + bridge, "mac " + bridge + " " + m.String()} {
		if why == "" {
			why = f.refused[key]
		}
	}
	f.addAccepted(l, why, fmt.Sprintf("'corelane mac show %v --bridge %s' shows the tunnel", m, bridge))
}

// addAccepted adds whether the data plane accepted the object. hint is the command that shows it there.
func (f *Fleet) addAccepted(l *stages, why, hint string) {
	text, ok := textOf(why, f.sync.Error), why == "" && f.sync.Error == ""
	if ok {
		text += "; " + hint
	}
	l.add(programmed, ok, "remove the object that the evidence names", "%s", text)
}

// segmentFixes are those that differ from the ones of a VRF.
var segmentFixes = map[vpn.Verdict]string{
	vpn.NotImported: "add one of its targets to import_targets of the segment, or to export_targets on the other host",
	vpn.NoEncap:     "set default_encap of the peer to ENCAP_VXLAN, or let the other host announce VXLAN",
	vpn.TooManyMacs: "raise remote_limit of the segment",
	vpn.NoNexthop:   "raise nexthop_max of bgp",
	vpn.BadVni:      "set the VNI of the segment on the other host",
	vpn.BadTag:      "let the other host announce the Ethernet tag 0: VLAN-based service",
}
