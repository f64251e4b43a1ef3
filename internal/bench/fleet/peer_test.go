// SPDX-License-Identifier: Apache-2.0
package fleet

import (
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
	"github.com/corelane/corelane/internal/bgp"
	"github.com/corelane/corelane/internal/vpn"
)

// agentSide is the agent's side of BGP, whose only peer is the one of this package.
type agentSide struct {
	listener net.Listener
	speaker  *bgp.Speaker
}

func newAgentSide(t testing.TB, each func(bgp.Event)) *agentSide {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	s, err := bgp.Start(t.Context(), &agentv1.Bgp{Asn: asn, RouterId: "192.0.2.1", RestartSeconds: 10}, each)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return &agentSide{l, s}
}

// session begins one, anew if there was one that has ended.
func (a *agentSide) session(t testing.TB) *peer {
	t.Helper()
	if err := a.speaker.SetPeers(t.Context(), []*agentv1.Peer{{Address: "127.0.0.1", HoldSeconds: holdTime,
		MaxPrefixes: 1000000, Port: uint32(a.listener.Addr().(*net.TCPAddr).Port)}}); err != nil {
		t.Fatal(err)
	}
	conn, err := a.listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{router: netip.MustParseAddr("192.0.2.100")}
	if err := p.speak(conn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p
}

// The agent's side of BGP reads what the peer sends.
func TestPeer(t *testing.T) {
	events := make(chan bgp.Event, 100)
	p := newAgentSide(t, func(e bgp.Event) { events <- e }).session(t)
	list := append(unique(3), shared(sharedRoutes + 5)[3:]...)
	if err := p.send(append(announce(list), endOfRib()...)); err != nil {
		t.Fatal(err)
	}
	until := func(what string, done func(bgp.Event) bool) {
		for late := time.After(time.Minute); ; {
			select {
			case e := <-events:
				if e.Faults > 0 {
					t.Fatalf("%d paths cannot be read", e.Faults)
				}
				if done(e) {
					return
				}
			case <-late:
				t.Fatal("no " + what)
			}
		}
	}
	known := map[netip.Prefix]vpn.Path{}
	until("end of the table", func(e bgp.Event) bool {
		for _, p := range e.Updates {
			known[p.Prefix] = p
		}
		return e.EndOfRib
	})
	if len(known) != len(list) {
		t.Errorf("%d paths of %d came", len(known), len(list))
	}
	got := known[netip.MustParsePrefix("20.0.0.2/32")]
	if text := fmt.Sprint(got.Nexthop, got.Label, got.Targets, got.Encaps, got.MED); text !=
		"100.65.0.2 1000 [65000:100] [ENCAP_MPLSOUDP] 2" {
		t.Error(text)
	}
	if err := p.send(withdraw(list)); err != nil {
		t.Fatal(err)
	}
	until("end of all paths", func(e bgp.Event) bool {
		for _, k := range e.Withdrawn {
			delete(known, k.Prefix)
		}
		return len(known) == 0
	})
}

// What a received path costs from the socket to the agent's engine: time and allocations, those of GoBGP among them.
func BenchmarkReceive(b *testing.B) {
	for name, routes := range map[string]func(int) []route{"unique": unique, "shared": shared} {
		b.Run(name, func(b *testing.B) {
			var got atomic.Int64
			done := make(chan struct{})
			p := newAgentSide(b, func(e bgp.Event) {
				if got.Add(int64(len(e.Updates))) == int64(b.N) {
					close(done)
				}
			}).session(b)
			messages := announce(routes(b.N))
			before := cpuTime(b)
			b.ReportAllocs()
			b.ResetTimer()
			if err := p.send(messages); err != nil {
				b.Fatal(err)
			}
			<-done
			b.StopTimer()
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpuTime is what this process has used of the CPUs: unlike the time that passes, it does not depend on others.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
