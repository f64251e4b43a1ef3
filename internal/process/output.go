// SPDX-License-Identifier: Apache-2.0
package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/corelane/corelane/internal/namespace"
)

// Output runs the command to its end, with this input, and returns what it prints, also when it fails. The error has
// the first line of its error output. Log and Enroll are not used.
func (c *Command) Output(ctx context.Context, input []byte) (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &errs
	cmd.WaitDelay = time.Second // its children may hold the pipes
	err := namespace.OnThread(func() error {
		if err := c.confine(); err != nil {
			return err
		}
		return cmd.Run()
	})
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(c.Argv[:min(len(c.Argv), 6)], " "), err)
		if why, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n"); why != "" {
			err = fmt.Errorf("%w: %s", err, why)
		}
	}
	return out.String(), err
}
