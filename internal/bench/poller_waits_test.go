// SPDX-License-Identifier: Apache-2.0
package bench

import (
	"fmt"
	"testing"
)

func TestWaiting(t *testing.T) {
	files := map[string]string{}
	thread := func(pid, tid, parent int, name, cpus, schedstat string) {
		dir := fmt.Sprintf("proc/%d/task/%d/", pid, tid)
		text := fmt.Sprintf("Name:\t%s\nPPid:\t%d\nCpus_allowed:\t3\nCpus_allowed_list:\t%s\n", name, parent, cpus)
		files[dir+"status"], files[dir+"schedstat"] = text, schedstat
		if pid == tid {
			files[fmt.Sprintf("proc/%d/status", pid)] = text
		}
	}
	thread(10, 10, 5, "corelaned", "0", "1 1000 1\n")
	thread(10, 11, 5, "pmd-fwd-1", "1", "1 300 1\n")
	thread(20, 20, 5, "corelane-gen", "0-1", "1 1000 1\n")
	thread(20, 21, 5, "gen-poll", "0", "1 40 1\n")
	thread(20, 22, 5, "gen-round-trip", "1", "1 1000 1\n")
	thread(30, 30, 6, "somebody", "1", "1 1000 1\n")
	thread(40, 40, 5, "pmd-c01", "1", "1 2 1\n")
	thread(50, 50, 5, "pmd-odd", "1", "")
	p := &placement{routers: []int{1}, generator: 0}
	if got := fmt.Sprint(p.waiting(machine(t, files), 5)); got != "map[0:40ns 1:302ns]" {
		t.Error(got)
	}
	if got := p.waiting(t.TempDir(), 5); len(got) != 0 {
		t.Error(got)
	}
}
