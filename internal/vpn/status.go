// SPDX-License-Identifier: Apache-2.0
package vpn

import (
	"net/netip"

	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
)

// Status is the engine at a glance.
type Status struct {
	Paths, Refused uint64
	Holding        bool // routes from before the start are kept
}

// Status returns how many paths there are.
func (e *Engine) Status() Status {
	return Status{uint64(len(e.paths)), e.refused, e.held != nil}
}

// PeerPaths returns how many paths a peer has sent, and how many of them are from a session that has ended.
func (e *Engine) PeerPaths(a netip.Addr) (paths, stale uint64) {
	if p := e.peers[a]; p != nil {
		return uint64(p.paths), uint64(p.stale)
	}
	return 0, 0
}

// Instances returns the status of each instance.
func (e *Engine) Instances() []*agentv1.InstanceStatus {
	announced := map[Target]uint32{}
	for _, p := range e.Announcements() {
		announced[p.RD]++
	}
	e.settle()
	var list []*agentv1.InstanceStatus
	for _, i := range e.intent.Instances {
		v := e.vrfs[i.Vrf]
		list = append(list, &agentv1.InstanceStatus{Config: i, Rd: v.rd.String(), Label: v.label, Error: v.err,
			Announced: announced[v.rd], Installed: uint32(len(v.routes))})
	}
	return list
}

// Attachments returns the status of each attachment.
func (e *Engine) Attachments() []*agentv1.AttachmentStatus {
	var list []*agentv1.AttachmentStatus
	for _, a := range e.intent.Attachments {
		st := &agentv1.AttachmentStatus{Config: a, Programmed: e.ports[a.Port.Name],
			Announced: e.announces(a) && len(guests(a.Port)) > 0}
		if s := e.station(a); s != nil {
			st.Announced = st.Announced || s.holds
			st.Error = s.reason
		}
		list = append(list, st)
	}
	return list
}

// announces tells whether the addresses of an attachment are announced.
func (e *Engine) announces(a *agentv1.Attachment) bool {
	v := e.vrfs[a.Port.Vrf]
	return a.State == agentv1.AttachmentState_ATTACHMENT_ACTIVE && v != nil && e.ready(v) && len(v.exports) > 0 &&
		e.ports[a.Port.Name]
}

// ready tells whether other hosts can send to a VRF.
func (e *Engine) ready(v *vrf) bool {
	if v.evpn() {
		return v.err == "" && e.router != Mac{}
	}
	return v.label != 0
}
