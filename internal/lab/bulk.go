// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/process"
	"github.com/corelane/corelane/internal/procfs"
	"github.com/corelane/corelane/internal/stat"
	"github.com/corelane/corelane/internal/state"
)

// BulkSample is one measurement of bulk TCP.
type BulkSample struct {
	Rate
	CPUSeconds float64 `json:"cpu_seconds_per_gigabyte"` // of the whole machine
}

// BulkRow is a path with its samples, one of each round.
type BulkRow struct {
	BulkPath
	Connections int          `json:"connections"`
	Back        bool         `json:"back"` // from the second guest to the first one
	Samples     []BulkSample `json:"samples"`
	Error       string       `json:"error,omitempty"`
}

// Gbps, CPU and Retransmits are the figures of a row, as medians with their ranges.
func (r BulkRow) Gbps() stat.Spread {
	return stat.SpreadOf(r.Samples, func(s BulkSample) float64 { return s.BitsPerSecond / 1e9 })
}
func (r BulkRow) CPU() stat.Spread {
	return stat.SpreadOf(r.Samples, func(s BulkSample) float64 { return s.CPUSeconds })
}
func (r BulkRow) Retransmits() stat.Spread {
	return stat.SpreadOf(r.Samples, func(s BulkSample) float64 { return float64(s.Rate.Retransmits) })
}

// BulkComparison is a target and what was measured: the ratio of each round.
type BulkComparison struct {
	BulkTarget
	Ratio stat.Spread
}

// BulkReport is the whole measurement.
type BulkReport struct {
	Idle string    `json:"idle"` // policy of the workers
	Rows []BulkRow `json:"rows"`
}

func (r BulkReport) find(path string) *BulkRow {
	i := slices.IndexFunc(r.Rows, func(row BulkRow) bool {
		return row.Name == path && row.MTU == bulkMTU && row.Connections == 1 && !row.Back && row.Error == ""
	})
	if i < 0 {
		return nil
	}
	return &r.Rows[i]
}

// Compare returns the targets whose paths were both measured.
func (r BulkReport) Compare() (list []BulkComparison) {
	for _, t := range BulkTargets() {
		of, to := r.find(t.Of), r.find(t.To)
		if of == nil || to == nil {
			continue
		}
		var ratios []float64
		for i := range min(len(of.Samples), len(to.Samples)) {
			if below := to.Samples[i].BitsPerSecond; below > 0 {
				ratios = append(ratios, of.Samples[i].BitsPerSecond/below)
			}
		}
		if len(ratios) > 0 {
			list = append(list, BulkComparison{t, stat.SpreadOf(ratios, stat.Itself)})
		}
	}
	return list
}

// BulkOptions of a measurement.
type BulkOptions struct {
	Options
	Paths       []BulkPath
	Rounds      int // each measures all paths in turn
	Seconds     int // of each sample
	Connections []int
	Measured    func(round int, row BulkRow)
}

type bulkBench struct {
	o    BulkOptions
	labs map[string]*Lab
}

// RunBulk measures bulk TCP in labs of its own, which it removes afterwards. The labs of all paths are up at the same
// time; the daemons of those that are not measured are stopped, because idle workers take CPU time, too. A path that
// cannot be measured keeps its error.
func RunBulk(ctx context.Context, o BulkOptions) (r BulkReport, err error) {
	o.defaults()
	b := &bulkBench{o: o, labs: map[string]*Lab{}}
	defer func() {
		err = errors.Join(err, b.signal("", syscall.SIGCONT))
		for name, l := range b.labs {
			err = errors.Join(err, l.endGuests(), TakeDown(name, o.Options))
		}
	}()
	r.Idle = o.Idle
	for _, p := range o.Paths {
		missing := ""
		if err := b.bringUp(ctx, p); ctx.Err() != nil {
			return r, context.Cause(ctx)
		} else if err != nil {
			missing = fmt.Sprintf("%s: %v", p.lab, err)
		}
		for _, n := range o.Connections {
			there := BulkRow{BulkPath: p, Connections: n, Error: missing}
			back := there
			back.Back = true
			r.Rows = append(r.Rows, there, back)
		}
	}
	for round := range o.Rounds {
		for i := range r.Rows {
			row := &r.Rows[i]
			if row.Error != "" {
				continue
			}
			s, err := b.measure(ctx, row)
			if ctx.Err() != nil {
				return r, context.Cause(ctx)
			}
			if err != nil {
				row.Error = err.Error()
			} else {
				row.Samples = append(row.Samples, s)
			}
			if o.Measured != nil {
				o.Measured(round, *row)
			}
		}
	}
	return r, nil
}

// signal sends a signal to the processes of all labs but one.
func (b *bulkBench) signal(except string, sig syscall.Signal) error {
	var errs []error
	for name, l := range b.labs {
		for _, p := range l.Ledger.Processes {
			if name != except {
				errs = append(errs, p.signal(sig))
			}
		}
	}
	return errors.Join(errs...)
}

func (b *bulkBench) bringUp(ctx context.Context, p BulkPath) error {
	if b.labs[p.lab] != nil {
		return nil
	}
	t, err := Find(p.lab)
	if err != nil {
		return err
	}
	l, err := BringUp(ctx, t, b.o.Options)
	if err != nil {
		return err
	}
	b.labs[p.lab] = l
	for _, n := range l.Networks {
		if n.Name == guardName {
			return l.guardBulk(ctx, n)
		}
	}
	return nil
}

// guardBulk makes the ports of a network stateful, with rules of which the last one allows everything, and gives the
// second guest a floating address.
func (l *Lab) guardBulk(ctx context.Context, n Network) error {
	p := l.paths(n)[0]
	for _, h := range []Host{p.From.Host, p.To.Host} {
		s := l.Node(h, l.Ledger.Underlay)
		for _, port := range s.Ports {
			if port.Vrf == n.Name {
				port.Stateful, port.IngressRules, port.EgressRules = true, guardList, guardList
			}
		}
		s.RuleLists = append(s.RuleLists, &apiv1.RuleList{Name: guardList})
		for i := range bulkRules {
			r := &apiv1.Rule{List: guardList, Id: uint32(i + 1), Action: apiv1.RuleAction_RULE_ACTION_ALLOW}
			if i < bulkRules-1 {
				r.Protocol, r.Source = "tcp", fmt.Sprintf("172.16.%d.%d/32", i/250, 1+i%250)
				r.DestinationPorts = strconv.Itoa(1 + i)
			}
			s.Rules = append(s.Rules, r)
		}
		if h == p.To.Host {
			s.Nat = append(s.Nat, &apiv1.NatRule{Id: 1, Vrf: n.Name, Kind: &apiv1.NatRule_Floating{
				Floating: &apiv1.FloatingNat{Inside: p.To.Address(IPv4), Outside: floating}}})
		} else {
			s.Routes = append(s.Routes, state.NewRoute(n.Name, floating+"/32", n.nexthop(p.To.Host)))
		}
		s.Normalize()
		if _, err := l.apply(ctx, h, s); err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
	}
	return nil
}

func (p BulkPath) of(l *Lab) (path Path, address string) {
	for _, n := range l.Networks {
		if n.Name != p.network {
			continue
		}
		if n.Twins {
			path.From = Guest{Network: n, Host: l.Hosts[0]}
			path.To = Guest{Network: n, Host: l.Hosts[0], Second: true}
		} else {
			path = l.paths(n)[0]
		}
		if n.Name == guardName {
			return path, floating
		}
	}
	return path, path.To.Address(IPv4)
}

func (b *bulkBench) measure(ctx context.Context, row *BulkRow) (s BulkSample, err error) {
	l := b.labs[row.lab]
	path, address := row.of(l)
	err = errors.Join(b.signal("", syscall.SIGCONT), b.signal(row.lab, syscall.SIGSTOP))
	if err != nil {
		return s, err
	}
	if _, err := l.ping(ctx, path, 1, "-W", "2", address); err != nil { // resolves addresses before the measurement
		return s, err
	}
	server, err := l.startLogged(ctx, "iperf3 server", path.To.Name(), filepath.Join(l.Ledger.dir, "iperf3.log"),
		"Server listening", "iperf3", "-s", "-1", "--forceflush")
	if err != nil {
		return s, err
	}
	defer func() { _ = server.Stop() }() // it ends by itself after one test
	argv := []string{"iperf3", "-J", "-t", strconv.Itoa(b.o.Seconds), "-P", strconv.Itoa(row.Connections), "-c",
		address}
	if row.Back {
		argv = append(argv, "-R")
	}
	before, err := cpuSeconds()
	if err != nil {
		return s, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, time.Duration(b.o.Seconds)*time.Second+iperfPatience,
		fmt.Errorf("no end %v after its time", iperfPatience))
	defer cancel()
	s.Rate, err = runIperf(limited, process.Command{Argv: argv, Netns: l.Netns(path.From.Name())}, false)
	if err != nil {
		return s, err
	}
	after, err := cpuSeconds()
	if s.BitsPerSecond > 0 {
		s.CPUSeconds = (after - before) / (s.BitsPerSecond / 8e9 * float64(b.o.Seconds))
	}
	return s, err
}

// iperfPatience: iperf3 waits for ever where a connection stands still. Its row fails, and the next one is measured.
const iperfPatience = 20 * time.Second

// cpuSeconds is the time that all CPUs of the machine have spent since boot on anything.
func cpuSeconds() (sum float64, err error) {
	text, err := procfs.Host.Read("proc/stat")
	if err != nil {
		return 0, err
	}
	cpus, err := procfs.ParseStat(text)
	for _, t := range cpus {
		sum += float64(t.Total()-t.Unused()-t.Steal) / procfs.TicksPerSecond
	}
	return sum, err
}
