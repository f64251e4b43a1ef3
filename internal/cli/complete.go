// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// names lists the words that fit a place of the command line, each as "name\tdescription".
type names func(context.Context, *app) ([]string, error)

// Completion must not hang the shell.
const completeTimeout = 2 * time.Second

// fixed names need no daemon.
func fixed(list ...string) names {
	return func(context.Context, *app) ([]string, error) { return list, nil }
}

// complete offers the names of each position; the last one also for all that follow. Silent when there is no daemon.
func (a *app) complete(positions ...names) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		i := len(args)
		if i >= len(positions) {
			if !strings.Contains(cmd.Use, "...") || len(positions) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			i = len(positions) - 1
		}
		return a.offer(cmd.Context(), positions[i], prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlag offers names for a flag's value.
func (a *app) completeFlag(cmd *cobra.Command, flag string, n names) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, prefix string) ([]string,
		cobra.ShellCompDirective) {
		return a.offer(cmd.Context(), n, prefix), cobra.ShellCompDirectiveNoFileComp
	})
}

func (a *app) offer(ctx context.Context, n names, prefix string) []string {
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	all, err := n(ctx, a)
	if err != nil {
		return nil
	}
	var some []string
	for _, name := range all {
		if strings.HasPrefix(name, prefix) {
			some = append(some, name)
		}
	}
	return some
}
