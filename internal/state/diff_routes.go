// SPDX-License-Identifier: Apache-2.0
package state

// routeDiff is the difference of two sorted lists of routes.
type routeDiff struct {
	add, del, set, was []Route
	stay               map[uint32]bool // next hops of the routes that are not deleted first
}

// diffRoutes compares two sorted lists. Routes that refer to an object that is deleted first are deleted and added
// again.
func diffRoutes(want, have []Route, gone func(Route) bool) routeDiff {
	d := routeDiff{stay: map[uint32]bool{}}
	i, j := 0, 0
	for i < len(want) || j < len(have) {
		c := 0
		switch {
		case i == len(want):
			c = 1
		case j == len(have):
			c = -1
		default:
			c = CompareRoutes(want[i], have[j])
		}
		switch {
		case c < 0:
			d.add = append(d.add, want[i])
			i++
		case c > 0:
			d.del = append(d.del, have[j])
			j++
		default:
			d.both(want[i], have[j], gone)
			i++
			j++
		}
	}
	return d
}

func (d *routeDiff) both(want, have Route, gone func(Route) bool) {
	if gone(have) {
		d.del = append(d.del, have)
		d.add = append(d.add, want)
		return
	}
	d.stay[have.Nexthop] = true
	have.Line = want.Line
	if want != have {
		d.set = append(d.set, want)
		d.was = append(d.was, have)
	}
}

func (d *differ) delRoutes() { d.batches(Del, d.routes.del, nil) }

func (d *differ) putRoutes() {
	d.batches(Set, d.routes.set, d.routes.was)
	d.batches(Add, d.routes.add, nil)
}

func (d *differ) batches(verb Verb, routes, was []Route) {
	for start := 0; start < len(routes); start += RouteBatch {
		end := min(start+RouteBatch, len(routes))
		op := Op{Verb: verb, Noun: "route", Routes: routes[start:end]}
		if was != nil {
			op.Was = was[start:end]
		}
		d.ops = append(d.ops, op)
	}
}
