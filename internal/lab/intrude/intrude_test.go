// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/explain"
	"github.com/corelane/corelane/internal/procfs"
	"github.com/corelane/corelane/internal/stat"
)

func TestJudge(t *testing.T) {
	hog := explain.Cause{Kind: explain.ForeignThread, Name: "cl-hog", PID: 7, TID: 8}
	for name, c := range map[string]struct {
		expected []explain.Kind
		wanted   Culprit
		seconds  float64
		causes   []explain.Cause
		why      string
	}{
		"right":         {kinds(explain.ForeignThread), Culprit{PID: 7, Name: "cl-hog"}, 5, []explain.Cause{hog}, ""},
		"by its thread": {kinds(explain.ForeignThread), Culprit{PID: 8}, 5, []explain.Cause{hog}, ""},
		"second only": {kinds(explain.IRQ), Culprit{}, 5, []explain.Cause{hog, {Kind: explain.IRQ}},
			"foreign-thread is not irq"},
		"another one": {kinds(explain.ForeignThread), Culprit{PID: 9}, 5, []explain.Cause{hog},
			"cl-hog 7 is not the culprit, 9"},
		"another's name": {kinds(explain.ForeignThread), Culprit{Name: "kworker"}, 5, []explain.Cause{hog},
			"cl-hog 7 is not the culprit, kworker"},
		"too late": {kinds(explain.ForeignThread), Culprit{}, 10.5, []explain.Cause{hog},
			"it took 10.5 s, more than 10s"},
		"nothing said": {kinds(explain.Nothing), Culprit{}, 5, nil, "no cause was found"},
		"of two kinds": {kinds(explain.IRQ, explain.ForeignThread), Culprit{}, 5, []explain.Cause{hog}, ""},
		"port": {kinds(explain.Skew), Culprit{Port: "tenant0"}, 5, []explain.Cause{{Kind: explain.Skew, Port: "wire"}},
			"port wire is not the culprit, port tenant0"},
		"the disk's interrupt": {kinds(explain.IRQ), Culprit{disk: []int{36}}, 5,
			[]explain.Cause{{Kind: explain.IRQ, IRQ: 36}}, ""},
		"the disk's softirq": {kinds(explain.Softirq), Culprit{disk: []int{36}}, 5,
			[]explain.Cause{{Kind: explain.Softirq, Name: "BLOCK"}}, ""},
		"another softirq": {kinds(explain.Softirq), Culprit{disk: []int{36}}, 5,
			[]explain.Cause{{Kind: explain.Softirq, Name: "NET_RX"}},
			"NET_RX is not the culprit, IRQ of [36], or BLOCK"},
	} {
		o := Outcome{Expected: c.expected, Wanted: c.wanted, Seconds: c.seconds}
		o.judge(&explain.Report{Causes: c.causes}, "", 10*time.Second)
		if o.Why != c.why || o.Passed != (c.why == "") {
			t.Errorf("%s: passed %v, '%s'; want '%s'", name, o.Passed, o.Why, c.why)
		}
	}
}

// A steal that the lab measured in the same time is not explain's mistake if the true cause comes second. More steal
// than was measured, or a true cause that does not matter, fails.
func TestJudgeAfterSteal(t *testing.T) {
	steal := func(ms int64, pps float64) explain.Cause {
		return explain.Cause{Kind: explain.Steal, LostNS: ms * 1e6, PPS: pps}
	}
	tlb := explain.Cause{Kind: explain.TLBShootdown, Name: "svc-debug"}
	minor := explain.Cause{Kind: explain.TLBShootdown, Minor: true}
	const failed = "steal is not tlb-shootdown"
	for name, c := range map[string]struct {
		stolen float64
		causes []explain.Cause
		why    string
	}{
		"as measured":            {0.01, []explain.Cause{steal(50, 0.1e6), tlb}, ""},
		"a quarter more":         {0.01, []explain.Cause{steal(62, 0.12e6), tlb}, ""},
		"more time than that":    {0.01, []explain.Cause{steal(64, 0.1e6), tlb}, failed},
		"more packets than that": {0.01, []explain.Cause{steal(50, 0.13e6), tlb}, failed},
		"nothing was measured":   {0, []explain.Cause{steal(50, 0.1e6), tlb}, failed},
		"steal alone":            {0.01, []explain.Cause{steal(50, 0.1e6)}, failed},
		"a minor second":         {0.01, []explain.Cause{steal(50, 0.1e6), minor}, failed},
		"a wrong second": {0.01, []explain.Cause{steal(50, 0.1e6), {Kind: explain.IRQ}},
			"irq is not tlb-shootdown"},
		"third": {0.01, []explain.Cause{steal(50, 0.1e6), {Kind: explain.IRQ}, tlb},
			"irq is not tlb-shootdown"},
	} {
		o := Outcome{Expected: kinds(explain.TLBShootdown), Stolen: c.stolen, Seconds: 5, Offered: 10e6}
		o.judge(&explain.Report{Causes: c.causes, Seconds: 5}, "", 10*time.Second)
		if o.Why != c.why || o.Passed != (c.why == "") || o.Passed && o.Ahead != "steal" {
			t.Errorf("%s: passed %v after '%s', '%s'; want '%s'", name, o.Passed, o.Ahead, o.Why, c.why)
		}
	}
}

// Each kind of cause has a case. Each case has its own name, and traffic that a worker can take.
func TestCases(t *testing.T) {
	seen, found := map[string]bool{}, map[explain.Kind]bool{}
	for _, c := range Cases() {
		if seen[c.Name] || c.Load <= 0 || c.Load >= 1 || c.inject == nil || len(c.Kinds) == 0 || c.Summary == "" {
			t.Errorf("case %+v", c)
		}
		seen[c.Name] = true
		for _, k := range c.Kinds {
			found[k] = true
		}
	}
	for _, k := range []explain.Kind{explain.ForeignThread, explain.OwnThread, explain.Softirq, explain.IRQ,
		explain.TLBShootdown, explain.PageFaults, explain.Yield, explain.Stopped, explain.CgroupQuota,
		explain.ReaderStopped, explain.RingOverflow, explain.Skew, explain.Overload, explain.Nothing} {
		if !found[k] {
			t.Errorf("no case of %s", k)
		}
	}
	if list, err := Chosen([]string{"tlb", "hog"}); err != nil || len(list) != 2 || list[0].Name != "tlb" {
		t.Errorf("chosen: %v, %v", list, err)
	}
	if _, err := Chosen([]string{"gremlin"}); err == nil ||
		!strings.Contains(err.Error(), "--case: 'gremlin' is unknown; valid: hog, softirq") {
		t.Errorf("unknown case: %v", err)
	}
}

// Windows count by when the generator measured them, even if the message about one came late.
func TestTrafficOf(t *testing.T) {
	begin := time.Now()
	var windows []seen
	for i := range 10 {
		w := seen{start: float64(i) * 0.25, seconds: 0.25, offered: uint64(200 * i), received: uint64(100 * i)}
		w.arrived = begin.Add(duration(w.start + w.seconds)).Add(time.Duration(i%3) * time.Second)
		windows = append(windows, w)
	}
	got := trafficOf(windows, begin.Add(350*time.Millisecond), begin.Add(1100*time.Millisecond))
	if want := (traffic{(400 + 600) / 0.5, (200 + 300) / 0.5}); got != want || got.lost() != 1000 {
		t.Errorf("%v, want %v", got, want)
	}
	if got := trafficOf(windows, begin.Add(time.Hour), begin.Add(2*time.Hour)); got != (traffic{}) {
		t.Errorf("of nothing: %v", got)
	}
}

// A cost is compared with what was lost beyond the loss before, if it is large enough and the router can know it.
func TestOff(t *testing.T) {
	for _, c := range []struct {
		o    Outcome
		want float64
	}{
		{Outcome{Offered: 10e6, During: 6e6, Said: 5e6}, 0.25},
		{Outcome{Offered: 10e6, During: 5.5e6, Lossy: 0.5e6, Said: 4e6}, 0},
		{Outcome{Offered: 10e6, During: 6e6}, 1},
		{Outcome{Offered: 10e6, During: 6e6, Unpriced: "nobody knows"}, 0},
		{Outcome{Offered: 10e6, During: 9.95e6, Said: 0.01e6}, 0},
		{Outcome{Offered: 10e6, During: 10e6, Said: 1e6}, 5},
	} {
		if got := c.o.off(); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v is off by %v, want %v", c.o, got, c.want)
		}
	}
	all := []Outcome{{Passed: true, Offered: 10e6, During: 5e6, Said: 5e6},
		{Passed: true, Offered: 10e6, During: 5e6, Said: 4e6}, {Passed: true, Offered: 10e6, During: 5e6, Said: 6e6},
		{Passed: true, Offered: 10e6, During: 10e6}}
	want := "half of the 3 costs are off by more than 10 %"
	if err := Passed(all); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	if err := Passed(all[1:3]); err != nil {
		t.Errorf("two costs have no half that says much: %v", err)
	}
}

// A run that checks only what explain finds passes whatever the costs are.
func TestRanks(t *testing.T) {
	var all []Outcome
	for range 5 {
		b := loadedVictim{victim: &victim{Options: &Options{Ranks: true}}}
		o := b.outcome(Case{Name: "hog"})
		o.Passed, o.Offered, o.During, o.Said = true, 10e6, 5e6, 1e6
		all = append(all, *o)
	}
	if err := Passed(all); err != nil {
		t.Error(err)
	}
	for i := range all {
		all[i].Unpriced = ""
	}
	if Passed(all) == nil {
		t.Error("wrong costs pass")
	}
}

func TestMisranked(t *testing.T) {
	parts := []part{{kind: explain.ForeignThread}, {kind: explain.Stopped}}
	hog, stop := explain.Cause{Kind: explain.ForeignThread}, explain.Cause{Kind: explain.Stopped}
	minor := explain.Cause{Kind: explain.Stopped, Minor: true}
	for name, c := range map[string]struct {
		alone  []float64
		causes []explain.Cause
		want   string
	}{
		"in order":         {[]float64{4e6, 1e6}, []explain.Cause{hog, stop}, ""},
		"nearly the same":  {[]float64{1.1e6, 1e6}, []explain.Cause{stop, hog}, ""},
		"in another order": {[]float64{4e6, 1e6}, []explain.Cause{stop, hog}, "stopped comes before foreign-thread"},
		"one is missing":   {[]float64{4e6, 1e6}, []explain.Cause{hog}, "stopped was not found"},
		"one is minor":     {[]float64{4e6, 1e6}, []explain.Cause{hog, minor}, "stopped was not found"},
		"one costs little": {[]float64{4e6, 1e3}, []explain.Cause{hog}, ""},
	} {
		o := Outcome{Offered: 10e6, Alone: c.alone}
		got := o.misranked(&explain.Report{Causes: c.causes}, parts)
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: '%s', want '%s'", name, got, c.want)
		}
	}
}

// The same seed draws the same cases; all of the pool are drawn, alone and with others.
func TestDraw(t *testing.T) {
	seen, sizes := map[explain.Kind]bool{}, map[int]int{}
	for round := range uint64(200) {
		c := draw(rand.New(rand.NewPCG(7, round)), 5*time.Second)
		if again := draw(rand.New(rand.NewPCG(7, round)), 5*time.Second); again.Summary != c.Summary {
			t.Errorf("'%s' and '%s'", c.Summary, again.Summary)
		}
		if c.Load < leastDrawn || c.Load > mostDrawn || c.inject == nil {
			t.Errorf("%+v", c)
		}
		here := map[explain.Kind]bool{}
		for _, p := range c.parts {
			seen[p.kind], here[p.kind] = true, true
		}
		if len(here) != len(c.parts) {
			t.Errorf("two of a kind: %s", c.Summary)
		}
		sizes[len(c.parts)]++
	}
	if len(seen) != len(pool) || sizes[1] < 50 || sizes[2] < 20 || sizes[3] < 20 {
		t.Errorf("%v %v", seen, sizes)
	}
}

func TestScore(t *testing.T) {
	got := Score([]Outcome{{Why: "it could not be run", Misranked: "it could not be run"},
		{First: true, Offered: 10e6, During: 6e6, Said: 4e6},
		{First: true, Misranked: "no", Offered: 10e6, During: 5e6, Said: 1e6}, {Offered: 10e6, During: 10e6},
		{Skipped: "needs perf"}})
	want := "4 cases: a true cause came first in 2 of 4; all that cost more than 2 % were found, in their order, in " +
		"2 of 4; 1 of 2 costs were within 25 %, and the median was off by 40 %"
	if got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
}

func rowsOf(idle, none, partial, full float64) *PartitionTable {
	r := &PartitionTable{Load: "some"}
	for _, s := range []struct {
		state State
		rate  float64
	}{{Idle, idle}, {None, none}, {Partial, partial}, {Full, full}} {
		r.Rows = append(r.Rows, PartitionRow{State: s.state, Samples: []Sample{{Rate: s.rate, Saturated: 2 * s.rate}}})
	}
	r.relate(0)
	return r
}

func TestReproduced(t *testing.T) {
	for _, c := range []struct {
		rows *PartitionTable
		why  string
	}{
		{rowsOf(10e6, 5e6, 1e6, 9.9e6), ""},
		{rowsOf(10e6, 5e6, 1e6, 9e6), "full partitioning keeps 0.900"},
		{rowsOf(10e6, 9e6, 8e6, 9.9e6), "more than 0.5: no collapse"},
		{rowsOf(10e6, 0.5e6, 1e6, 9.9e6), "no partitioning keeps 0.050"},
	} {
		err := c.rows.Reproduced()
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%v, want '%s'", err, c.why)
		}
	}
	table := rowsOf(10e6, 5e6, 1e6, 9.9e6).Markdown()
	for _, want := range []string{"| partial partitioning | 1.000 (1.000 to 1.000) | 0.100 (0.100 to 0.100) | 2.000 " +
		"| 0.165 |",
		"| idle machine | 10.000", "Load: some."} {
		if !strings.Contains(table, want) {
			t.Errorf("no '%s' in\n%s", want, table)
		}
	}
}

func TestMedian(t *testing.T) {
	r := PartitionRow{Samples: []Sample{{Rate: 3}, {Rate: 1}, {Rate: 2}, {Rate: 10}}}
	if m, low, high := r.Median(func(s Sample) float64 { return s.Rate }); m != 2.5 || low != 1 || high != 10 {
		t.Error(m, low, high)
	}
}

func TestStolenShare(t *testing.T) {
	before := procfs.CPUTime{User: 100, Steal: 40}
	if share := stolenShare(procfs.CPUTime{User: 198, Steal: 42}.Since(before)); share != 0.02 {
		t.Error(share)
	}
	if share := stolenShare(before.Since(before)); share != 0 {
		t.Error(share)
	}
}

func TestMarkdown(t *testing.T) {
	all := []Outcome{
		{Case: "hog", Expected: kinds(explain.ForeignThread), Found: explain.Cause{Kind: explain.ForeignThread,
			Name: "cl-hog", PID: 7, PPS: 2e6}, Passed: true,
			Seconds: 5, Before: 9e6, Offered: 9e6, During: 7e6, Said: 2e6},
		{Case: "hog", Expected: kinds(explain.ForeignThread), Found: explain.Cause{Kind: explain.IRQ, IRQ: 3, PPS: 1e6},
			Why: "irq is not it", Seconds: 6, Before: 9e6, Offered: 9e6, During: 6e6, Said: 1e6},
	}
	want := "| hog | 1 of 2 | foreign-thread | foreign-thread or irq | cl-hog 7 | 6.0 | 1.00 to 2.00 | 2.00 to 3.00 |"
	if table := Markdown(all); !strings.Contains(table, want) {
		t.Errorf("no '%s' in\n%s", want, table)
	}
	all[0].Uneven = []float64{9e6}
	if table := Markdown(all); !strings.Contains(table, "| 1 of 2 (1 repeated: the machine disturbed them) |") {
		t.Errorf("repeated runs are missing in\n%s", table)
	}
	all[0].Ahead = "steal"
	if table := Markdown(all); !strings.Contains(table, "| foreign-thread or irq (after steal, which was measured, ") {
		t.Errorf("what came first is missing in\n%s", table)
	}
	if err := Passed(all); err == nil || err.Error() != "1 of 2 runs failed: hog: irq is not it" {
		t.Error(err)
	}
	if err := Passed(all[:1]); err != nil {
		t.Error(err)
	}
}

const interrupts = `           CPU0       CPU1
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
 36:          0     130894 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
 37:          0          3 PCI-MSIX-0000:00:0c.0   1-edge      virtio10-req.0
 50:          0          3 PCI-MSIX-0000:01:00.0   1-edge      nvme0q1
 51:          0          3 PCI-MSIX-0000:01:00.0   2-edge      nvme0q2
NMI:          0          0   Non-maskable interrupts
`

func TestDiskIRQs(t *testing.T) {
	for device, want := range map[string][]int{"virtio1": {36}, "nvme0": {50, 51}, "virtio2": nil, "": nil} {
		if got := irqsOf(interrupts, device); len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
			t.Errorf("%s: %v, want %v", device, got, want)
		}
	}
	if _, err := diskIRQs(t.TempDir(), "/proc"); err == nil ||
		!strings.Contains(err.Error(), "/proc is not on a disk") {
		t.Errorf("/proc: %v", err)
	}
}

func FuzzIrqsOf(f *testing.F) {
	f.Add(interrupts, "virtio1")
	f.Add(" 1: x", "")
	f.Add("x\n-1: 0 virtio1-req.0", "virtio1")
	f.Fuzz(func(t *testing.T, text, device string) {
		for range irqsOf(text, device) {
			if !strings.Contains(text, device) {
				t.Errorf("interrupts of '%s', which is not in the text", device)
			}
		}
	})
}

func TestReceived(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("1\n2\n3"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := linesOf(path); err != nil || len(list) != 2 { // the third is not whole
		t.Errorf("%q, %v", list, err)
	}
	if list, err := numbers([]string{"1", "3"}); err != nil || stat.Mean(list) != 2 {
		t.Error(list, err)
	}
	if _, err := numbers([]string{"panic: x"}); err == nil {
		t.Error("an error of the receiver is taken for a number")
	}
}

func TestPrepareRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(*Options)
		why    string
	}{
		{func(o *Options) { o.WorkerCPU = 5000 }, "--cpu: 5000 is not possible"},
		{func(o *Options) { o.WorkerCPU = o.GeneratorCPU }, "--generator-cpu: 0 is not possible"},
		{func(o *Options) { o.Repetitions = 0 }, "--reps: 0 is not possible"},
		{func(o *Options) { o.Window = time.Minute }, "--window: 1m0s is not possible; valid: 1s to 10s"},
	} {
		o := Default()
		o.WorkerCPU, o.GeneratorCPU, o.Root = 1, 0, t.TempDir()
		if err := os.MkdirAll(filepath.Join(o.Root, "sys/devices/system/cpu"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(o.Root, "sys/devices/system/cpu/online"), []byte("0-1\n"),
			0o600); err != nil {
			t.Fatal(err)
		}
		c.change(&o)
		if err := o.prepare(); err == nil || !strings.HasPrefix(err.Error(), c.why) {
			t.Errorf("%v, want '%s'", err, c.why)
		}
	}
}

func TestControl(t *testing.T) {
	o := Options{WorkerCPU: 1, GeneratorCPU: 0, online: cpuset.Of(0, 1)}
	if o.control() != 0 || len(o.others()) != 1 {
		t.Error(o.control(), o.others())
	}
	o.online = cpuset.Of(0, 1, 4)
	if o.control() != 4 || len(o.others()) != 2 {
		t.Error(o.control(), o.others())
	}
}

func TestEvery(t *testing.T) {
	n := 0
	undo := every(time.Millisecond, func() error { n++; return nil })
	time.Sleep(50 * time.Millisecond)
	if err := undo(); err != nil || n == 0 {
		t.Error(n, err)
	}
	undo = every(time.Millisecond, func() error { return os.ErrClosed })
	time.Sleep(20 * time.Millisecond)
	if err := undo(); err != os.ErrClosed {
		t.Error(err)
	}
}

func TestUnknownIntruder(t *testing.T) {
	if err := Intruder(t.Context(), "gremlin", nil); err == nil ||
		!strings.Contains(err.Error(), "disk, flood, hog, load, pin, sink") {
		t.Error(err)
	}
}
