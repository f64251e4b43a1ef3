// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// benchProgress shows the progress of a benchmark: as a bar on a terminal, else as lines.
type benchProgress struct {
	w      io.Writer
	screen bool
	now    func() time.Time
	stop   chan struct{}

	mu       sync.Mutex
	started  time.Time
	begun    time.Time     // of the step
	all      time.Duration // planned
	done     time.Duration // planned of the steps that have ended
	step     time.Duration // planned of this one
	text     string
	finished bool
}

func newBenchProgress(w io.Writer) *benchProgress {
	return &benchProgress{w: w, screen: isTerminal(w), now: time.Now, stop: make(chan struct{})}
}

// Begin starts the display; expected is the time that everything will take.
func (p *benchProgress) Begin(expected time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all, p.started, p.begun = expected, p.now(), p.now()
	if p.screen {
		go p.redraw()
	}
}

// Step begins a step.
func (p *benchProgress) Step(text string, expected time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += p.step
	p.text, p.step, p.begun = text, expected, p.now()
	if p.screen {
		p.draw()
		return
	}
	share, left := p.state()
	fmt.Fprintf(p.w, "[%3.0f %%, %s left] %s\n", 100*share, clock(left), text)
}

// Note prints a remark that the result also has.
func (p *benchProgress) Note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.screen {
		fmt.Fprint(p.w, clearLine)
	}
	fmt.Fprintln(p.w, "note: "+text)
	if p.screen && p.text != "" {
		p.draw()
	}
}

// end removes the bar.
func (p *benchProgress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.screen && !p.finished {
		close(p.stop)
		fmt.Fprint(p.w, clearLine)
	}
	p.finished = true
}

// state is the share that is done and the time left, at the pace so far.
func (p *benchProgress) state() (share float64, left time.Duration) {
	now := p.now()
	current := min(now.Sub(p.begun), p.step)
	if p.all <= 0 {
		return 0, 0
	}
	pace := 1.0
	if enough := 20 * time.Second; p.done > enough {
		pace = min(max(p.begun.Sub(p.started).Seconds()/p.done.Seconds(), 0.2), 5)
	}
	planned := max(0, p.all-p.done-current)
	return min(1, float64(p.done+current)/float64(p.all)), time.Duration(pace * float64(planned))
}

const (
	clearLine = "\r\x1b[K"
	barWidth  = 20
)

func (p *benchProgress) redraw() {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
			p.mu.Lock()
			if !p.finished {
				p.draw()
			}
			p.mu.Unlock()
		}
	}
}

func (p *benchProgress) draw() {
	columns := 80
	if f, ok := p.w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil {
			columns = n
		}
	}
	fmt.Fprint(p.w, clearLine+p.line(columns))
}

// line returns the bar, cut to the width of the terminal.
func (p *benchProgress) line(columns int) string {
	share, left := p.state()
	full := int(share * barWidth)
	line := fmt.Sprintf("[%s%s] %3.0f %%  %s left  %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full),
		100*share, clock(left), p.text)
	if utf8.RuneCountInString(line) >= columns {
		line = string([]rune(line)[:max(0, columns-1)])
	}
	return line
}

// clock writes a time as minutes and seconds.
func clock(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
