// SPDX-License-Identifier: Apache-2.0
package explain

import "fmt"

var injectedDelay = row{
	kind: Delay, colour: "own",
	means: "`corelane debug delay` makes each loop of the worker longer",
	known: "the delay that the daemon reports",
	always: func(a *account) {
		if ns := int64(a.w.DelayUS) * 1000; ns > 0 {
			a.add(culprit{kind: Delay, name: "corelane debug delay"}, ns*int64(a.w.Loops), int64(a.w.Loops), ns)
		}
	},
	loop:  func(l *LongLoop) (int64, string) { return l.DelayNS, "corelane debug delay" },
	grade: counted,
	describe: func(s *scene, c *Cause) {
		c.Title = fmt.Sprintf("a delay of %d us is injected into each loop of %s", s.w.DelayUS, s.w.label())
	},
	remedy: func(s *scene, c *Cause) {
		c.Fix = fmt.Sprintf("corelane debug delay --worker %d --us 0", s.w.ID)
	},
}
