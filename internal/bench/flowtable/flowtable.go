// SPDX-License-Identifier: Apache-2.0

// Package flowtable measures ways to find a packet's flow: it runs corelane-flow-bench and sorts its figures.
package flowtable

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const program = "corelane-flow-bench"

// Options of one run.
type Options struct {
	Bin         string // folder of corelane-flow-bench
	Quick, IPv6 bool
	Sizes       []int // slots, as powers of two; none: the program's choice
	Loads       []int // used slots in per cent
	CPU         int   // -1: any
}

// Figure is one measurement of one back end: cycles of the time-stamp counter per lookup, or flows per second.
type Figure struct {
	What      string  `json:"what"` // lookup, insert, remove
	Backend   string  `json:"backend"`
	Text      string  `json:"text"`
	Flows     int     `json:"flows"`
	Slots     int     `json:"slots"`
	Load      int     `json:"load"`
	Family    string  `json:"family"`
	Hit       int     `json:"hit"`
	Batch     int     `json:"batch,omitempty"`
	Cycles    float64 `json:"cycles,omitempty"` // median of the windows
	Low       float64 `json:"low,omitempty"`    // their 10th and 90th percentile
	High      float64 `json:"high,omitempty"`
	PerSecond float64 `json:"per_second,omitempty"`
}

// Result of one run.
type Result struct {
	TSC       float64  `json:"tsc_hz"`
	Hugepages bool     `json:"hugepages"` // DPDK's table has hugepages; else it has pages of 4 KiB
	Notes     []string `json:"notes,omitempty"`
	Figures   []Figure `json:"figures"`
}

// Run runs the program and also passes each figure to seen.
func Run(ctx context.Context, o Options, seen func(Figure)) (*Result, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(o.Bin, program), o.arguments()...)
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	r, readErr := read(out, seen)
	err = errors.Join(readErr, cmd.Wait())
	if text := strings.TrimSpace(stderr.String()); text != "" {
		r.Notes = strings.Split(text, "\n")
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w: %s", program, err, strings.Join(r.Notes, "; "))
	}
	return r, nil
}

func (o *Options) arguments() []string {
	args := []string{"--cpu", strconv.Itoa(o.CPU)}
	if o.Quick {
		args = append(args, "--quick")
	}
	if o.IPv6 {
		args = append(args, "--ipv6")
	}
	if len(o.Sizes) > 0 {
		args = append(args, "--slots", list(o.Sizes))
	}
	if len(o.Loads) > 0 {
		args = append(args, "--load", list(o.Loads))
	}
	return args
}

func list(values []int) string {
	var text []string
	for _, v := range values {
		text = append(text, strconv.Itoa(v))
	}
	return strings.Join(text, ",")
}

func read(in io.Reader, seen func(Figure)) (*Result, error) {
	r := &Result{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var f Figure
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			return r, fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		if f.What == "machine" {
			if err := json.Unmarshal(lines.Bytes(), r); err != nil {
				return r, err
			}
			continue
		}
		r.Figures = append(r.Figures, f)
		if seen != nil {
			seen(f)
		}
	}
	return r, lines.Err()
}
