// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"slices"
	"testing"
)

func TestPageSizes(t *testing.T) {
	for text, kib := range map[string]int{"2M": 2048, "2mb": 2048, "2048k": 2048, "1G": 1048576, "512M": 524288,
		"64K": 64, "16g": 16777216, "4M": 0, "": 0, "G": 0} {
		if have := ParsePageSize(text); have != kib {
			t.Errorf("'%s' is %d, not %d", text, have, kib)
		}
	}
	for _, kib := range pageSizes {
		if have := ParsePageSize(PageSizeText(kib)); have != kib {
			t.Errorf("%d KiB is written as '%s'", kib, PageSizeText(kib))
		}
	}
	m := &Machine{Nodes: []Node{{Hugepages: []Hugepages{{KiB: 524288}, {KiB: 2048}}},
		{Hugepages: []Hugepages{{KiB: 2048}}}}}
	if have := m.PageSizes(); !slices.Equal(have, []int{2048, 524288}) {
		t.Error(have)
	}
}
