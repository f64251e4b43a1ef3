// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"
	"strings"
)

// row defines one kind of cause. Each row has a file of its own, cause_*.go.
type row struct {
	kind   Kind
	means  string // what happened
	known  string // how that is known
	colour string // a variable of page/page.css

	// What the cause is counted from. A row has at least one of these.
	claim func(*Evidence, *Worker, event) (culprit, bool) // kernel events that are this cause
	// counters that are used if kernel events are not watched
	counters func(*account)
	always   func(*account)          // counters of what no kernel event shows
	losses   func(*findings) []Cause // packets that were lost while the worker had its CPU
	answers  func(*findings) []Cause // what follows from all other causes; answers are reported first
	// what the model shows beyond these events and counters; true: it added time, and the model is made again
	slower func(*account, *Model) bool
	// what the causes of one worker amount to together
	together func(*Evidence, *Worker, []*Cause) (Cause, bool)
	// the name of what the model of a worker counts (modelOf)
	part string
	// the time in a long loop that is this cause, and its name on the timeline
	loop func(*LongLoop) (int64, string)

	// how far the time can be trusted; nil: as far as kernel events (watched)
	grade     func(*Evidence) Grade
	unseen    bool                            // kernel events do not show it: when it happened is not known
	voluntary bool                            // the worker gives its CPU away by itself
	keysOf    func(*account, *Cause) []string // causes that share a key are one; the first key is the cause's own
	holdsBack func(*Cause, *Model) bool       // explains that a worker has no time left, whatever time it took

	limits   limits
	describe func(*scene, *Cause) // Title, Why and Evidence; nil: not a cause by itself, only part of a model
	remedy   func(*scene, *Cause) // Fix and FixNote
	noRemedy string               // what the operator can do if remedy finds nothing
}

// limits say up to where a cause is too small to matter. Fields that are 0 have the usual limit.
type limits struct {
	share float64 // of a worker's time
	// ns at once; the usual limit does not apply to a worker without time left
	longest int64
	rate    float64 // times per second; 0: any
	// for causes that lose packets: below this share of the packets, or below this rate per second
	loss, lossRate float64
	minor          func(s *scene, c *Cause, lossy bool) bool // decides instead of share and rate
}

// rows is the table of the causes, in the order of docs/cores.md. An event of the kernel belongs to exactly one row.
var rows []row

// The table is filled by init because rows refer to functions that read it.
func init() {
	rows = []row{
		foreignThread, ownThread, softirq, irq, ipi, tlbShootdown, timerTick, pageFaults, yield, stopped, cgroupQuota,
		moved, steal, injectedDelay, ownWork,
		costlyPackets, gap, manySmall, readerStopped, ringOverflow, smallRing, noBuffers, skew, noisyPort, drops,
		smallBatches, overload, threadEnded, noAnswer, noInput, nothing,
	}
}

func rowOf(k Kind) *row {
	for i := range rows {
		if rows[i].kind == k {
			return &rows[i]
		}
	}
	panic("explain: no row for the cause " + k) // TestTable finds it first
}

// Kinds returns the kinds of causes, in the order of the table.
func Kinds() (out []Kind) {
	for _, r := range rows {
		out = append(out, r.kind)
	}
	return out
}

// StyleSheet gives each kind its colour, as the class k-KIND. page/page.css defines the variables.
func StyleSheet() string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, ".k-%s { --colour: var(--%s); }\n", r.kind, r.colour)
	}
	return b.String()
}

// Markdown returns the table of docs/cores.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| kind | what happened | how it is known |\n|---|---|---|\n")
	for _, r := range rows {
		if r.describe != nil {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.kind, r.means, r.known)
		}
	}
	return b.String()
}
