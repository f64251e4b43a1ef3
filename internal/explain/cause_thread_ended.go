// SPDX-License-Identifier: Apache-2.0
package explain

import "fmt"

var threadEnded = row{
	kind: ThreadEnded, colour: "thread",
	means: "a thread that was to be watched (`--thread`) ended before the window did",
	known: "/proc at the beginning and at the end of the window",
	answers: func(f *findings) (out []Cause) {
		for _, w := range f.e.Workers {
			if w.Ended {
				out = append(out, Cause{Kind: ThreadEnded, Worker: w.ID, CPU: w.CPU, Name: w.Thread, Grade: Seen})
			}
		}
		f.ended = len(out) > 0
		return out
	},
	describe: func(s *scene, c *Cause) {
		c.Title = fmt.Sprintf("%s ended during the window", s.w.label())
		c.fact(Seen, "thread %d ran when the window began, and no longer when it ended", s.w.TID)
	},
	noRemedy: "the log of its program may say why it ended; watch the thread that replaces it",
}
