// SPDX-License-Identifier: Apache-2.0
package cli

import "github.com/spf13/cobra"

func newPlanCmd(a *app) *cobra.Command {
	cmd := noun("plan", "Plans of which CPU does what", newPlanMake(a), newPlanShow(a), newPlanExplain(a),
		newPlanCheck(a), newPlanExport(a), newPlanImport(a))
	cmd.Long = `A plan gives each CPU of a machine one role, with the reason: forwarding, isolated-rx and host-path
workers, service and control threads, guests' vCPUs, their emulator threads, housekeeping for the host, or idle. A
plan is a file and changes nothing by itself: it is made from a request, shown, edited, checked, and applied by
'corelane cores apply'.`
	return cmd
}
