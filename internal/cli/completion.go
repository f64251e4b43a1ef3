// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/input"
)

func newCompletionCmd() *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	cmd := &cobra.Command{
		Use: "completion SHELL", Short: "Print the completion script of a shell", Args: arguments, ValidArgs: shells,
		Long: "Print the completion script of a shell: bash, zsh or fish. Names come from the running daemon.",
		Example: `  source <(corelane completion bash)
  corelane completion fish > ~/.config/fish/completions/corelane.fish`,
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return cmd.Root().GenBashCompletionV2(out, true)
			case "zsh":
				return cmd.Root().GenZshCompletion(out)
			case "fish":
				return cmd.Root().GenFishCompletion(out, true)
			}
			return input.Errorf("shell", "bash, zsh, fish", "'%s' is unknown", args[0])
		},
	}
	return cmd
}
