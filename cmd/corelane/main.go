// SPDX-License-Identifier: Apache-2.0

// corelane is the command that users type; internal/cli does the work.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/corelane/corelane/internal/cli"
)

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals) // a second one ends the program at once
		cancel(cli.ErrInterrupted)
	}()
	os.Exit(cli.New(os.Stdout, os.Stderr, cli.Dial).Run(ctx, os.Args[1:]))
}
