// SPDX-License-Identifier: Apache-2.0
package plan

import (
	"cmp"
	"slices"
)

// rankDomains orders the caches of each node: first those with room for all workers and guests, then those with room
// for all workers, then by room.
func (k *maker) rankDomains() error {
	threads := k.threads()
	workers := k.w.Forwarding + k.w.HostPath
	if k.w.IsolatedRx > 0 && threads == 1 {
		workers += k.w.IsolatedRx
	}
	if k.w.ShareCores {
		workers = (workers + threads - 1) / threads
	}
	all := workers + (k.w.Guests+threads-1)/threads
	room := map[int]int{}
	for _, c := range k.cores {
		if len(k.free(c)) == c.cpus.Len() {
			room[c.domain]++
		}
	}
	for domain, n := range room {
		switch {
		case n >= all:
			k.rank[domain] = [2]int{0, 0}
		case n >= workers:
			k.rank[domain] = [2]int{1, -n}
		default:
			k.rank[domain] = [2]int{2, -n}
		}
	}
	return nil
}

// near sorts cores by their distance from a node: cores that were isolated at boot come first, then faster ones, then
// by cache, favoured cores and number.
func (k *maker) near(node int) []*core {
	list := slices.Clone(k.cores)
	slices.SortStableFunc(list, func(a, b *core) int {
		return cmp.Or(k.m.Distance(node, a.node)-k.m.Distance(node, b.node), a.node-b.node,
			order(b.isolated, a.isolated), b.kind()-a.kind(), slices.Compare(k.rankOf(a), k.rankOf(b)),
			order(b.speed.Favoured, a.speed.Favoured), a.cpus.First()-b.cpus.First())
	})
	return append(list, k.spare...)
}

// kind ranks the kinds of cores: a higher one is faster. Cores of the fastest kind are equal.
func (c *core) kind() int {
	if c.speed.Slow {
		return c.speed.Percent
	}
	return 101
}

func (k *maker) rankOf(c *core) []int {
	r := k.rank[c.domain]
	return []int{r[0], r[1], max(c.domain, -1)}
}

// order returns 0 if a equals b, 1 if only a holds, and -1 if only b holds.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
