// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/api"
	"github.com/corelane/corelane/internal/cli/screen"
)

// watchable adds --watch to a command that shows something.
func (a *app) watchable(cmd *cobra.Command) *cobra.Command {
	f := cmd.Flags().VarPF(&screen.Interval{To: &a.interval}, "watch", "",
		"refresh at this interval (1s, 500ms, 5); counters become rates per second")
	f.NoOptDefVal = "1s"
	return cmd
}

// repeat runs frame once or, with --watch, until interrupted. It redraws a terminal; elsewhere blocks follow each
// other. After the first frame it waits for a daemon that goes away.
func (a *app) repeat(ctx context.Context, frame func(w io.Writer, watching bool) error) error {
	if a.interval == 0 {
		return frame(a.stdout, false)
	}
	tick := time.NewTicker(a.interval)
	defer tick.Stop()
	onScreen := isTerminal(a.stdout) && !a.plain
	for first := true; ; first = false {
		var block bytes.Buffer
		err := frame(&block, true)
		var gone *api.Unavailable
		if errors.As(err, &gone) && !first {
			block.Reset()
			fmt.Fprintln(&block, err)
		} else if err != nil && ctx.Err() == nil {
			return err
		}
		if ctx.Err() == nil {
			if err := a.show(&block, onScreen, first); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (a *app) show(block *bytes.Buffer, onScreen, first bool) error {
	switch {
	case onScreen:
		return screen.Redraw(a.stdout.(*os.File), block.String())
	case !first && !a.json():
		if _, err := io.WriteString(a.stdout, "\n"); err != nil {
			return err
		}
	}
	_, err := block.WriteTo(a.stdout)
	return err
}
