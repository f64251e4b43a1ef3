// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Fingerprint returns a short hash of what a plan depends on: CPUs with socket, die, core, node, siblings and caches,
// and the addresses and nodes of NICs. It does not include loads, affinities, settings and the order of NICs. A CPU
// that goes offline changes it, because the kernel removes the CPU from the lists of its siblings. A new kernel does
// not: dies are numbered within their socket, as kernels before Linux 6.9 do.
func Fingerprint(m *Machine) string {
	var lines []string
	dies := map[int][]int{} // by socket
	for i := range m.CPUs {
		c := &m.CPUs[i]
		if !c.Online {
			lines = append(lines, fmt.Sprintf("cpu %d", c.ID))
			continue
		}
		die := c.Die
		if die >= 0 {
			if die = slices.Index(dies[c.Socket], c.Die); die < 0 {
				die = len(dies[c.Socket])
				dies[c.Socket] = append(dies[c.Socket], c.Die)
			}
		}
		lines = append(lines, fmt.Sprintf("cpu %d %d %d %d %d %s %s %s", c.ID, c.Socket, die, c.Core, c.Node,
			c.Siblings, c.L2, c.L3))
	}
	for i := range m.Nodes {
		lines = append(lines, fmt.Sprintf("node %d %v", m.Nodes[i].ID, m.Nodes[i].Distances))
	}
	var nics []string
	for i := range m.NICs {
		nics = append(nics, fmt.Sprintf("nic %s %d", m.NICs[i].Address, m.NICs[i].Node))
	}
	slices.Sort(nics)
	sum := sha256.Sum256([]byte(strings.Join(append(lines, nics...), "\n")))
	return hex.EncodeToString(sum[:6])
}
