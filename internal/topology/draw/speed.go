// SPDX-License-Identifier: Apache-2.0
package draw

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/topology"
)

// Brackets around a core show its speed.
const normal, slow, favoured = "[]", "()", "{}"

func bracketsOf(s topology.Speed) string {
	switch {
	case s.Slow:
		return slow
	case s.Favoured:
		return favoured
	}
	return normal
}

// speeds explains the brackets of cores that differ, fastest first. It is empty if all cores are alike.
func speeds(m *topology.Machine) []string {
	same := map[topology.Speed][]int{}
	for id, s := range m.Speeds() {
		if !s.Slow {
			s.Percent = 0 // small differences are not shown
		}
		same[s] = append(same[s], id)
	}
	var parts []string
	for _, s := range slices.SortedFunc(maps.Keys(same), func(a, b topology.Speed) int {
		return cmp.Compare(b.Percent, a.Percent)
	}) {
		if s.Slow {
			parts = append(parts, fmt.Sprintf("%s (%d %% of the fastest)", cpuset.Of(same[s]...), s.Percent))
		}
	}
	var lines []string
	if best := same[topology.Speed{Favoured: true}]; len(best) > 0 {
		lines = append(lines, fmt.Sprintf("%s favoured cores: %s", favoured, cpuset.Of(best...)))
	}
	if len(parts) > 0 {
		lines = append(lines, fmt.Sprintf("%s slower cores: %s", slow, strings.Join(parts, ", ")))
	}
	return lines
}
