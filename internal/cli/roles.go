// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

var roleColumns = []column[api.Method]{
	text("method", api.Method.String),
	text("role", func(m api.Method) string { return limits.EnumText(m.Role) }),
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
		role := roleJSON{m.String(), limits.EnumText(m.Role), api.Groups[m.Role]}
		if err := json.NewEncoder(b).Encode(role); err != nil {
			return err
		}
	}
	return nil
}

func roleTexts() string {
	var b strings.Builder
	for values, i := apiv1.Role(0).Descriptor().Values(), 1; i < values.Len(); i++ {
		role := apiv1.Role(values.Get(i).Number())
		allows := proto.GetExtension(values.Get(i).Options(), apiv1.E_Allows)
		fmt.Fprintf(&b, "  %-11s %s\n", limits.EnumText(role), allows)
	}
	return b.String()
}

func newRolesCmd(a *app) *cobra.Command {
	cmd := verb("roles", "List the methods of the API and the role that a user needs for each", "  corelane roles",
		func(context.Context, []string) error {
			return buffered(a.stdout, func(b *bufio.Writer) error { return writeRoles(a, b) })
		})
	cmd.Long = `List the methods of the daemon's API, the role that a user needs for each, and the group whose members
have it, unless the daemon was started with other groups (--read-group, --operate-group, --admin-group).

` + roleTexts() + `
A role includes those above it. Root, and the user that the daemon runs as, administer. After a change of groups,
log in again. Restart the daemon after you create a group.`
	return cmd
}
