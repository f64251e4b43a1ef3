// SPDX-License-Identifier: Apache-2.0
package result

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Ceiling is the router that only takes frames and returns them: its rate is the most that the machine can do.
const Ceiling = "testpmd"

// Key identifies a run within a result.
type Key struct {
	Scenario string `json:"scenario"`
	Router   string `json:"router"`
	Flows    int    `json:"flows"`
	Routes   int    `json:"routes"`
	Sizes    string `json:"frame_sizes"` // as of Sizes
	Workers  int    `json:"workers"`
}

// Key of the run.
func (r *Run) Key() Key {
	return Key{r.Scenario, r.Router, r.Flows, r.Routes, Sizes(r.FrameSizes), r.Workers}
}

func (k Key) String() string {
	return fmt.Sprintf("%s on %s (%s, %s, %s bytes, %s)", k.Scenario, k.Router, plural(k.Flows, "flow"),
		plural(k.Routes, "route"), k.Sizes, plural(k.Workers, "worker"))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Sizes writes a list of frame sizes in short: "64", "7x64+4x570+1518".
func Sizes(list []int) string {
	var parts []string
	for rest := list; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(size int) bool { return size != rest[0] })
		if n < 0 {
			n = len(rest)
		}
		part := strconv.Itoa(rest[0])
		if n > 1 && n < len(list) {
			part = strconv.Itoa(n) + "x" + part
		}
		parts, rest = append(parts, part), rest[n:]
	}
	return strings.Join(parts, "+")
}
