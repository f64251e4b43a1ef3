// SPDX-License-Identifier: Apache-2.0
package bgp

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
)

// readMessage reads one message of BGP.
func readMessage(t *testing.T, from net.Conn) *bgp.BGPMessage {
	t.Helper()
	head := make([]byte, 19)
	if _, err := io.ReadFull(from, head); err != nil {
		t.Fatal(err)
	}
	all := append(head, make([]byte, binary.BigEndian.Uint16(head[16:])-19)...)
	if _, err := io.ReadFull(from, all[19:]); err != nil {
		t.Fatal(err)
	}
	m, err := bgp.ParseBGPMessage(all)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// In each session, and not in the first one alone, a node says that it has gone on forwarding. To a peer that does not
// know of RT constraint it is not offered again.
func TestASessionThatHasEnded(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	events := make(chan Event, 100)
	s, err := Start(t.Context(), &agentv1.Bgp{Asn: 65000, RouterId: "192.0.2.1", RestartSeconds: 10,
		StaleSeconds: 86400}, func(e Event) { events <- e })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	peers := []*agentv1.Peer{{Address: "127.0.0.1", HoldSeconds: 90, MaxPrefixes: 1000,
		Port: uint32(l.Addr().(*net.TCPAddr).Port)}}
	for n := range 2 {
		if err := s.SetPeers(t.Context(), peers); err != nil {
			t.Fatal(err)
		}
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		open, ok := readMessage(t, conn).Body.(*bgp.BGPOpen)
		if !ok {
			t.Fatal("no OPEN")
		}
		checkRestart(t, open, len(families)+1-n)
		answer, err := bgp.NewBGPOpenMessage(65000, 90, netip.MustParseAddr("192.0.2.9"),
			[]bgp.OptionParameterInterface{bgp.NewOptionParameterCapability(
				[]bgp.ParameterCapabilityInterface{bgp.NewCapMultiProtocol(bgp.RF_IPv4_VPN)})})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []*bgp.BGPMessage{answer, bgp.NewBGPKeepAliveMessage()} {
			raw, err := m.Serialize()
			if err == nil {
				_, err = conn.Write(raw)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		within(t, "session", events, func(e Event) bool { return e.Up && e.Unconstrained && e.State == "established" })
		_ = conn.Close()
		within(t, "end of the session", events, func(e Event) bool { return e.Down })
	}
}

// A peer that does not know of RT constraint is not offered it by the next speaker either: GoBGP would tell it that all
// route targets are sent, and FRR would close the session.
func TestUnconstrained(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, err := Start(t.Context(), &agentv1.Bgp{Asn: 65000, RouterId: "192.0.2.1", StaleSeconds: 86400}, func(Event) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	s.Unconstrained(netip.MustParseAddr("127.0.0.1"))
	if err := s.SetPeers(t.Context(), []*agentv1.Peer{{Address: "127.0.0.1", HoldSeconds: 90,
		Port: uint32(l.Addr().(*net.TCPAddr).Port)}}); err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	open, ok := readMessage(t, conn).Body.(*bgp.BGPOpen)
	if !ok {
		t.Fatal("no OPEN")
	}
	checkRestart(t, open, len(families))
}

func checkRestart(t *testing.T, open *bgp.BGPOpen, offered int) {
	t.Helper()
	restarts, longLived := 0, 0
	for _, o := range open.OptParams {
		list, ok := o.(*bgp.OptionParameterCapability)
		if !ok {
			continue
		}
		for _, c := range list.Capability {
			switch c := c.(type) {
			case *bgp.CapGracefulRestart:
				if restarts++; c.Flags&0x08 == 0 {
					t.Error("it does not say that it may have been restarted")
				}
				for _, f := range c.Tuples {
					if f.Flags&0x80 == 0 {
						t.Errorf("it says that it does not forward for AFI %d, SAFI %d", f.AFI, f.SAFI)
					}
				}
			case *bgp.CapLongLivedGracefulRestart:
				for _, f := range c.Tuples {
					if longLived++; f.RestartTime != 86400 {
						t.Errorf("AFI %d, SAFI %d are kept for %d s", f.AFI, f.SAFI, f.RestartTime)
					}
				}
			}
		}
	}
	if restarts != 1 || longLived != offered {
		t.Errorf("%d capabilities of graceful restart, %d families with LLGR", restarts, longLived)
	}
}
