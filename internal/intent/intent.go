// SPDX-License-Identifier: Apache-2.0

// Package intent reads what a node is told about its place in a fleet: a directory of small YAML files with the objects
// of api/agent/intent.proto. Each object has a status of its own, and one with a fault does not hold up the others.
package intent

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
	"github.com/corelane/corelane/internal/limits"
	"github.com/corelane/corelane/internal/state"
)

const (
	maxFiles = 65536
	maxBytes = 1 << 20 // of a file
)

// Set is the intent of a node, without the objects that have a fault.
type Set struct {
	Bgp         *agentv1.Bgp // nil: none
	Peers       []*agentv1.Peer
	Instances   []*agentv1.Instance
	Attachments []*agentv1.Attachment
	Segments    []*agentv1.Segment
	Objects     []*agentv1.ObjectStatus // all objects, by file and line
}

// Load reads the files *.yaml of a directory in the order of their names. Of two objects with the same name the first
// one counts. The error is about the directory; faults of files and objects are in Objects.
func Load(dir string) (*Set, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if len(entries) > maxFiles {
		return nil, fmt.Errorf("%s has %d files; valid: up to %d", dir, len(entries), maxFiles)
	}
	s := &Set{}
	known := map[string]*agentv1.ObjectStatus{}
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".yaml") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		text, err := read(path)
		if errors.Is(err, fs.ErrNotExist) { // deleted meanwhile
			continue
		}
		if err != nil {
			s.fault("file", e.Name(), path, 0, err)
			continue
		}
		s.parse(path, text, known)
	}
	s.relate()
	return s, nil
}

func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxBytes {
		return nil, fmt.Errorf("%s is not a regular file of up to %d bytes", path, maxBytes)
	}
	return os.ReadFile(path)
}

func (s *Set) fault(kind, name, file string, line int, err error) *agentv1.ObjectStatus {
	o := &agentv1.ObjectStatus{Kind: kind, Name: name, File: file, Line: uint32(line)}
	if err != nil {
		o.Error = err.Error()
	}
	s.Objects = append(s.Objects, o)
	return o
}

func (s *Set) parse(path string, text []byte, known map[string]*agentv1.ObjectStatus) {
	objects, err := state.Objects(path, text, (&agentv1.Intent{}).ProtoReflect().Descriptor())
	if err != nil {
		s.fault("file", filepath.Base(path), path, 0, err)
	}
	for _, o := range objects {
		kind := strings.TrimSuffix(o.Section, "s")
		if o.Err == nil {
			o.Err = check(o.Message)
		}
		st := s.fault(kind, nameOf(o.Message), path, o.Line, o.Err)
		id := kind + " " + st.Name
		if first := known[id]; first != nil && o.Err == nil {
			st.Error = fmt.Sprintf("is already given in %s, line %d", first.File, first.Line)
		}
		if st.Error == "" {
			known[id] = st
			s.add(o.Message)
		}
	}
}

func nameOf(m proto.Message) string {
	switch m := m.(type) {
	case *agentv1.Bgp:
		return "bgp"
	case *agentv1.Attachment:
		return m.GetPort().GetName()
	}
	return state.KeyOf(m)
}

func (s *Set) add(m proto.Message) {
	switch m := m.(type) {
	case *agentv1.Bgp:
		s.Bgp = m
	case *agentv1.Peer:
		s.Peers = append(s.Peers, m)
	case *agentv1.Instance:
		s.Instances = append(s.Instances, m)
	case *agentv1.Attachment:
		s.Attachments = append(s.Attachments, m)
	case *agentv1.Segment:
		s.Segments = append(s.Segments, m)
	}
}

// check finds fields that contradict each other.
func check(m proto.Message) error {
	switch m := m.(type) {
	case *agentv1.Bgp:
		return checkBgp(m)
	case *agentv1.Instance:
		return checkInstance(m)
	case *agentv1.Segment:
		return checkTargets("segment "+m.Bridge, m.Rd, m.ImportTargets, m.ExportTargets)
	case *agentv1.Attachment:
		if m.Port.Role != apiv1.PortRole_PORT_ROLE_TENANT {
			return errors.New("port.role: an attachment is a port of a tenant; valid: PORT_ROLE_TENANT")
		}
		if m.Port.Vrf == "" && m.Port.Bridge == "" {
			return errors.New("port.vrf: missing; valid: the VRF of the port, or bridge")
		}
	case *agentv1.Peer:
		if e := m.DefaultEncap; e != 0 && e != apiv1.Encap_ENCAP_VXLAN && !slices.Contains(carriesLabels, e) {
			return fmt.Errorf("default_encap '%v': carries no labels; valid: %s; for segments ENCAP_VXLAN", e,
				names(carriesLabels))
		}
	}
	return nil
}

func checkBgp(b *agentv1.Bgp) error {
	if a, err := netip.ParseAddr(b.RouterId); err != nil || !a.Is4() {
		return fmt.Errorf("bgp.router_id '%s': is not an IPv4 address", b.RouterId)
	}
	b.TunnelAddress = cmp.Or(b.TunnelAddress, b.RouterId)
	if b.LabelMin > b.LabelMax {
		return fmt.Errorf("bgp.label_min %d: is above label_max %d", b.LabelMin, b.LabelMax)
	}
	if b.NexthopMin > b.NexthopMax {
		return fmt.Errorf("bgp.nexthop_min %d: is above nexthop_max %d", b.NexthopMin, b.NexthopMax)
	}
	for _, e := range b.Encaps {
		if !slices.Contains(carriesLabels, e) {
			return fmt.Errorf("bgp.encaps '%v': does not carry labels; valid: %s", e, names(carriesLabels))
		}
	}
	if len(b.Encaps) == 0 {
		b.Encaps = slices.Clone(carriesLabels)
	}
	return nil
}

// carriesLabels are the encapsulations of VPN paths, the preferred one first.
var carriesLabels = limits.EncapsulationsWith("label")

func names(list []apiv1.Encap) string {
	var all []string
	for _, e := range list {
		all = append(all, e.String())
	}
	return strings.Join(all, ", ")
}

func checkInstance(i *agentv1.Instance) error {
	if i.Vrf == state.FabricVrf {
		return errors.New("instance.vrf 'fabric': belongs to the underlay; valid: a tenant's VRF")
	}
	return checkTargets("instance "+i.Vrf, i.Rd, i.ImportTargets, i.ExportTargets)
}

func checkTargets(object, rd string, lists ...[]string) error {
	for _, t := range slices.Concat(lists...) {
		if _, err := ParseTarget(t); err != nil {
			return fmt.Errorf("%s: %w", object, err)
		}
	}
	if rd != "" {
		if _, err := ParseTarget(rd); err != nil {
			return fmt.Errorf("%s: rd: %w", object, err)
		}
	}
	return nil
}

// relate finds objects that need others which are not there.
func (s *Set) relate() {
	without := func(kind, name, format string, args ...any) {
		for _, o := range s.Objects {
			if o.Kind == kind && o.Name == name && o.Error == "" {
				o.Error = fmt.Sprintf(format, args...)
			}
		}
	}
	byVni := map[uint32]string{}
	s.relateSegments(byVni, without)
	s.relateInstances(byVni, without)
	instances := map[string]bool{}
	for _, i := range s.Instances {
		instances[i.Vrf] = true
	}
	if s.Bgp == nil && len(s.Peers)+len(s.Instances)+len(s.Segments) > 0 {
		for _, o := range s.Objects {
			if o.Error == "" && (o.Kind == "peer" || o.Kind == "instance" || o.Kind == "segment") {
				o.Error = "waits: there is no object 'bgp', so nothing is exchanged with other hosts"
			}
		}
	}
	s.Attachments = slices.DeleteFunc(s.Attachments, func(a *agentv1.Attachment) bool {
		if a.Port.Vrf == "" || instances[a.Port.Vrf] {
			return false
		}
		without("attachment", a.Port.Name, "waits: there is no instance of VRF '%s'", a.Port.Vrf)
		return true
	})
}

// relateInstances gives instances with a VNI the targets that they do not name, and finds those whose VNI is taken.
func (s *Set) relateInstances(byVni map[uint32]string, without func(kind, name, format string, args ...any)) {
	s.Instances = slices.DeleteFunc(s.Instances, func(i *agentv1.Instance) bool {
		if i.Vni == 0 {
			return false
		}
		if first := byVni[i.Vni]; first != "" {
			without("instance", i.Vrf, "instance.vni %d: is that of %s", i.Vni, first)
			return true
		}
		if err := s.giveTargets(i.Vni, &i.ImportTargets, &i.ExportTargets); err != nil {
			without("instance", i.Vrf, "instance.import_targets and export_targets: missing; asn and vni give none: %v",
				err)
			return true
		}
		byVni[i.Vni] = "instance '" + i.Vrf + "'"
		return false
	})
}

// giveTargets fills empty lists of route targets with the one that follows from a VNI (RFC 8365, section 5.1.2.1).
func (s *Set) giveTargets(vni uint32, lists ...*[]string) error {
	target := fmt.Sprintf("%d:%d", s.Bgp.GetAsn(), vni)
	_, err := ParseTarget(target)
	for _, list := range lists {
		if len(*list) == 0 && err != nil {
			return err
		}
		if len(*list) == 0 {
			*list = []string{target}
		}
	}
	return nil
}

// relateSegments gives segments the targets that they do not name, and finds those that share a VNI.
func (s *Set) relateSegments(byVni map[uint32]string, without func(kind, name, format string, args ...any)) {
	s.Segments = slices.DeleteFunc(s.Segments, func(g *agentv1.Segment) bool {
		if first := byVni[g.Vni]; first != "" {
			without("segment", g.Bridge, "segment.vni %d: is that of %s", g.Vni, first)
			return true
		}
		if err := s.giveTargets(g.Vni, &g.ImportTargets, &g.ExportTargets); err != nil {
			without("segment", g.Bridge, "segment.import_targets and export_targets: missing; asn and vni give none: "+
				"%v", err)
			return true
		}
		byVni[g.Vni] = "segment '" + g.Bridge + "'"
		return false
	})
}
