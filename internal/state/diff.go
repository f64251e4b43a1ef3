// SPDX-License-Identifier: Apache-2.0
package state

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// Diff returns the operations that turn have into want, in an order in which each of them is valid: an object exists
// before others refer to it, it is deleted when no other refers to it any more, and a name or an address is free
// before it is used again. Both states are sorted. Objects that cannot be changed in place are replaced, together
// with the objects that depend on them. Next hops on a port that is replaced discard packets meanwhile, so that their
// routes can stay.
func Diff(want, have *State) []Op {
	d := newDiffer(want, have)
	named, leaves := sectionsWith("named"), sectionsWith("leaf")
	d.workers()
	d.settings()

	for _, section := range backward(leaves) {
		d.delLeaves(section)
	}
	d.floodLess()
	d.delNexthops(false)
	d.parkNexthops()
	d.mirrorsLess()
	d.delGonePorts()
	d.delGone("bridges")
	d.delGone("vrfs")

	d.addVrfs()
	d.bridges()
	for _, section := range named {
		d.putNamed(section)
	}
	d.rules()
	d.ports()
	d.mirrors()
	d.nexthops()
	d.flood()
	for _, section := range leaves {
		d.putLeaves(section)
	}
	d.delUnwanted("bridges")
	d.delUnwanted("vrfs")
	d.delNexthops(true)
	for _, section := range backward(named) {
		d.delUnwanted(section)
	}
	d.delUnwanted("mirrors")
	d.finishWorkers()
	return d.ops
}

type differ struct {
	wantState, haveState *State
	want, have           map[string]map[string]proto.Message // by section and key
	gone                 map[string]map[string]string        // objects deleted before any is added, and the reason
	pinned               map[uint32]bool                     // next hops that others refer to until the end
	routes               routeDiff
	workersNow           map[uint32]*apiv1.Worker // as they are after the steps so far
	natClash             map[uint32]bool          // ids of rules that have an address that another one gets
	ops                  []Op
}

func newDiffer(want, have *State) *differ {
	d := &differ{wantState: want, haveState: have, want: index(want), have: index(have),
		gone: map[string]map[string]string{"vrfs": {}, "bridges": {}, "ports": {}, "nexthops": {}, "services": {}}}
	d.findGone()
	d.findGoneNexthops()
	d.findClashes()
	d.findGoneServices()
	d.routes = diffRoutes(want.Routes, have.Routes, d.routeGone)
	d.findPinned()
	return d
}

func index(s *State) map[string]map[string]proto.Message {
	all := map[string]map[string]proto.Message{}
	for _, section := range sections {
		list := s.objects(section)
		all[section] = make(map[string]proto.Message, len(list))
		for _, m := range list {
			all[section][keyOf(m)] = m
		}
	}
	return all
}

func (d *differ) op(verb Verb, section string, want, have proto.Message, why string) {
	op := Op{Verb: verb, Noun: nounOf[section].name, New: want, Old: have, Why: why}
	if want != nil {
		op.Key = keyOf(want)
	} else {
		op.Key = keyOf(have)
	}
	if verb == Set {
		op.Fields = changed(want, have)
	}
	d.ops = append(d.ops, op)
}

// findGone decides which objects are deleted before any is added: VRFs and bridges whose id changes or is needed for
// another one, ports that are not wanted, and ports that cannot be changed in place. VRFs and bridges that are not
// wanted are deleted at the end, so that ports can move out of them.
func (d *differ) findGone() {
	for _, section := range []string{"vrfs", "bridges"} {
		taken := map[uint32]string{} // ids that the wanted state gives
		for key, m := range d.want[section] {
			if id := m.(numbered).GetId(); id != 0 {
				taken[id] = key
			}
		}
		for key, m := range d.have[section] {
			want := d.want[section][key]
			id := m.(numbered).GetId()
			switch {
			case want != nil && slices.Contains(changed(want, m), "id"):
				d.gone[section][key] = fmt.Sprintf("to change its id from %d to %d", id, want.(numbered).GetId())
			case taken[id] != "" && taken[id] != key:
				d.gone[section][key] = fmt.Sprintf("'%s' gets its id %d", taken[id], id)
			}
		}
	}
	for key, m := range d.have["ports"] {
		d.findGonePort(key, m.(*apiv1.Port))
	}
	d.findGoneDependents()
}

type numbered interface{ GetId() uint32 }

func (d *differ) findGonePort(key string, have *apiv1.Port) {
	want := d.want["ports"][key]
	if want == nil {
		d.gone["ports"][key] = ""
		return
	}
	if fields := changed(want, have); !settable(fields) {
		fixed := slices.DeleteFunc(fields, func(f string) bool { return slices.Contains(portSettable, f) })
		d.gone["ports"][key] = "to change " + strings.Join(fixed, ", ")
		return
	}
	for section, name := range map[string]string{"vrfs": have.Vrf, "bridges": have.Bridge} {
		if _, gone := d.gone[section][name]; gone {
			d.gone["ports"][key] = fmt.Sprintf("its %s '%s' is deleted first", nounOf[section].name, name)
		}
	}
}

func (d *differ) isGone(section, key string) bool {
	_, gone := d.gone[section][key]
	return gone
}

func (d *differ) routeGone(have Route) bool {
	return d.isGone("vrfs", have.Vrf) || len(d.gone["nexthops"]) > 0 && d.goneNexthop(have.Nexthop)
}

func (d *differ) goneNexthop(id uint32) bool { return d.isGone("nexthops", strconv.Itoa(int(id))) }

func (d *differ) settings() {
	want, have := d.wantState.Settings, d.haveState.Settings
	if want != nil && have != nil && len(changed(want, have)) > 0 {
		d.op(Set, "settings", want, have, "")
	}
}

// goneTunnel says whether a next hop is deleted first, or ceases to be a tunnel. Bridges can use only tunnels.
func (d *differ) goneTunnel(id uint32) bool {
	want, wanted := d.want["nexthops"][strconv.Itoa(int(id))].(*apiv1.Nexthop)
	return d.goneNexthop(id) || wanted && want.GetTunnel() == nil
}

// leaves says whether a port leaves its bridge.
func (d *differ) leaves(port string) bool {
	want, wanted := d.want["ports"][port].(*apiv1.Port)
	have, there := d.have["ports"][port].(*apiv1.Port)
	return wanted && there && want.Bridge != have.Bridge
}

// dependsOnGone says whether a leaf refers to an object that is deleted first, or has an address that another one gets.
func (d *differ) dependsOnGone(m proto.Message) bool {
	switch m := m.(type) {
	case *apiv1.NatRule:
		return d.natClash[m.Id] || d.namesGone(m)
	case *apiv1.Service:
		return d.isGone("services", m.Name)
	case *apiv1.Mac:
		return d.goneTunnel(m.GetNexthop()) || d.leaves(m.GetPort()) || d.namesGone(m)
	case *apiv1.HostSteer:
		return d.hostGone(m.Port)
	}
	return d.namesGone(m)
}

// namesGone says whether an object refers to one that is deleted first (`ref` of api/options.proto).
func (d *differ) namesGone(m proto.Message) bool {
	gone := false
	m.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if ref := ruleOf(fd).ref; ref != "" && !fd.IsList() {
			gone = d.isGone(ref, v.String())
		}
		return !gone
	})
	return gone
}

// goesFirst says whether a leaf is deleted before any object is added.
func (d *differ) goesFirst(section string, have proto.Message) bool {
	return d.want[section][keyOf(have)] == nil || d.dependsOnGone(have)
}

func backward(sections []string) []string {
	list := slices.Clone(sections)
	slices.Reverse(list)
	return list
}

func (d *differ) delLeaves(section string) {
	if section == "routes" {
		d.delRoutes()
		return
	}
	for _, m := range d.haveState.objects(section) {
		if d.goesFirst(section, m) {
			why := ""
			if d.want[section][keyOf(m)] != nil {
				why = "it depends on an object that is replaced"
			}
			d.op(Del, section, nil, m, why)
		}
	}
}

// putLeaves adds and changes leaves. One that cannot be changed in place is deleted right before it is added.
func (d *differ) putLeaves(section string) {
	if section == "routes" {
		d.putRoutes()
		return
	}
	for _, want := range d.wantState.objects(section) {
		have := d.have[section][keyOf(want)]
		switch {
		case have == nil || d.goesFirst(section, have):
			d.op(Add, section, want, nil, "")
		case len(changed(want, have)) > 0 && nounOf[section].canSet():
			d.op(Set, section, want, have, "")
		case len(changed(want, have)) > 0:
			d.op(Del, section, nil, have, "to change it")
			d.op(Add, section, want, nil, "")
		}
	}
}

func (d *differ) delGone(section string) {
	for _, m := range d.haveState.objects(section) {
		if why, gone := d.gone[section][keyOf(m)]; gone {
			d.op(Del, section, nil, m, why)
		}
	}
}

// delUnwanted deletes what was kept until no other object referred to it.
func (d *differ) delUnwanted(section string) {
	for _, m := range d.haveState.objects(section) {
		if key := keyOf(m); d.want[section][key] == nil && !d.isGone(section, key) {
			d.op(Del, section, nil, m, "")
		}
	}
}

// addVrfs adds VRFs. Those with a given id come before those that get the next free one.
func (d *differ) addVrfs() {
	for _, m := range idsFirst(d.wantState.Vrfs) {
		if d.have["vrfs"][m.Name] == nil || d.isGone("vrfs", m.Name) {
			d.op(Add, "vrfs", m, nil, "")
		}
	}
}

func idsFirst[T numbered](list []T) []T {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b T) int {
		return cmp.Compare(min(b.GetId(), 1), min(a.GetId(), 1))
	})
	return list
}

// bridges adds and changes bridges without their flood lists, whose next hops come later.
func (d *differ) bridges() {
	for _, m := range idsFirst(d.wantState.Bridges) {
		want := proto.CloneOf(m)
		if d.have["bridges"][m.Name] == nil || d.isGone("bridges", m.Name) {
			want.Flood = nil
			d.op(Add, "bridges", want, nil, "")
			continue
		}
		have := d.have["bridges"][m.Name].(*apiv1.Bridge)
		want.Flood = have.Flood
		if len(changed(want, have)) > 0 {
			d.op(Set, "bridges", want, have, "")
		}
	}
}

// floodLess removes next hops that are deleted first from the flood lists of bridges.
func (d *differ) floodLess() {
	for _, have := range d.haveState.Bridges {
		less := proto.CloneOf(have)
		less.Flood = slices.DeleteFunc(less.Flood, func(id uint32) bool {
			return d.goneTunnel(id) || d.isGone("bridges", have.Name)
		})
		if len(less.Flood) < len(have.Flood) {
			d.op(Set, "bridges", less, have, "some of its next hops are deleted or cease to be tunnels")
			d.have["bridges"][have.Name] = less
		}
	}
}

// flood sets the flood lists when their next hops exist.
func (d *differ) flood() {
	for _, m := range d.wantState.Bridges {
		before := proto.CloneOf(m)
		before.Flood = nil
		if have := d.have["bridges"][m.Name]; have != nil && !d.isGone("bridges", m.Name) {
			before.Flood = have.(*apiv1.Bridge).Flood
		}
		if len(changed(m, before)) > 0 {
			d.op(Set, "bridges", m, before, "")
		}
	}
}
