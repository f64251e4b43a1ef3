// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"fmt"
	"slices"
	"strings"
)

// Sizes of hugepages that processors have, in KiB: x86 has 2M and 1G, arm64 others with each size of its base page,
// POWER 16M and 16G.
var pageSizes = []int{64, 2048, 16384, 32768, 524288, 1048576, 16777216}

// PageSizes returns the sizes of hugepages that the machine's kernel has, or, if it does not say, all that any
// processor has. They are in KiB, ascending.
func (m *Machine) PageSizes() []int {
	var sizes []int
	for i := range m.Nodes {
		for _, h := range m.Nodes[i].Hugepages {
			sizes = append(sizes, h.KiB)
		}
	}
	if len(sizes) == 0 {
		return pageSizes
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// PageSizeText writes a size of hugepages as the kernel's arguments do: 2M, 1G. It is empty if no processor has it.
func PageSizeText(kib int) string {
	switch {
	case !slices.Contains(pageSizes, kib):
		return ""
	case kib < 1<<10:
		return fmt.Sprintf("%dK", kib)
	case kib < 1<<20:
		return fmt.Sprintf("%dM", kib>>10)
	}
	return fmt.Sprintf("%dG", kib>>20)
}

// ParsePageSize reads a size of hugepages, such as 2M, 2MB or 2048k, and returns KiB, or 0 if no processor has it.
func ParsePageSize(text string) int {
	text = strings.TrimSuffix(strings.ToUpper(text), "B")
	for _, kib := range pageSizes {
		if text == PageSizeText(kib) || text == fmt.Sprintf("%dK", kib) {
			return kib
		}
	}
	return 0
}

// PageSizeTexts writes a list of sizes.
func PageSizeTexts(sizes []int) string {
	var all []string
	for _, kib := range sizes {
		all = append(all, fmt.Sprintf("%d (%s)", kib, PageSizeText(kib)))
	}
	return strings.Join(all, ", ")
}
