// SPDX-License-Identifier: Apache-2.0
package explain

import "fmt"

var noAnswer = row{
	kind: NoAnswer, colour: "held",
	means: "corelaned does not answer, although nothing stopped its workers",
	known: "a request without an answer for three seconds, and the state of its main thread in /proc",
	answers: func(f *findings) []Cause {
		if !f.e.Silent || !f.wellBehaved() {
			return nil
		}
		return []Cause{{Kind: NoAnswer, Worker: -1, CPU: -1, Name: "corelaned", PID: f.e.Daemon, TID: f.e.Daemon,
			Grade: Counted}}
	},
	describe: func(s *scene, c *Cause) {
		t := s.e.Host.Threads[c.PID]
		c.Name = t.Name
		c.Title = fmt.Sprintf("%s (%d) does not answer; its main thread is in state %s", c.Name, c.PID, t.State)
		c.fact(Counted, "no answer within %v", answerTimeout)
		if ns := s.e.Host.Waited[c.PID]; ns > 0 {
			c.fact(Counted, "its main thread waited for a CPU for %s", duration(ns))
		}
		if h, ok := s.e.Host.Tasks[c.PID]; ok {
			c.fact(Counted, "its main thread used %s of CPU time", duration(h.Ticks*tickNS))
		}
		c.Why = "its main thread answers requests; workers forward without it"
	},
	remedy: func(s *scene, c *Cause) {
		c.FixNote = "look at what its main thread does:"
		c.Fix = fmt.Sprintf("cat /proc/%d/stack\njournalctl -u corelaned -n 20", c.PID)
	},
}
