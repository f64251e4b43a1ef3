// SPDX-License-Identifier: Apache-2.0
package procfs

import "strings"

// ParseUnixListeners returns the paths of the sockets in /proc/net/unix on which a process listens. A line has the
// fields "address: references protocol flags type state inode path".
func ParseUnixListeners(text string) (paths []string) {
	const accepting = "00010000" // __SO_ACCEPTCON, linux/net.h
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 8 && f[3] == accepting {
			paths = append(paths, f[7])
		}
	}
	return paths
}
