// SPDX-License-Identifier: Apache-2.0
package explain

import "fmt"

var ownWork = row{
	kind: OwnWork, colour: "own",
	means: "the worker spent a long time at once on configuration changes or on ageing tables",
	known: "the longest loops of the worker",
	always: func(a *account) {
		for i := range a.w.LongLoops {
			l := &a.w.LongLoops[i]
			if who, ok := classifyLoop(l); ok && who.kind == OwnWork {
				a.add(culprit{kind: OwnWork, name: "messages"}, l.MessagesNS, 1, l.MessagesNS)
			}
		}
	},
	loop:  func(l *LongLoop) (int64, string) { return l.MessagesNS, "configuration changes, ageing" },
	grade: counted,
	describe: func(s *scene, c *Cause) {
		c.Title = fmt.Sprintf("%s was busy with configuration changes or with ageing", s.w.label())
		c.Why = "workers take part in configuration changes and in ageing between two polls; the daemon records " +
			"only the longest loops, so there may be more"
	},
	noRemedy: "make changes in smaller steps, or when there is less traffic",
}
