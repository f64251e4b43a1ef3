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

// Diff returns the operations that turn have into want, in an order in which each of them is possible: nothing is
// named before it exists, nothing is deleted while it is named, names and addresses are free before they are given
// again. Both states are sorted. Objects that cannot be changed in place are deleted and added again together with
// what hangs on them; next hops on such a port discard for as long as the port is gone, so that routes stay.
func Diff(want, have *State) []Op {
	d := newDiffer(want, have)
	named, leaves := those("named"), those("leaf")
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
	d.waitForInterrupts()
	return d.ops
}

type differ struct {
	wantState, haveState *State
	want, have           map[string]map[string]proto.Message // by section and key
	gone                 map[string]map[string]string        // what is deleted before anything is added, and why
	pinned               map[uint32]bool                     // next hops that stay in use until the new ones are
	routes               routeDiff
	waiting              []*apiv1.Worker // that have all but their idle policy
	natClash             map[uint32]bool // ids of rules that have what another one gets
	ops                  []Op
}

func newDiffer(want, have *State) *differ {
	d := &differ{wantState: want, haveState: have, want: index(want), have: index(have),
		gone: map[string]map[string]string{"vrfs": {}, "bridges": {}, "ports": {}, "nexthops": {}}}
	d.findGone()
	d.findGoneNexthops()
	d.findClashes()
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

// findGone decides what is deleted before anything is added: VRFs and bridges whose id is needed or changes, ports that
// nobody wants, and those that cannot become what is wanted. VRFs and bridges that nobody wants wait for the end, so
// that ports can move out of them.
func (d *differ) findGone() {
	for _, section := range []string{"vrfs", "bridges"} {
		taken := map[uint32]string{} // ids that the file gives
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
				d.gone[section][key] = fmt.Sprintf("its id %d becomes that of '%s'", id, taken[id])
			}
		}
	}
	for key, m := range d.have["ports"] {
		d.findGonePort(key, m.(*apiv1.Port))
	}
	d.findGoneHosts()
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
			d.gone["ports"][key] = fmt.Sprintf("its %s '%s' goes", nounOf[section].name, name)
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

// goneTunnel: a next hop that goes, or becomes something else than a tunnel, which is all that a bridge can use.
func (d *differ) goneTunnel(id uint32) bool {
	want, wanted := d.want["nexthops"][strconv.Itoa(int(id))].(*apiv1.Nexthop)
	return d.goneNexthop(id) || wanted && want.GetTunnel() == nil
}

// leaves says whether a port moves to another bridge, or out of one.
func (d *differ) leaves(port string) bool {
	want, wanted := d.want["ports"][port].(*apiv1.Port)
	have, there := d.have["ports"][port].(*apiv1.Port)
	return wanted && there && want.Bridge != have.Bridge
}

// hangs says whether a leaf names something that is deleted first, or has what another one gets.
func (d *differ) hangs(m proto.Message) bool {
	switch m := m.(type) {
	case *apiv1.NatRule:
		return d.natClash[m.Id] || d.namesGone(m)
	case *apiv1.Mac:
		return d.goneTunnel(m.GetNexthop()) || d.leaves(m.GetPort()) || d.namesGone(m)
	case *apiv1.HostSteer:
		return d.hostGone(m.Port)
	}
	return d.namesGone(m)
}

// namesGone looks at the references of an object (api/options.proto).
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

// goesFirst says whether an object of a section of leaves is deleted before anything is added.
func (d *differ) goesFirst(section string, have proto.Message) bool {
	return d.want[section][keyOf(have)] == nil || d.hangs(have)
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
				why = "it hangs on something that is made anew"
			}
			d.op(Del, section, nil, m, why)
		}
	}
}

// putLeaves adds what is new. What differs is deleted right before, since nothing names it; a neighbour or a NAT rule is overwritten.
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

// delUnwanted deletes what was kept until nothing names it.
func (d *differ) delUnwanted(section string) {
	for _, m := range d.haveState.objects(section) {
		if key := keyOf(m); d.want[section][key] == nil && !d.isGone(section, key) {
			d.op(Del, section, nil, m, "")
		}
	}
}

// addVrfs: those with an id of their own before those that get the next free one.
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

// bridges without what they flood to: those next hops come later.
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

// floodLess takes next hops that go out of the lists that name them.
func (d *differ) floodLess() {
	for _, have := range d.haveState.Bridges {
		less := proto.CloneOf(have)
		less.Flood = slices.DeleteFunc(less.Flood, func(id uint32) bool {
			return d.goneTunnel(id) || d.isGone("bridges", have.Name)
		})
		if len(less.Flood) < len(have.Flood) {
			d.op(Set, "bridges", less, have, "they do not stay tunnels until it changes")
			d.have["bridges"][have.Name] = less
		}
	}
}

// flood comes when the next hops are there.
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
