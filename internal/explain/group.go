// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/corelane/corelane/internal/explain/kernel"
)

// member is one thread of a cause that stands for a group of threads.
type member struct {
	tid, pid, parent int
	name, parentName string
	ns               int64
}

// taker is a process that took a worker's time.
type taker struct {
	kind Kind
	pid  int
}

// group merges the causes that belong together, by the keys that their row gives: threads of one process, processes of
// one command and parent, and a process with those that it started. So their sum is judged, and has one remedy.
func (a *account) group() {
	roots := map[string]string{} // of each key, to a key of the same group
	var find func(string) string
	find = func(k string) string {
		if roots[k] == "" || roots[k] == k {
			return k
		}
		roots[k] = find(roots[k])
		return roots[k]
	}
	a.took = map[taker]bool{} // there may be thousands of causes: none of them looks at all others
	for _, c := range a.causes {
		if len(c.members) > 0 {
			a.took[taker{c.Kind, c.members[0].pid}] = true
		}
	}
	for _, c := range a.causes {
		if keysOf := rowOf(c.Kind).keysOf; keysOf != nil {
			keys := keysOf(a, c)
			for _, k := range keys {
				roots[find(k)] = find(keys[0])
			}
		}
	}
	first, merged := map[string]*Cause{}, map[*Cause]*Cause{}
	slices.SortStableFunc(a.causes, func(x, y *Cause) int { return cmp.Compare(y.LostNS, x.LostNS) })
	a.causes = slices.DeleteFunc(a.causes, func(c *Cause) bool {
		keysOf := rowOf(c.Kind).keysOf
		if keysOf == nil {
			return false
		}
		k := find(keysOf(a, c)[0])
		top := first[k]
		if top == nil {
			first[k] = c
			return false
		}
		top.LostNS, top.Times, top.Longest = top.LostNS+c.LostNS, top.Times+c.Times, max(top.Longest, c.Longest)
		top.members = append(top.members, c.members...)
		merged[c] = top
		return true
	})
	for key, c := range a.byKey {
		if top := merged[c]; top != nil {
			a.byKey[key] = top
		}
	}
	for _, c := range a.causes {
		if c.Threads = len(c.members); c.Threads == 1 {
			c.Threads = 0
		}
	}
}

// add adds the time of a thread to those that the cause stands for. A thread that has not left the CPU yet has a sum of
// its own, without its name.
func (c *Cause) add(e *Evidence, s *kernel.Sum) {
	for i := range c.members {
		if c.members[i].tid == s.ID {
			c.members[i].ns += s.NS
			return
		}
	}
	t := e.Host.Threads[s.ID]
	c.members = append(c.members, member{tid: s.ID, pid: cmp.Or(s.PID, t.PID, s.ID), parent: s.Parent,
		name: cmp.Or(s.Name, e.nameOf(s.ID)), parentName: cmp.Or(s.ParentName, t.Parent), ns: s.NS})
}

// who names a thread, or the group that it stands for.
func (c *Cause) who() string {
	if c.Threads == 0 {
		return fmt.Sprintf("%s (%d)", c.Name, c.TID)
	}
	if c.Threads == 2 {
		return fmt.Sprintf("%s (%d) and another thread like it", c.Name, c.TID)
	}
	return fmt.Sprintf("%s (%d) and %d other threads like it", c.Name, c.TID, c.Threads-1)
}

// starter returns the process that started most threads of a group, 0 if that is the kernel or the first process.
func (c *Cause) starter() (pid int, name string) {
	started := map[int]int{}
	for _, m := range c.members {
		started[m.parent]++
		if m.parent > kthreadd && (pid == 0 || started[m.parent] > started[pid]) {
			pid, name = m.parent, m.parentName
		}
	}
	return pid, name
}

// processes returns the pids of a group, those with the most time first.
func (c *Cause) processes() (out []int) {
	for _, m := range c.members {
		if !slices.Contains(out, m.pid) {
			out = append(out, m.pid)
		}
	}
	return out
}

const kthreadd = 2 // the parent of the kernel's threads; 1 is that of services and orphans
