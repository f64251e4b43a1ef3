// SPDX-License-Identifier: Apache-2.0
package process

import "os"

// gate holds a new process back until it has been enrolled. The process waits for a line on descriptor 3 before it
// becomes the program. When the other end of the pipe is closed first, which the kernel does when this program dies, it
// ends.
type gate struct{ hold, release *os.File }

const gateScript = `read -r go <&3 || exit 1; exec 3<&-; exec "$@"`

// gated returns the arguments to start the command with, and the gate: nil without Enroll.
func (c *Command) gated() ([]string, *gate, error) {
	if c.Enroll == nil {
		return c.Argv, nil, nil
	}
	hold, release, err := os.Pipe()
	return append([]string{"sh", "-c", gateScript, "sh"}, c.Argv...), &gate{hold, release}, err
}

func (g *gate) files() []*os.File {
	if g == nil {
		return nil
	}
	return []*os.File{g.hold}
}

// open enrolls the process and lets it begin.
func (g *gate) open(enroll func(pid int) error, pid int) error {
	if g == nil {
		return nil
	}
	if err := enroll(pid); err != nil {
		return err
	}
	_, err := g.release.WriteString("go\n")
	return err
}

// close ends a process that was not let through.
func (g *gate) close() {
	if g != nil {
		_ = g.hold.Close()
		_ = g.release.Close()
	}
}
