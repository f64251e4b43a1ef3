// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/corelane/corelane/internal/api"
	"github.com/corelane/corelane/internal/input"
)

// bulk sends the objects of a file in batches. A line has the words of one object; # starts a comment.
type bulk[M any] struct {
	*app
	what  string // "routes"
	most  int    // objects in a request
	parse func(words []string) (M, error)
	send  func(ctx context.Context, batch []M) (changed uint32, err error)
	reply func(changed uint32) proto.Message

	name  string // of the file
	lines []int  // the line of each object of the batch
	batch []M
	count uint64
	begun time.Time
	shown time.Time
}

// file sends the objects of all lines of a file.
func (b *bulk[M]) file(ctx context.Context, name string) error {
	in := b.stdin
	if b.name = name; name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return input.Errorf("--file", "a file, or - for standard input", "%v", err)
		}
		defer f.Close()
		in = f
	}
	b.begun = time.Now()
	err := b.read(ctx, in)
	if err == nil {
		err = b.flush(ctx)
	}
	if isTerminal(b.stderr) {
		b.progress(true)
	}
	if err != nil {
		return b.progressError(err)
	}
	return b.app.done(b.reply(uint32(b.count)), nil)
}

func (b *bulk[M]) read(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		object, err := b.parse(words)
		if err != nil {
			return b.at(n, err)
		}
		b.batch, b.lines = append(b.batch, object), append(b.lines, n)
		if len(b.batch) == b.most {
			if err := b.flush(ctx); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

func (b *bulk[M]) flush(ctx context.Context) error {
	if len(b.batch) == 0 {
		return nil
	}
	changed, err := b.send(ctx, b.batch)
	var refused *api.Error
	if errors.As(err, &refused) && int(refused.Index) < len(b.lines) {
		return b.at(b.lines[refused.Index], err)
	}
	if err != nil {
		return err
	}
	b.count += uint64(changed)
	b.batch, b.lines = b.batch[:0], b.lines[:0]
	if isTerminal(b.stderr) && time.Since(b.shown) > 200*time.Millisecond {
		b.progress(false)
	}
	return nil
}

func (b *bulk[M]) at(line int, err error) error { return fmt.Errorf("%s:%d: %w", b.name, line, err) }

// progressError adds to an error how many objects were changed before it: batches are not undone.
func (b *bulk[M]) progressError(err error) error {
	return fmt.Errorf("%w (%d %s before it were changed, none after)", err, b.count, b.what)
}

func (b *bulk[M]) progress(last bool) {
	b.shown = time.Now()
	end := map[bool]string{true: "\n"}[last]
	fmt.Fprintf(b.stderr, "\r%d %s, %.0f %s/s%s", b.count, b.what, float64(b.count)/b.shown.Sub(b.begun).Seconds(),
		b.what, end)
}
