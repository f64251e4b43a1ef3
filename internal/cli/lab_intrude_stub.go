package cli

import "github.com/spf13/cobra"

func newIntrudeVhost(a *app) *cobra.Command  { return noun("vhost", "x") }
