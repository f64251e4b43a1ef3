// SPDX-License-Identifier: Apache-2.0
package verify

import (
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/topology"
)

var memoryRules = []rule{
	{id: "memory.hugepages", group: "Memory", title: "Each node with workers has hugepages", workers: true,
		check:  checkHugepages,
		source: "Documentation/admin-guide/mm/hugetlbpage.rst",
		why: "Packet memory on another node makes each packet cross between sockets; without hugepages packets " +
			"cause TLB misses."},
}

func checkHugepages(v *view, r *result) {
	for _, n := range v.m.Nodes {
		if n.CPUs.Overlaps(v.in.Workers) {
			v.judgeNode(r, n)
		}
	}
}

func (v *view) judgeNode(r *result, n topology.Node) {
	var have []string
	total := 0
	for _, h := range n.Hugepages {
		total += h.Total
		have = append(have, fmt.Sprintf("%d of %d kB, %d free", h.Total, h.KiB, h.Free))
	}
	if v.p != nil {
		for _, want := range v.p.Hugepages {
			if want.Node != n.ID && want.Node != -1 {
				continue
			}
			got := 0
			for _, h := range n.Hugepages {
				if h.KiB == want.KiB {
					got = h.Total
				}
			}
			if got < want.Pages {
				r.fail("node %d: has %d pages of %d kB, but the plan wants %d", n.ID, got, want.KiB, want.Pages).
					about("hugepages node %d", n.ID).
					write("/"+v.m.PagesFile(n.ID, want.KiB), fmt.Sprint(want.Pages))
			}
		}
	}
	if len(n.Hugepages) > 0 && total == 0 {
		size := n.Hugepages[0].KiB
		for _, h := range n.Hugepages {
			size = min(size, h.KiB)
		}
		r.warn("node %d has workers and no hugepages", n.ID).Command =
			fmt.Sprintf("echo %d > /%s", max(1, 1<<20/size), v.m.PagesFile(n.ID, size))
		return
	}
	if len(n.Hugepages) == 0 {
		r.unknown("nothing is known about hugepages of node %d", n.ID)
		return
	}
	r.pass("node %d: %s", n.ID, strings.Join(have, "; "))
}
