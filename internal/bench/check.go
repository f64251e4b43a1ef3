// SPDX-License-Identifier: Apache-2.0
package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/measure"
	"github.com/corelane/corelane/internal/stat"
)

// The check of the work runs at a rate that any router keeps up with, so that a failure is not a matter of load.
const (
	checkRate     = 20000 // frames per second
	checkLeast    = 2000
	checkMost     = 20000
	checkAttempts = 5 // caches are cold at first, and other work may disturb
	checkLoss     = 0.01
)

// check returns an error unless the router does the scenario's work: frames come back, with the expected headers.
func (l *contender) check(ctx context.Context) (err error) {
	spec := &apiv1.GeneratorTrial{Packets: uint64(min(max(2*l.run.Flows, checkLeast), checkMost)),
		PacketsPerSecond: checkRate, Verify: apiv1.GeneratorVerify_GENERATOR_VERIFY_ALL}
	for range checkAttempts {
		waited := l.waiting()
		t, e := l.generator.Run(ctx, spec, nil)
		if e != nil {
			return e
		}
		l.tscHz = t.TscHz
		l.run.Checked += t.Received
		if err = cmp.Or(wrong(t, l.profile, l.decode), silent(t, l.decode), losing(t, l.decode)); err == nil {
			return nil
		}
		if others := measure.Others(stat.GrownBy(l.waiting(), waited)); len(others) > 0 {
			err = fmt.Errorf("%w; meanwhile %s", err, strings.Join(others, ", "))
		}
		time.Sleep(l.settle)
	}
	return err
}

// losing is an error when a router loses frames although the rate is low.
func losing(t *apiv1.GeneratorWindow, decode func([]byte) string) error {
	lost := t.Lost + t.NoRoom
	if float64(lost) <= checkLoss*float64(t.Due) {
		return nil
	}
	err := fmt.Errorf("%d of %d frames are lost at %d frames per second", lost, t.Due, checkRate)
	if t.Foreign > 0 {
		err = fmt.Errorf("%w; the generator received %d others, the first one %s", err, t.Foreign,
			decode(t.ForeignFrame))
	}
	return err
}

// silent is an error when a router sends nothing back.
func silent(t *apiv1.GeneratorWindow, decode func([]byte) string) error {
	switch {
	case t.Sent == 0:
		return errors.New("the router takes no frames")
	case t.Received == 0 && t.Foreign > 0:
		return fmt.Errorf("none of %d frames came back, but %d others, the first one %s", t.Sent, t.Foreign,
			decode(t.ForeignFrame))
	case t.Received == 0:
		return fmt.Errorf("none of %d frames came back", t.Sent)
	}
	return nil
}

// wrong is an error when a trial received frames that are not as expected.
func wrong(t *apiv1.GeneratorWindow, p *apiv1.GeneratorProfile, decode func([]byte) string) error {
	switch {
	case t.WrongHeader > 0:
		return fmt.Errorf("%d frames have a wrong header, the first one %s", t.WrongHeader, difference(t, p, decode))
	case t.Misplaced > 0:
		return fmt.Errorf("%d frames left by the wrong port", t.Misplaced)
	case t.Corrupt > 0:
		return fmt.Errorf("%d frames were damaged", t.Corrupt)
	case t.Duplicated > 0:
		return fmt.Errorf("%d frames were received twice", t.Duplicated)
	}
	return nil
}

// difference describes the first wrong frame and its first byte that is not as its stream expects.
func difference(t *apiv1.GeneratorWindow, p *apiv1.GeneratorProfile, decode func([]byte) string) string {
	text := fmt.Sprintf("in %s: %s", t.WrongStream, decode(t.WrongFrame))
	for _, s := range p.Streams {
		if s.Name != t.WrongStream {
			continue
		}
		for i, want := range s.Expected {
			if i >= len(t.WrongFrame) {
				return fmt.Sprintf("%s; it has %d bytes", text, i)
			}
			if i < len(s.ExpectedMask) && (t.WrongFrame[i]^want)&s.ExpectedMask[i] != 0 {
				return fmt.Sprintf("%s; byte %d is 0x%02x, not 0x%02x", text, i, t.WrongFrame[i], want)
			}
		}
	}
	return text
}
