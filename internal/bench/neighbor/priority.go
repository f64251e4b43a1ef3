// SPDX-License-Identifier: Apache-2.0
package neighbor

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/procfs"
)

// Real-time priorities during a trial: other programs on these CPUs then change nothing. Everything that polls has the
// lower one, so that it does not delay the router's master and the calls of the API.
const (
	polls   = 1
	serves  = 2
	regular = 0
)

// prioritize gives real-time priority to all threads that take part in a trial, or takes it back.
func (b *bed) prioritize(on bool) error {
	sender, err := b.generator.Sender()
	if err != nil {
		return err
	}
	pollers := []int{sender, int(b.worker)}
	for _, tid := range pollers { // before the others, which would have to wait for a poller on their CPU
		err = errors.Join(err, setPriority(tid, choose(on, polls)))
	}
	for _, pid := range []int{b.PID(), b.generator.Pid(), b.host.Pid(), os.Getpid()} {
		threads, e := procfs.Host.Threads(pid)
		err = errors.Join(err, e)
		for _, tid := range threads {
			if !slices.Contains(pollers, tid) {
				err = errors.Join(err, setPriority(tid, choose(on, serves)))
			}
		}
	}
	return err
}

func choose(on bool, priority uint32) uint32 {
	if on {
		return priority
	}
	return regular
}

func setPriority(tid int, priority uint32) error {
	attr := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Priority: priority}
	if priority != regular {
		attr.Policy, attr.Flags = unix.SCHED_FIFO, unix.SCHED_FLAG_RESET_ON_FORK // programs started later are regular
	}
	if err := unix.SchedSetAttr(tid, attr, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("priority of thread %d: %w", tid, err)
	}
	return nil
}
