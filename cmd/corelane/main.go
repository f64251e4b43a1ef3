// SPDX-License-Identifier: Apache-2.0

// corelane is the command that people type; internal/cli holds what it does.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/corelane/corelane/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.New(os.Stdout, os.Stderr, cli.Dial).Run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
