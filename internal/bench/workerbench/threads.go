// SPDX-License-Identifier: Apache-2.0
package workerbench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const sender = "gen-poll" // thread of the generator

// threads returns the names of a process's threads by their ids.
func threads(root string, pid int) map[int]string {
	found := map[int]string{}
	dirs, _ := filepath.Glob(filepath.Join(root, "proc", strconv.Itoa(pid), "task/*"))
	for _, dir := range dirs {
		tid, err := strconv.Atoi(filepath.Base(dir))
		name, readErr := os.ReadFile(filepath.Join(dir, "comm"))
		if err == nil && readErr == nil {
			found[tid] = strings.TrimSpace(string(name))
		}
	}
	return found
}

// keepOff moves all threads of the generator except the sender to a CPU. Beside polling threads with real-time
// priority they would not run.
func keepOff(root string, pid, cpu int) (err error) {
	var set unix.CPUSet
	found := false
	set.Set(cpu)
	for t, name := range threads(root, pid) {
		if name == sender {
			found = true
			continue
		}
		if e := unix.SchedSetaffinity(t, &set); e != nil && !errors.Is(e, unix.ESRCH) {
			err = errors.Join(err, fmt.Errorf("thread %s of the generator: CPU %d: %w", name, cpu, e))
		}
	}
	if !found {
		err = errors.Join(err, fmt.Errorf("the generator has no thread %s", sender))
	}
	return err
}
