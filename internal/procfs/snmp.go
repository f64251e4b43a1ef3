// SPDX-License-Identifier: Apache-2.0
package procfs

import (
	"strconv"
	"strings"
)

// ParseSNMP reads counters like "UdpRcvbufErrors" from /proc/net/snmp, where names and values are in two lines for each
// protocol, and from /proc/net/snmp6, where each counter has a line. Values that are not counts (MaxConn may be -1) are
// left out.
func ParseSNMP(text string) map[string]uint64 {
	counters := map[string]uint64{}
	add := func(name, value string) {
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			counters[name] = n
		}
	}
	var names []string
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 2 && !strings.HasSuffix(words[0], ":"):
			add(words[0], words[1])
		case len(words) > 1 && len(names) == len(words) && names[0] == words[0]:
			for i := range words[1:] {
				add(strings.TrimSuffix(words[0], ":")+names[i+1], words[i+1])
			}
			names = nil
		default:
			names = words
		}
	}
	return counters
}
