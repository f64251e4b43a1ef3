// SPDX-License-Identifier: Apache-2.0
package host

import (
	"os/exec"
	"testing"
	"time"
)

// Of two busy processes on one CPU each waits while the other runs; a process that sleeps does neither.
func TestShares(t *testing.T) {
	var pids []int
	for _, script := range []string{"while :; do :; done", "while :; do :; done", "exec sleep 10"} {
		cmd := exec.Command("taskset", "-c", "0", "sh", "-c", script)
		if err := cmd.Start(); err != nil {
			t.Skip("needs taskset: ", err)
		}
		defer func() {
			_ = cmd.Process.Kill() // it has not ended
			_ = cmd.Wait()
		}()
		pids = append(pids, cmd.Process.Pid)
	}
	time.Sleep(100 * time.Millisecond) // they have become what they are to be
	shares := Root("/").Shares(append(pids, 1<<30), 300*time.Millisecond)
	for _, pid := range pids[:2] {
		if s := shares[pid]; len(s) != 1 || s[0].Waited < 0.2 || s[0].Ran > 0.8 || s[0].LastCPU != 0 {
			t.Errorf("busy: %+v", s)
		}
	}
	if s := shares[pids[2]]; len(s) != 1 || s[0].Waited > 0.1 || s[0].Ran > 0.1 || s[0].Name != "sleep" {
		t.Errorf("sleeping: %+v", s)
	}
}
