// SPDX-License-Identifier: Apache-2.0
package neighbor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/wait"
)

// streamOf builds the streams of a row.
func streamOf(t *testing.T, r row) (*bed, *apiv1.GeneratorStream) {
	t.Helper()
	o := Default()
	sc, err := o.scenario()
	if err != nil {
		t.Fatal(err)
	}
	setup, err := scenario.Build(sc, "/", ringSize)
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{options: &o}
	if err := b.attack(setup, r); err != nil {
		t.Fatal(err)
	}
	return b, b.profile.Streams[0]
}

func TestStreams(t *testing.T) {
	o := Default()
	for _, r := range o.rows() {
		b, s := streamOf(t, r)
		if b.attacker.guest != nil {
			if s.Name != victim || len(b.profile.Ports) != 2 {
				t.Errorf("%s, %s: the generator is at %v", r.attack.Name, r.port, b.profile.Ports)
			}
			continue
		}
		last := b.profile.Streams[len(b.profile.Streams)-1]
		if (s.TxPort != attackPort) != (b.attacker.unread != "") || !s.Untimed || last.Name != victim || last.Untimed {
			t.Errorf("%s, %s: %v beside %v", r.attack.Name, r.port, s, last)
		}
		if o := b.attacker.ordinary; (o == nil) != (r.port == scenario.Tap) ||
			o != nil && (b.profile.Streams[1] != o || o.TxPort != s.TxPort || !o.Untimed || o.Fixed ||
				o.Sizes[0] > 96) {
			t.Errorf("%s, %s: the ordinary neighbour sends %v", r.attack.Name, r.port, o)
		}
		for _, size := range s.Sizes {
			if int(size) < len(s.Header)+probeSize || len(s.Expected) != len(s.ExpectedMask) {
				t.Errorf("%s, %s: frames of %d bytes with a header of %d", r.attack.Name, r.port, size, len(s.Header))
			}
		}
		p := gopacket.NewPacket(append(s.Header, make([]byte, probeSize)...), layers.LayerTypeEthernet,
			gopacket.Default)
		if want := layersOf[r.attack.Name]; !strings.HasPrefix(p.String(), "PACKET") || describe(p) != want {
			t.Errorf("%s: %s, want %s", r.attack.Name, describe(p), want)
		}
	}
}

// layersOf are the layers of the frames of each attack.
var layersOf = map[string]string{
	"frames-64": "IPv4 UDP", "frames-9000": "IPv4 UDP", "frames-64k": "IPv4 UDP", "new-flows": "IPv4 UDP",
	"syn": "IPv4 TCP SYN", "fragments": "IPv4 offset 100", "ttl": "IPv4 TTL 1 UDP", "icmp-errors": "IPv4 ICMPv4",
	"gratuitous-arp": "ARP", "nd": "IPv6 ICMPv6 NA", "unresolved": "IPv4 UDP", "dead-host": "IPv4 UDP",
	"broadcasts": "to all IPv4 UDP", "no-reader": "IPv4 UDP", "new-macs": "IPv4 UDP",
}

func describe(p gopacket.Packet) string {
	var words []string
	add := func(is bool, word string) {
		if is {
			words = append(words, word)
		}
	}
	ip, isIP := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
	tcp, isTCP := p.Layer(layers.LayerTypeTCP).(*layers.TCP)
	ethernet := p.LinkLayer().(*layers.Ethernet)
	add(isIP && ethernet.DstMAC.String() == broadcast.String(), "to all")
	add(isIP, "IPv4")
	add(isIP && ip.FragOffset == 100, "offset 100")
	add(isIP && ip.TTL == 1, "TTL 1")
	add(p.Layer(layers.LayerTypeUDP) != nil, "UDP")
	add(isTCP, "TCP")
	add(isTCP && tcp.SYN && !tcp.ACK && tcp.DataOffset == 5 && tcp.SrcPort != 0, "SYN")
	add(p.Layer(layers.LayerTypeICMPv4) != nil, "ICMPv4")
	add(p.Layer(layers.LayerTypeARP) != nil, "ARP")
	add(p.Layer(layers.LayerTypeIPv6) != nil, "IPv6")
	add(p.Layer(layers.LayerTypeICMPv6) != nil, "ICMPv6")
	add(p.Layer(layers.LayerTypeICMPv6NeighborAdvertisement) != nil, "NA")
	return strings.Join(words, " ")
}

func TestOptions(t *testing.T) {
	good := Default()
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Options){
		"--attack: 'x' is unknown; valid: " + strings.Join(AttackNames(), ", "): func(o *Options) {
			o.Attacks = []string{"new-flows", "x"}
		},
		"--port: 'x' is unknown; valid: memif, vhost, tap": func(o *Options) { o.Ports = []string{"x"} },
		"--port: none of the attacks fits tap; valid: see --list": func(o *Options) {
			o.Attacks, o.Ports = []string{"frames-64k"}, []string{"tap"}
		},
		"--reps: 0 is out of range; valid: 1 to 100":             func(o *Options) { o.Repetitions = 0 },
		"--rate: -1 is out of range; valid: 0 to 100000000":      func(o *Options) { o.Rate = -1 },
		"--flow-limit: -1 is out of range; valid: 0 to 16777216": func(o *Options) { o.FlowLimit = -1 },
		"--trial-seconds: 0.05 is out of range; valid: 0.1 to 0.8": func(o *Options) {
			o.Trial = 50 * time.Millisecond
		},
		"--cpu: 0 is both; valid: another CPU than the generator's":   func(o *Options) { o.WorkerCPU = 0 },
		"--flow-rate: -1 is out of range; valid: 0 to 1.07374182e+09": func(o *Options) { o.FlowRate = -1 },
	} {
		o := good
		change(&o)
		if err := o.Validate(); err == nil || err.Error() != want || !input.Is(err) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestWeights(t *testing.T) {
	for _, c := range []struct {
		a, b float64
		x, y uint32
	}{{1e6, 4e6, 100, 400}, {4e6, 1e6, 400, 100}, {3e5, 1e6, 100, 333}} {
		if x, y := weights(c.a, c.b); x != c.x || y != c.y {
			t.Errorf("%g, %g: %d, %d", c.a, c.b, x, y)
		}
	}
}

// measured is a row that reaches all targets.
func measured() *Row {
	r := &Row{Port: scenario.Memif, Offered: 12.8e6}
	for i := range 3 {
		p99 := 100 + 100*float64(i)
		without, again := &Sample{Delivered: 1, P99: p99}, &Sample{Delivered: 1, P99: p99 * 1.02}
		r.Pairs = append(r.Pairs, Pair{Without: without, Again: again, With: &Sample{Delivered: 0.95, P99: p99 * 1.05,
			Asked: 17, Answered: 17, CallMS: 100, MasterMS: 100,
			Drops: map[string]uint64{"punt_rate": 10, "flow_quota": 20}}})
	}
	return r
}

func TestCheck(t *testing.T) {
	for want, change := range map[string]func(*Row){
		"": func(*Row) {},
		"keeps 0.89 of its rate; at least 0.90": func(r *Row) {
			r.Pairs[0].With.Delivered, r.Pairs[1].With.Delivered = 0.89, 0.89
		},
		"p99 is 1.20 times as long; at most 1.11": func(r *Row) {
			r.Pairs[0].With.P99, r.Pairs[1].With.P99 = 120, 240
		},
		"within noise: p99 is 1.12 times as long; at most 1.11": func(r *Row) {
			r.Pairs[0].With.P99, r.Pairs[1].With.P99 = 112, 224
		},
		"within noise: p99 is 1.10 times as long; at most 1.11": func(r *Row) {
			r.Pairs[0].With.P99, r.Pairs[1].With.P99 = 110, 220
		},
		"p99 is 1.50 times as long; at most 1.11": func(r *Row) { // as beside the ordinary neighbour
			for i, p := range r.Pairs {
				busy, again := *p.Without, *p.Again
				busy.P99, again.P99, p.With.P99 = busy.P99*3, again.P99*3, busy.P99*4.5
				r.Pairs[i].Busy, r.Pairs[i].Again = &busy, &again
			}
		},
		"p99 is 2.50 times as long; at most 2.00": func(r *Row) {
			r.Name = "truncate"
			r.Pairs[0].With.P99, r.Pairs[1].With.P99, r.Pairs[2].With.P99 = 250, 500, 750
		},
		"p99 could not be measured": func(r *Row) {
			r.Pairs[0].With.P99, r.Pairs[1].With.P99 = 0, 0
		},
		"50 of 51 ARP requests are answered": func(r *Row) { r.Pairs[2].With.Answered = 16 },
		"48 of 51 ARP requests are answered, punt_full 2, punt_rate 1": func(r *Row) {
			r.Pairs[1].With.Answered, r.Pairs[2].With.Answered = 15, 16
			r.Pairs[1].With.HostDrops = map[string]uint64{"punt_rate": 1, "punt_full": 1}
			r.Pairs[2].With.HostDrops = map[string]uint64{"punt_full": 1}
		},
		"a call of the API takes 101 ms; at most 100": func(r *Row) { r.Pairs[1].With.CallMS = 101 },
		"the master is away for 101 ms; at most 100":  func(r *Row) { r.Pairs[1].With.MasterMS = 101 },
		"5 packets are lost without a drop reason": func(r *Row) {
			r.Pairs[0].With.NotCounted, r.Pairs[1].With.NotCounted = -1000, 5
		},
	} {
		r := measured()
		change(r)
		(&Result{Rows: []*Row{r}}).check()
		got := strings.Join(r.Missed, "; ")
		if len(r.Unsure) > 0 {
			got += "within noise: " + strings.Join(r.Unsure, "; ")
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNoise(t *testing.T) {
	rows := []*Row{{Port: scenario.Memif}, {Port: scenario.Tap}}
	for i := range 40 {
		again := 100 * (0.8 + 0.4*float64(i)/39) // from 0.8 to 1.2 times as long
		rows[0].Pairs = append(rows[0].Pairs, Pair{Without: &Sample{Delivered: 1, P99: 100},
			Again: &Sample{Delivered: 1, P99: again}})
		rows[1].Pairs = append(rows[1].Pairs, Pair{Without: &Sample{Delivered: 1}, Again: &Sample{Delivered: 0.5}})
	}
	n := noiseOf(scenario.Memif, rows)
	if n.Pairs != 40 || n.Kept != 1 || n.P99 < 1.01 || n.P99 > 1.1 {
		t.Errorf("%+v: medians of 40 pairs stray less than single pairs", n)
	}
	few := noiseOf(scenario.Memif, []*Row{{Port: scenario.Memif, Pairs: rows[0].Pairs[:3]}})
	if few.P99 <= n.P99 || few != noiseOf(scenario.Memif, []*Row{{Port: scenario.Memif, Pairs: rows[0].Pairs[:3]}}) {
		t.Errorf("%+v: medians of 3 pairs stray more, and equally each time", few)
	}
	if n := noiseOf(scenario.Tap, rows); n.P99 != 0 || n.Kept < 1.9 || n.Kept > 2.1 {
		t.Errorf("%+v: a half is as far from 1 as a double", n)
	}
}

func TestLongLoop(t *testing.T) {
	before := map[uint64]uint64{1000: 5, 2000: 7}
	after := map[uint64]uint64{1000: 985, 2000: 25, 64000: 2}
	if got := longLoop(before, after); got != 2 {
		t.Errorf("%g us, want 2: 998 of 1,000 loops are shorter", got)
	}
	after[64000] = 20
	if got := longLoop(before, after); got != 64 {
		t.Errorf("%g us, want 64", got)
	}
	if got := longLoop(after, after); got != 0 {
		t.Errorf("%g us without a loop", got)
	}
}

func TestDrops(t *testing.T) {
	got := measured().Drops(2 * time.Second)
	if len(got) != 2 || got[0] != (Drop{"flow_quota", 10}) || got[1] != (Drop{"punt_rate", 5}) {
		t.Errorf("%+v", got)
	}
}

// An attack by packets is compared with an ordinary neighbour, and what it loses in rate with nobody.
func TestBase(t *testing.T) {
	r := measured()
	for i, p := range r.Pairs {
		r.Pairs[i].Busy = &Sample{Delivered: 0.5, P99: p.Without.P99 * 3}
		r.Pairs[i].Again = r.Pairs[i].Busy
		p.With.P99 = p.Without.P99 * 3.15
	}
	without, busy, with := r.P99()
	if without != 200 || busy != 600 || with != 630 || r.Kept().Median != 0.95 {
		t.Errorf("p99 %g, %g, %g, kept %+v", without, busy, with, r.Kept())
	}
	if (&Result{Rows: []*Row{r}}).check(); r.Verdict() != "holds" {
		t.Errorf("%s: %v, %v", r.Verdict(), r.Missed, r.Unsure)
	}
}

// What the generator sends in each kind of trial.
func TestTrialSpecs(t *testing.T) {
	for _, c := range []struct {
		attack string
		with   company
		want   string
		rate   float64
	}{{"syn", alone, victim, 1}, {"syn", busy, victim + " " + ordinary, 3},
		{"syn", attacked, victim + " " + attackFrom, 3},
		{"no-reader", attacked, victim + " " + attackTo, 3}, {"chains", attacked, victim, 1}} {
		o := Default()
		o.Attacks, o.Ports = []string{c.attack}, []string{scenario.Memif}
		b, _ := streamOf(t, o.rows()[0])
		s := b.spec(&Row{Port: scenario.Memif, Offered: 1, Attack: 2}, c.with)
		unread := s.UnreadPort != ""
		if got := strings.Join(s.Streams, " "); got != c.want || s.PacketsPerSecond != c.rate || !s.Latency ||
			unread != (c.attack == "no-reader") {
			t.Errorf("%s, %d: %v", c.attack, c.with, s)
		}
	}
}

type silent struct{}

func (silent) Begin(time.Duration)        {}
func (silent) Step(string, time.Duration) {}
func (silent) Note(string)                {}

// options of a short run; skips where there can be none.
func options(t *testing.T) Options {
	t.Helper()
	bin := filepath.Dir(os.Getenv("CORELANED"))
	if os.Geteuid() != 0 || bin == "." || runtime.NumCPU() < 2 {
		t.Skip("needs root, two CPUs and CORELANED, with corelane-gen beside it")
	}
	o := Default()
	o.Quick()
	o.Bin = bin
	return o
}

// runUntil runs the benchmark until it is as it has to be: in a short trial, one side may not get its CPU.
func runUntil(t *testing.T, o Options, missing func(*Result) error) {
	t.Helper()
	var last error
	if err := wait.Patiently(t.Context(), func() (bool, error) {
		r, err := Run(t.Context(), o, silent{})
		if last = err; err == nil {
			last = missing(r)
		}
		return last == nil, nil
	}); err != nil {
		t.Error(last)
	}
}

// Hostile guests connect, and the router takes their frames or disconnects them.
func TestGuests(t *testing.T) {
	o := options(t)
	o.Repetitions, o.Trial = 1, 500*time.Millisecond
	o.Attacks = []string{"reconnect", "chains", "truncate", "messages", "full-call"}
	runUntil(t, o, func(r *Result) error {
		if len(r.Rows) != 7 {
			return fmt.Errorf("%d rows", len(r.Rows))
		}
		for _, row := range r.Rows {
			if p := row.Pairs[0]; p.Without.Attack != 0 || (p.Again.Attack != 0) != (p.Busy != nil) ||
				(p.Busy != nil) != (row.Name == "chains") || p.With.Attack == 0 {
				return fmt.Errorf("%s, %s: %g times per second", row.Name, row.Port, p.With.Attack)
			}
		}
		return nil
	})
}

func TestRun(t *testing.T) {
	o := options(t)
	o.Attacks, o.Ports = []string{"gratuitous-arp"}, []string{scenario.Memif}
	runUntil(t, o, func(r *Result) error {
		if !r.Complete || len(r.Rows) != 1 {
			return fmt.Errorf("%+v", r)
		}
		if with := r.Rows[0].Pairs[0].With; with.Rate == 0 || with.P99 == 0 || with.Answered == 0 ||
			with.CallMS == 0 || with.Drops["punt_rate"] == 0 {
			return fmt.Errorf("%+v", with)
		}
		return nil
	})
}

// Frames that are in rings at the end of a trial, because the router did not run, are not lost.
func TestFramesInRings(t *testing.T) {
	o := options(t)
	s := &run{Options: o, Progress: silent{}}
	if err := s.prepare(); err != nil {
		t.Fatal(err)
	}
	o.Attacks, o.Ports = []string{"frames-64"}, []string{scenario.Memif}
	b, err := s.open(t.Context(), o.rows()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	row := &Row{Name: "frames-64", Port: scenario.Memif}
	p := &Sample{}
	var last error
	if err := wait.Patiently(t.Context(), func() (bool, error) { // until it stands still in the trial, and then runs
		if last = b.calibrate(t.Context(), row); last != nil {
			return false, nil
		}
		var over atomic.Bool
		stopped := make(chan error, 1)
		go func() {
			time.Sleep(o.Trial / 2)
			err := unix.Kill(b.PID(), unix.SIGSTOP)
			time.Sleep(2 * o.Trial)
			if over.Load() {
				err = errors.Join(err, errors.New("the trial was over before"))
			}
			stopped <- errors.Join(err, unix.Kill(b.PID(), unix.SIGCONT))
		}()
		got, err := b.trial(t.Context(), row, attacked)
		over.Store(true)
		if last = errors.Join(err, <-stopped); last == nil {
			p = got
		}
		return last == nil, nil
	}); err != nil {
		t.Fatalf("no trial ran: %v", last)
	}
	if p.NotCounted > 0 {
		t.Errorf("%d frames are lost: %+v", p.NotCounted, p)
	}
}

type idleGuest struct{}

func (idleGuest) post() (int, error) { return 0, nil }
func (idleGuest) close() error       { return nil }

// A guest that only connects rests after each connection, and after each refusal.
func TestReconnectingGuestRests(t *testing.T) {
	for _, refusal := range []error{nil, unix.ECONNREFUSED, errNotServed} {
		tries := 0
		// timed: it is to expire
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
		began := time.Now()
		done, err := attackAs(ctx, func() (guest, error) { tries++; return idleGuest{}, refusal }, true)
		stop()
		if most := int(time.Since(began)/guestRest) + 1; err != nil || tries == 0 || tries > most {
			t.Errorf("refused with %v: %d connections, %v; at most %d", refusal, tries, err, most)
		}
		if refusal == nil && done != tries || refusal != nil && done != 0 {
			t.Errorf("refused with %v: %d connections counted of %d", refusal, done, tries)
		}
	}
}
