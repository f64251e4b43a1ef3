// SPDX-License-Identifier: Apache-2.0

// Package screen redraws a text on a terminal at an interval.
package screen

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/corelane/corelane/internal/input"
)

// LeastInterval is the shortest interval between two frames.
const LeastInterval = 100 * time.Millisecond

// Interval is the pflag.Value of an interval between two frames: "1s", "500ms", or a number of seconds.
type Interval struct{ To *time.Duration }

func (v *Interval) String() string { return "" }
func (v *Interval) Type() string   { return "interval" }

func (v *Interval) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		var s float64
		s, err = strconv.ParseFloat(text, 64)
		d = time.Duration(s * float64(time.Second))
	}
	if err != nil || d < LeastInterval {
		return input.Errorf("watch", "500ms, 2s, or 2 for seconds", "'%s' is not an interval of 100ms or more", text)
	}
	*v.To = d
	return nil
}

// Redraw replaces the last block on the screen, and cuts the new one to the size of the screen.
func Redraw(f *os.File, block string) error {
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
