// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/lab/intrude"
)

func newIntrudeTable(a *app) *cobra.Command {
	into := ""
	cmd := verb("table FILE...", "Make the table of docs/cores.md from runs of the matrix",
		"  corelane lab intrude matrix --runs 1 -o json > run.json\n"+
			"  corelane lab intrude table run.json\n"+
			"  corelane lab intrude table run.json again.json --into docs/cores.md", nil)
	cmd.Long = `Make a table of what explain said and what was measured, a line for each case, from files that
corelane lab intrude matrix -o json wrote, also those of runs that failed. Where several files have a case, the last
one counts.`
	cmd.ValidArgsFunction = nil // files
	cmd.RunE = func(_ *cobra.Command, names []string) error { return a.intrudeTable(names, into) }
	cmd.Flags().StringVar(&into, "into", "", "replace the table in this document")
	return cmd
}

func (a *app) intrudeTable(names []string, into string) error {
	var all []intrude.Outcome
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		all, err = intrude.Outcomes(all, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	table := intrude.Document(all)
	if into == "" {
		_, err := fmt.Fprint(a.stdout, table)
		return err
	}
	text, err := os.ReadFile(into)
	if err != nil {
		return err
	}
	changed, err := intrude.Into(string(text), table)
	if err != nil {
		return err
	}
	return os.WriteFile(into, []byte(changed), 0o644)
}
