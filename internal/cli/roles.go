// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bufio"
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/api"
	"github.com/corelane/corelane/internal/cli/protoflag"
)

var roleColumns = []column[api.Method]{
	text("method", api.Method.String),
	text("role", func(m api.Method) string { return protoflag.EnumText(m.Role) }),
	text("group", func(m api.Method) string { return api.Groups[m.Role] }),
}

// roleJSON is a line of -o json.
type roleJSON struct {
	Method string `json:"method"`
	Role   string `json:"role"`
	Group  string `json:"group"`
}

func writeRoles(a *app, b *bufio.Writer) error {
	if !a.json() {
		return writeTable(a, b, roleColumns, api.Methods())
	}
	for _, m := range api.Methods() {
		role := roleJSON{m.String(), protoflag.EnumText(m.Role), api.Groups[m.Role]}
		if err := json.NewEncoder(b).Encode(role); err != nil {
			return err
		}
	}
	return nil
}

func newRolesCmd(a *app) *cobra.Command {
	cmd := verb("roles", "List the methods of the API and the role that a user needs for each", "  corelane roles",
		func(context.Context, []string) error {
			return buffered(a.stdout, func(b *bufio.Writer) error { return writeRoles(a, b) })
		})
	cmd.Long = `List the methods of the daemon's API, the role that a user needs for each, and the group whose members
have it, unless the daemon was started with other groups (--read-group, --operate-group, --admin-group).

  read        look at configuration, state, counters, events and flows
  operate     also capture and trace packets, end flows, move load between workers
  administer  also change the configuration, and see secrets

A role includes those above it. Root, and the user that the daemon runs as, administer. After a change of groups,
log in again. Restart the daemon after you create a group.`
	return cmd
}
