// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// Row has the measurements of one path over one underlay.
type Row struct {
	Network  string   `json:"network"`
	Overlay  string   `json:"overlay"`
	Underlay Underlay `json:"underlay"`
	From     string   `json:"from"`
	To       string   `json:"to"`
	Ping4    Ping     `json:"ping_ipv4"`
	Ping6    Ping     `json:"ping_ipv6"`
	TCP      Rate     `json:"tcp"`
	UDP      Rate     `json:"udp"`
	MTU      MTU      `json:"mtu"`
	// by reason, on all hosts of the lab while the row was measured
	Drops   map[string]uint64 `json:"drops,omitempty"`
	Outside map[string]uint64 `json:"lost_outside,omitempty"` // by place: lost before or after the routers
	Wire    []string          `json:"wire,omitempty"`         // a packet in each direction
	Error   string            `json:"error,omitempty"`
}

// MTU of the tenant's IP packets.
type MTU struct {
	Expected int `json:"expected"` // by the overhead of the tunnel
	IPv4     int `json:"ipv4"`     // found
	IPv6     int `json:"ipv6"`
}

// OK says whether every ping came back and nothing else went wrong.
func (r Row) OK() bool {
	return r.Error == "" && r.Ping4.Sent > 0 && r.Ping4.Lost() == 0 && r.Ping6.Sent > 0 && r.Ping6.Lost() == 0
}

// Report is the outcome of a demo.
type Report struct {
	Lab     string    `json:"lab"`
	Rows    []Row     `json:"rows"`
	Policy  []Check   `json:"policy"`  // security rules and translation
	Workers Switching `json:"workers"` // workers and modes that changed under traffic
	Seconds float64   `json:"seconds"`
}

// OK says whether all rows and checks are.
func (r Report) OK() bool {
	return len(r.Rows) > 0 && !slices.ContainsFunc(r.Rows, func(row Row) bool { return !row.OK() }) &&
		r.Workers.OK() && len(r.Policy) > 0 && !slices.ContainsFunc(r.Policy, func(c Check) bool { return !c.OK() })
}

// Progress is called at the begin of a row, after each step, and at its end.
type Progress interface {
	Begin(row Row)
	Step(text string)
	End(row Row)
}

// overlayName is the usual name of the encapsulation.
func (n Network) overlayName() string {
	name := map[apiv1.Encap]string{apiv1.Encap_ENCAP_MPLSOUDP: "MPLSoUDP", apiv1.Encap_ENCAP_MPLSOGRE: "MPLSoGRE",
		apiv1.Encap_ENCAP_VXLAN: "VXLAN", apiv1.Encap_ENCAP_GENEVE: "Geneve"}[n.Encap]
	if n.Bridge {
		return name + " bridge"
	}
	return name
}

// paths of a network: from its first guest to each other one.
func (t Topology) paths(n Network) []Path {
	var list []Path
	from := t.Guest(n.Name, n.Hosts[0])
	for _, to := range n.Hosts[1:] {
		list = append(list, Path{from, t.Guest(n.Name, to)})
	}
	return list
}

// Demo measures every network of a running lab over both underlays. It returns errors of the context and of
// the lab; the error of a measurement is in its row.
func (l *Lab) Demo(ctx context.Context, progress Progress) (Report, error) {
	begun := time.Now()
	report := Report{Lab: l.Name}
	for _, underlay := range []Underlay{IPv4, IPv6} {
		if underlay != l.Ledger.Underlay {
			if err := l.Configure(ctx, underlay); err != nil {
				return report, err
			}
		}
		for _, n := range l.Networks {
			for _, p := range l.paths(n) {
				row := Row{Network: n.Name, Overlay: n.overlayName(), Underlay: underlay, From: p.From.Name(),
					To: p.To.Name()}
				progress.Begin(row)
				if err := l.measure(ctx, p, &row, progress.Step); err != nil {
					row.Error = err.Error()
				}
				progress.End(row)
				if ctx.Err() != nil {
					return report, context.Cause(ctx)
				}
				report.Rows = append(report.Rows, row)
			}
		}
	}
	var err error
	report.Policy, err = l.Policy(ctx)
	if err == nil {
		report.Workers = l.Workers(ctx)
	}
	report.Seconds = time.Since(begun).Seconds()
	return report, err
}

// measure fills a row. It goes on after a step that failed.
func (l *Lab) measure(ctx context.Context, p Path, row *Row, step func(string)) error {
	before, err := l.losses(ctx, p)
	if err != nil {
		return err
	}
	var errs []error
	for _, measure := range []func(context.Context, Path, *Row, func(string)) error{l.pingAndLook, l.rates, l.mtus} {
		errs = append(errs, measure(ctx, p, row, step))
	}
	after, err := l.losses(ctx, p)
	lost := after.since(before)
	row.Drops, row.Outside = lost.drops, lost.outside
	return errors.Join(append(errs, err)...)
}

// pingAndLook pings while the wire is captured.
func (l *Lab) pingAndLook(ctx context.Context, p Path, row *Row, step func(string)) error {
	c, err := l.startCapture(ctx, p)
	if err != nil {
		return err
	}
	var err4, err6 error
	row.Ping4, err4 = l.Ping(ctx, p, IPv4)
	row.Ping6, err6 = l.Ping(ctx, p, IPv6)
	row.Wire, err = c.stop(ctx, p)
	step(fmt.Sprintf("ping %s", PingText(row.Ping4, row.Ping6)))
	return errors.Join(err4, err6, err)
}

func (l *Lab) rates(ctx context.Context, p Path, row *Row, step func(string)) (err error) {
	if row.TCP, err = l.TCP(ctx, p); err != nil {
		return fmt.Errorf("TCP: %w", err)
	}
	step("TCP " + BitRate(row.TCP.BitsPerSecond))
	// Half of TCP's rate, so that a loss is the router's and not the sender's.
	if row.UDP, err = l.UDP(ctx, p, row.TCP.BitsPerSecond/2, 1); err != nil {
		return fmt.Errorf("UDP: %w", err)
	}
	step(fmt.Sprintf("UDP %s", UDPText(row.UDP)))
	return nil
}

func (l *Lab) mtus(ctx context.Context, p Path, row *Row, step func(string)) (err error) {
	if row.MTU.Expected, err = l.ExpectedMTU(ctx, p); err != nil {
		return fmt.Errorf("MTU: %w", err)
	}
	if row.MTU.IPv4, err = l.ProbeMTU(ctx, p, IPv4); err != nil {
		return fmt.Errorf("MTU: %w", err)
	}
	if row.MTU.IPv6, err = l.ProbeMTU(ctx, p, IPv6); err != nil {
		return fmt.Errorf("MTU: %w", err)
	}
	step("MTU " + row.MTU.String())
	return nil
}

// String writes the MTU that was found, and the expected one where that differs.
func (m MTU) String() string {
	if m.IPv4 == m.Expected && m.IPv6 == m.Expected {
		return fmt.Sprint(m.Expected)
	}
	return fmt.Sprintf("%d/%d, not %d", m.IPv4, m.IPv6, m.Expected)
}

// PingText writes loss and mean round trips of IPv4 and IPv6.
func PingText(a, b Ping) string {
	both := Ping{Sent: a.Sent + b.Sent, Received: a.Received + b.Received}
	return fmt.Sprintf("%.0f%% lost, %.2f/%.2f ms", both.LossPercent(), a.AvgMs, b.AvgMs)
}

// UDPText writes the received rate and the loss.
func UDPText(r Rate) string {
	return fmt.Sprintf("%s, %.2g%% lost", BitRate(r.BitsPerSecond), r.LostPercent)
}

// BitRate writes a rate with three digits and a unit.
func BitRate(bps float64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"Gbit/s", 1e9}, {"Mbit/s", 1e6}, {"kbit/s", 1e3}} {
		if bps >= unit.size {
			return fmt.Sprintf("%.3g %s", bps/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%.0f bit/s", bps)
}

// LossText lists counters, the largest first.
func LossText(drops map[string]uint64) string {
	reasons := make([]string, 0, len(drops))
	for reason := range drops {
		reasons = append(reasons, reason)
	}
	slices.SortFunc(reasons, func(a, b string) int {
		if drops[a] != drops[b] {
			return int(drops[b]) - int(drops[a])
		}
		return strings.Compare(a, b)
	})
	for i, reason := range reasons {
		reasons[i] = fmt.Sprintf("%s %d", reason, drops[reason])
	}
	if len(reasons) == 0 {
		return "none"
	}
	return strings.Join(reasons, ", ")
}

// Try lists commands worth typing while the lab is up. program is how corelane is called.
func (l *Lab) Try(program string) []string {
	h := l.corelaneHosts()[0]
	p := l.paths(l.Networks[0])[0]
	run := program + " lab run " + l.Name + " "
	return []string{
		run + p.From.Name() + " -- ping " + p.To.Address(IPv4),
		run + h.Name + " -- corelane trace --port " + p.From.Port() + " --filter icmp",
		run + h.Name + " -- tcpdump -n -c 4 -i " + fabricPort,
		run + h.Name + " -- corelane status",
		run + h.Name + " -- corelane export",
	}
}
