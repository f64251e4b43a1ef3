// SPDX-License-Identifier: Apache-2.0
package explain

import "fmt"

var ownWork = row{
	kind: OwnWork, colour: "own",
	means: "the worker carried out changes of the configuration, or aged tables, for long at once",
	known: "the longest of its loops",
	always: func(a *account) {
		for i := range a.w.LongLoops {
			l := &a.w.LongLoops[i]
			if kind, _ := classifyLoop(l); kind == OwnWork {
				a.add(culprit{kind: OwnWork, name: "messages"}, l.MessagesNS, 1, l.MessagesNS)
			}
		}
	},
	describe: func(s *scene, c *Cause) {
		c.Title = fmt.Sprintf("%s was busy with changes of its configuration", s.w.label())
		c.Why = "workers take part in changes and in ageing between two polls; the daemon keeps only the longest " +
			"loops, so there may be more"
	},
	noRemedy: "make changes in smaller steps, or when there is less traffic",
}
