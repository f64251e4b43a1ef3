package cli

import "github.com/spf13/cobra"

func newIntrudeMatrix(a *app) *cobra.Command { return noun("matrix", "x") }
func newIntrudeVhost(a *app) *cobra.Command  { return noun("vhost", "x") }
