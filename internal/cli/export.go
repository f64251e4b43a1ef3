// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/state"
)

func newExportCmd(a *app) *cobra.Command {
	var schema bool
	cmd := verb("export", "Write the file that recreates this node",
		`  corelane export > node.yaml
  corelane export --schema > node.schema.json`,
		func(ctx context.Context, _ []string) error {
			if schema {
				text, err := state.Schema()
				if err != nil {
					return err
				}
				_, err = a.stdout.Write(text)
				return err
			}
			return a.export(ctx)
		})
	cmd.Long = `Write the configured state of the running node as YAML, in a fixed order: the file that apply reads.
Objects that the daemon makes by itself are left out: connected and guest routes, learnt addresses, its own next hops.`
	cmd.Flags().BoolVar(&schema, "schema", false, "write the JSON Schema of the file instead")
	return cmd
}

func (a *app) export(ctx context.Context) error {
	if a.json() {
		return input.Errorf("output", "table", "export writes YAML only, which is what apply reads")
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	s, err := state.Read(ctx, c)
	if err != nil {
		return err
	}
	return state.Write(a.stdout, s)
}
