// SPDX-License-Identifier: Apache-2.0
package restart

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/generator"
)

// stream is a paced stream from one port to another one of the same kind, with a generator of its own.
type stream struct {
	kind string
	ends [2]end
	*generator.Generator
}

// end is a port of the router, and the generator behind it.
type end struct {
	name    string
	mac     net.HardwareAddr
	address netip.Addr
	gateway netip.Prefix
	path    string // of a socket
}

func newStream(kind string, number int, dir string) *stream {
	s := &stream{kind: kind}
	for i := range s.ends {
		n := byte(2*number + i)
		s.ends[i] = end{name: fmt.Sprintf("%s%d", kind, i), mac: net.HardwareAddr{2, 0xc1, 0, 1, 0, n},
			address: netip.AddrFrom4([4]byte{10, 1, n, 2}),
			gateway: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 1, n, 1}), 24),
			path:    filepath.Join(dir, fmt.Sprintf("%s%d.sock", kind, i))}
	}
	return s
}

// port is what the router has at an end. Guests are the servers, as a QEMU that outlives its routers: so the outage is
// the router's, and not the time until a guest tries to connect again.
func (s *stream) port(e *end) *apiv1.Port {
	p := &apiv1.Port{Name: e.name, Role: apiv1.PortRole_PORT_ROLE_TENANT, Vrf: inside,
		Gateways: []string{e.gateway.String()}, GuestMac: e.mac.String(), GuestAddresses: []string{e.address.String()}}
	switch s.kind {
	case "tap":
		p.Device = &apiv1.Port_Tap{Tap: &apiv1.TapDevice{Ifname: e.name, Netns: space("taps")}}
	case "memif":
		p.Device = &apiv1.Port_Memif{Memif: &apiv1.MemifDevice{Socket: e.path, Role: apiv1.MemifRole_MEMIF_ROLE_CLIENT}}
	case "vhost":
		p.Device = &apiv1.Port_Vhost{Vhost: &apiv1.VhostDevice{Socket: e.path, Client: true}}
	}
	return p
}

func (s *stream) generatorPort(i int) *apiv1.GeneratorPort {
	e := &s.ends[i]
	g := &apiv1.GeneratorPort{Name: e.name}
	switch s.kind {
	case "tap":
		g.Device = &apiv1.GeneratorPort_Devargs{Devargs: fmt.Sprintf("net_af_packet%d,iface=%s", i, e.name)}
	case "memif":
		g.Device = &apiv1.GeneratorPort_Devargs{
			Devargs: fmt.Sprintf("net_memif%d,role=server,socket=%s,socket-abstract=no", i, e.path)}
	case "vhost":
		g.Device = &apiv1.GeneratorPort_Devargs{
			Devargs: fmt.Sprintf("net_virtio_user%d,path=%s,server=1,queue_size=1024", i, e.path)}
	}
	return g
}

const (
	ethernetSize = 14
	ip4Size      = 20
	udpSize      = 8
	frameSize    = 128
	ttl          = 64
	udpProtocol  = 17
)

var gatewayMAC = net.HardwareAddr{0, 0, 0x5e, 0, 1, 1}

// header is that of UDP over IPv4; the generator fills in lengths and the checksum.
func (s *stream) header() []byte {
	from, to := &s.ends[0], &s.ends[1]
	h := append(append([]byte{}, gatewayMAC...), from.mac...)
	h = append(h, 8, 0, 0x45, 0, 0, 0, 0, 0, 0x40, 0, ttl, udpProtocol, 0, 0)
	h = append(append(h, from.address.AsSlice()...), to.address.AsSlice()...)
	h = binary.BigEndian.AppendUint16(h, 10000)
	h = binary.BigEndian.AppendUint16(h, 2000)
	return append(h, 0, 0, 0, 0)
}

func (s *stream) profile() *apiv1.GeneratorProfile {
	h := s.header()
	p := &apiv1.GeneratorProfile{Streams: []*apiv1.GeneratorStream{{Name: s.kind, TxPort: s.ends[0].name,
		RxPort: s.ends[1].name, Header: h, InnerOffset: ethernetSize, Sizes: []uint32{frameSize},
		Lengths: []*apiv1.GeneratorLength{{Offset: ethernetSize + 2, Minus: ethernetSize},
			{Offset: ethernetSize + ip4Size + 4, Minus: ethernetSize + ip4Size}},
		Ip4Offsets: []uint32{ethernetSize}, Expected: h, ExpectedMask: make([]byte, len(h)), Untimed: true}}}
	for i := range s.ends {
		p.Ports = append(p.Ports, s.generatorPort(i))
	}
	return p
}

// start starts the generator. The router connects to it, or it to the router.
func (s *stream) start(ctx context.Context, o *Options, dir string) (err error) {
	dir = filepath.Join(dir, "gen-"+s.kind)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	at := generator.Place{Bin: o.Bin, Dir: dir, CPU: o.Other, ControlCPU: o.Other, RoundTripCPU: -1}
	if s.kind == "tap" {
		at.Netns = space("taps")
	}
	if s.Generator, err = generator.Start(ctx, at); err != nil {
		return err
	}
	return s.Configure(ctx, s.profile())
}

func (s *stream) close() error {
	if s.Generator == nil {
		return nil
	}
	return s.Generator.Close()
}

func (s *stream) stop(ctx context.Context) error { return s.Generator.Stop(ctx) }

// trial is what came of a stream.
type trial struct {
	kind     string
	due      uint64
	late     uint64 // of those: not sent, because the generator did not get its CPU in time
	received uint64
	windows  []arrivals
	err      error
}

type arrivals struct {
	start    time.Duration
	length   time.Duration
	received uint64
}

// restUS is the time that a generator rests when there is nothing to do: several share a CPU.
const restUS = 100

func (s *stream) run(ctx context.Context, rate int) trial {
	t := trial{kind: s.kind}
	seconds := func(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }
	total, err := s.Run(ctx, &apiv1.GeneratorTrial{DurationMs: uint32(longest.Milliseconds()),
		PacketsPerSecond: float64(rate), WindowMs: window, RestUs: restUS}, func(w *apiv1.GeneratorWindow) {
		t.windows = append(t.windows, arrivals{seconds(w.StartSeconds), seconds(w.Seconds), w.Received})
	})
	t.err = err
	if err == nil {
		t.due, t.late, t.received = total.Due, total.Late, total.Received
	}
	return t
}

// sent counts the packets that the generator sent or would have sent, had the router left it room.
func (t *trial) sent() uint64 { return t.due - min(t.due, t.late) }

func (t *trial) lost() uint64 { return t.sent() - min(t.sent(), t.received) }

// outage is the longest time in ms of windows without a packet, after the stream has begun and `from` is over.
func (t *trial) outage(from time.Duration) float64 {
	var most, now time.Duration
	for _, w := range t.windows {
		if w.start < from {
			continue
		}
		if now += w.length; w.received > 0 {
			now = 0
		}
		most = max(most, now)
	}
	return float64(most.Microseconds()) / 1000
}
