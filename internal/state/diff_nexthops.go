// SPDX-License-Identifier: Apache-2.0
package state

import (
	"slices"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// findGoneNexthops finds next hops that have to be replaced: one that is in use cannot become a group or cease to be
// one.
func (d *differ) findGoneNexthops() {
	for _, have := range d.haveState.Nexthops {
		key := keyOf(have)
		want, wanted := d.want["nexthops"][key].(*apiv1.Nexthop)
		if wanted && isGroup(want) != isGroup(have) {
			d.gone["nexthops"][key] = "to change its kind"
		}
	}
	for _, have := range d.haveState.Nexthops {
		for _, m := range have.GetGroup().GetMembers() {
			if key := keyOf(have); d.goneNexthop(m.Nexthop) && !d.isGone("nexthops", key) {
				d.gone["nexthops"][key] = "one of its members is replaced"
			}
		}
	}
}

func isGroup(n *apiv1.Nexthop) bool { return n.GetGroup() != nil }

// findPinned marks the next hops that other objects refer to until the new state is complete. Unwanted ones that are
// not marked are deleted first.
func (d *differ) findPinned() {
	d.pinned = map[uint32]bool{}
	for id := range d.routes.stay {
		d.pinned[id] = true
	}
	for _, section := range []string{"labels", "vnis", "macs"} {
		for _, m := range d.haveState.objects(section) {
			if !d.goesFirst(section, m) {
				d.pinned[m.(interface{ GetNexthop() uint32 }).GetNexthop()] = true
			}
		}
	}
	for _, b := range d.haveState.Bridges {
		if !d.isGone("bridges", b.Name) {
			for _, id := range b.Flood {
				d.pinned[id] = true
			}
		}
	}
	for _, n := range d.haveState.Nexthops {
		key := keyOf(n)
		if (d.pinned[n.Id] || d.want["nexthops"][key] != nil) && !d.isGone("nexthops", key) {
			for _, m := range n.GetGroup().GetMembers() {
				d.pinned[m.Nexthop] = true
			}
		}
	}
}

// delNexthops deletes groups before their members. Called early, it deletes the next hops that no object refers to any
// more and those that are replaced; called late, it deletes the rest.
func (d *differ) delNexthops(late bool) {
	for _, have := range groupsLast(d.haveState.Nexthops, -1) {
		key := keyOf(have)
		why, gone := d.gone["nexthops"][key]
		switch {
		case gone && !late:
			d.op(Del, "nexthops", nil, have, why)
		case !gone && d.want["nexthops"][key] == nil && d.pinned[have.Id] == late:
			d.op(Del, "nexthops", nil, have, "")
		}
	}
}

// parkNexthops turns next hops into discards if their port is deleted first while others refer to them.
func (d *differ) parkNexthops() {
	for _, have := range d.haveState.Nexthops {
		port := have.GetPort()
		wanted := d.want["nexthops"][keyOf(have)] != nil
		if port == nil || !d.isGone("ports", port.Port) || d.isGone("nexthops", keyOf(have)) ||
			!wanted && !d.pinned[have.Id] {
			continue
		}
		parked := &apiv1.Nexthop{Id: have.Id, Kind: &apiv1.Nexthop_Discard{Discard: &apiv1.Empty{}}}
		d.op(Set, "nexthops", parked, have, "its port '"+port.Port+"' is deleted first")
		d.have["nexthops"][keyOf(have)] = parked
	}
}

// nexthops adds and changes next hops, members before their groups.
func (d *differ) nexthops() {
	for _, want := range groupsLast(d.wantState.Nexthops, 1) {
		have := d.have["nexthops"][keyOf(want)]
		switch {
		case have == nil || d.isGone("nexthops", keyOf(want)):
			d.op(Add, "nexthops", want, nil, "")
		case len(changed(want, have)) > 0:
			d.op(Set, "nexthops", want, have, "")
		}
	}
}

// groupsLast orders members before groups; sign -1: groups before members. A group is never a member.
func groupsLast(list []*apiv1.Nexthop, sign int) []*apiv1.Nexthop {
	rank := map[bool]int{true: sign}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *apiv1.Nexthop) int { return rank[isGroup(a)] - rank[isGroup(b)] })
	return list
}
