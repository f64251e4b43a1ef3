// SPDX-License-Identifier: Apache-2.0
package workerbench

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
	"strings"

	"github.com/corelane/corelane/internal/bench/workerresult"
)

const scaleProgram = "corelane-scale-bench"

// window is one line of the program's output.
type window struct {
	What     string  `json:"what"`
	Kind     string  `json:"kind"`
	Stateful bool    `json:"stateful"`
	Workers  int     `json:"workers"`
	Cycles   float64 `json:"cycles"`
}

func measureScaling(ctx context.Context, s *workersRun) error {
	s.Step("scaling: cycles per packet of 1 to 16 workers", stepTime)
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(s.Bin, scaleProgram), s.scaleArguments()...)
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w; 'make build' builds it", scaleProgram, err)
	}
	list, readErr := readScaling(out)
	if err = errors.Join(readErr, cmd.Wait()); err != nil {
		return fmt.Errorf("%s: %w: %s", scaleProgram, err, strings.TrimSpace(stderr.String()))
	}
	s.result.Scaling = list
	return nil
}

func (o *Options) scaleArguments() []string {
	ms := o.Trial.Milliseconds() / 5
	return []string{"--cpus", fmt.Sprintf("%d,%d", o.WorkerCPU, o.Generator), "--rounds", fmt.Sprint(o.Repetitions),
		"--window-ms", fmt.Sprint(max(20, ms)), "--control"}
}

func readScaling(in io.Reader) (list []workerresult.Scale, err error) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var w window
		if err := json.Unmarshal(lines.Bytes(), &w); err != nil {
			return list, fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		if w.What == "window" {
			list = workerresult.AddWindow(list, workerresult.Scale{Kind: w.Kind, Stateful: w.Stateful,
				Workers: w.Workers, Cycles: []float64{w.Cycles}})
		}
	}
	return list, lines.Err()
}
