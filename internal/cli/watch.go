// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/corelane/corelane/internal/api"
	"github.com/corelane/corelane/internal/input"
)

const leastInterval = 100 * time.Millisecond

// watchable adds --watch to a command that shows something.
func (a *app) watchable(cmd *cobra.Command) *cobra.Command {
	f := cmd.Flags().VarPF(&intervalValue{&a.interval}, "watch", "", "show again every so often (1s, 500ms, 5); counters as rates per second")
	f.NoOptDefVal = "1s"
	return cmd
}

type intervalValue struct{ d *time.Duration }

func (v *intervalValue) String() string { return "" }
func (v *intervalValue) Type() string   { return "interval" }

func (v *intervalValue) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		var s float64
		s, err = strconv.ParseFloat(text, 64)
		d = time.Duration(s * float64(time.Second))
	}
	if err != nil || d < leastInterval {
		return input.Errorf("watch", "an interval from 100ms on, as in --watch=2s", "'%s' is not right", text)
	}
	*v.d = d
	return nil
}

// repeat runs frame once or, with --watch, until interrupted: redrawn on a screen, else one block after the other.
// Once something has been shown, a daemon that is away is waited for.
func (a *app) repeat(ctx context.Context, frame func(w io.Writer, watching bool) error) error {
	if a.interval == 0 {
		return frame(a.stdout, false)
	}
	tick := time.NewTicker(a.interval)
	defer tick.Stop()
	screen := isTerminal(a.stdout) && !a.plain
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
			if err := a.show(&block, screen, first); err != nil {
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

func (a *app) show(block *bytes.Buffer, screen, first bool) error {
	switch {
	case screen:
		return redraw(a.stdout.(*os.File), block.String())
	case !first && !a.json():
		if _, err := io.WriteString(a.stdout, "\n"); err != nil {
			return err
		}
	}
	_, err := block.WriteTo(a.stdout)
	return err
}

// redraw puts the block over the last one, cut to the size of the screen.
func redraw(f *os.File, block string) error {
	lines := strings.Split(strings.TrimSuffix(block, "\n"), "\n")
	if width, height, err := term.GetSize(int(f.Fd())); err == nil && height > 1 && width > 0 {
		if more := len(lines) - (height - 2); len(lines) > height-1 {
			lines = append(lines[:height-2], fmt.Sprintf("... %d more lines", more))
		}
		for i, line := range lines {
			if r := []rune(line); len(r) > width {
				lines[i] = string(r[:width])
			}
		}
	}
	const home, endOfLine, below = "\x1b[H", "\x1b[K\n", "\x1b[J"
	_, err := io.WriteString(f, home+strings.Join(lines, endOfLine)+endOfLine+below)
	return err
}
