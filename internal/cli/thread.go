// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

var threadListing = listing[*apiv1.Thread]{
	key: func(t *apiv1.Thread) string { return strconv.Itoa(int(t.Tid)) },
	columns: []column[*apiv1.Thread]{
		text("name", (*apiv1.Thread).GetName),
		number("tid", func(t *apiv1.Thread) int { return int(t.Tid) }),
		text("role", func(t *apiv1.Thread) string { return limits.EnumText(t.Role) }),
		text("planned cpus", (*apiv1.Thread).GetPlanned),
		text("allowed", (*apiv1.Thread).GetAllowed),
		number("last cpu", func(t *apiv1.Thread) int { return int(t.Cpu) }),
		text("state", threadState),
		counter("voluntary", (*apiv1.Thread).GetVoluntarySwitches),
		counter("involuntary", (*apiv1.Thread).GetInvoluntarySwitches),
		number("moved back", (*apiv1.Thread).GetMovedBack),
	},
}

func newThreadCmd(a *app) *cobra.Command {
	list := newList(a, "List all threads of the daemon with their CPUs",
		"  corelane thread list\n  corelane thread list --watch", threadListing,
		listOf(a, apiv1.NewThreadsClient, apiv1.ThreadsClient.List, &apiv1.ThreadListRequest{}))
	list.Long = `List all threads of the daemon, also those of libraries: the CPUs that the plan gives to each, the
CPUs on which the kernel lets it run, the CPU where it ran last, and how often it gave up its CPU (voluntary) or was
preempted (involuntary). Each second the daemon moves back threads that may run elsewhere, and counts that; 'corelane
event list' says when and from where.`
	return noun("thread", "Threads of the daemon and the CPUs that they run on", list)
}

// threadState is the kernel's letter of the state, followed by what is wrong.
func threadState(t *apiv1.Thread) string {
	switch {
	case t.StalledMs > 0:
		return t.State + " stalled for " + strconv.Itoa(int(t.StalledMs)) + " ms"
	case t.Displaced:
		return t.State + " displaced"
	}
	return t.State
}
