// SPDX-License-Identifier: Apache-2.0
package neighbor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/gopacket/gopacket/layers"
	"google.golang.org/protobuf/proto"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/generator"
	"github.com/corelane/corelane/internal/bench/router"
	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/bench/testbed"
)

// Names of ports and streams. The scenario names the others.
const (
	attackPort = "tenant1"
	victim     = "tenant0->wire"
	attackFrom = "tenant1->wire"
	attackTo   = "wire->tenant1"
	ordinary   = "ordinary"
	hostPort   = "host" // fabric port of the host that asks for the router's address
)

const (
	flowTable = 1 << 18
	leastFree = 256 // MB of hugepages that the router needs
	mostUsed  = 1024
	// ring of the wire's port beside a tap, which keeps the generator in the kernel
	slowRing = 16384
	tapPace  = 0.01 // the kernel takes a microsecond for each of these frames
)

// bed is a router with two tenants and a host on the fabric, which asks for the router's MAC address.
type bed struct {
	*testbed.Bed
	options   *Options
	generator *generator.Generator // both tenants and the wire
	host      *generator.Generator
	attacker  *attacker
	profile   *apiv1.GeneratorProfile
	worker    int32 // thread
}

func (s *run) open(ctx context.Context, r row) (*bed, error) {
	b := &bed{options: &s.Options}
	err := b.start(ctx, r, s.memory)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *bed) start(ctx context.Context, r row, memory int) (err error) {
	if b.Bed, err = testbed.New("bench"); err != nil {
		return err
	}
	sc, err := b.options.scenario()
	if err != nil {
		return err
	}
	setup, err := scenario.Build(sc, b.Dir, ringSize)
	if err != nil {
		return err
	}
	if err := b.attack(setup, r); err != nil {
		return err
	}
	env := &router.Env{CPUs: []int{b.options.WorkerCPU}, ControlCPU: b.options.Generator, Memory: memory,
		Bin: b.options.Bin, Options: append([]string{"--flows", strconv.Itoa(flowTable)}, b.attacker.options...)}
	if err := b.StartRouter(ctx, new(router.Corelane), env, setup); err != nil {
		return err
	}
	if b.attacker.prepare != nil {
		if err := b.attacker.prepare(ctx, b.Client()); err != nil {
			return err
		}
	}
	if b.generator, err = b.connect(ctx, b.Dir, b.profile); err != nil {
		return err
	}
	if err := b.startHost(ctx); err != nil {
		return err
	}
	list, err := b.Workers(ctx)
	if err == nil && len(list) != 1 {
		err = fmt.Errorf("the router has %d workers, not one", len(list))
	}
	if err == nil {
		b.worker = list[0].GetState().GetTid()
	}
	return err
}

// attack builds the streams of both tenants: that of the attack and, where latencies are measured, that of an ordinary
// neighbour. The observed tenant's is the last one: the generator expects its probe in the frames of the wire.
func (b *bed) attack(setup *scenario.Setup, r row) error {
	setup.Ports[1].Device = r.port
	pace := 2.0
	if r.port == scenario.Tap {
		setup.Ports[2].RingSize, pace = slowRing, tapPace
	}
	profile, err := setup.Profile()
	if err != nil {
		return err
	}
	streams := map[string]*apiv1.GeneratorStream{}
	for _, s := range profile.Streams {
		streams[s.Name] = s
	}
	from, to := proto.CloneOf(streams[attackFrom]), proto.CloneOf(streams[attackTo])
	a := &attacker{port: &setup.Ports[1], wire: &setup.Ports[2], stream: streams[attackFrom],
		towards: streams[attackTo], pace: pace}
	if err := r.attack.change(a); err != nil {
		return err
	}
	b.attacker, b.profile = a, profile
	if a.guest != nil {
		profile.Ports = slices.Delete(profile.Ports, 1, 2)
		profile.Streams = []*apiv1.GeneratorStream{streams[victim]}
		return nil
	}
	profile.Streams = []*apiv1.GeneratorStream{a.stream}
	if r.timed() {
		if a.ordinary = from; a.stream == a.towards {
			a.ordinary = to
		}
		a.ordinary.Name = ordinary
		profile.Streams = append(profile.Streams, a.ordinary)
	}
	for _, s := range profile.Streams {
		s.Untimed, s.ExpectedMask = true, make([]byte, len(s.Expected))
	}
	profile.Ports[1] = a.port.GeneratorPort() // the attack may have changed the MTU
	profile.Streams = append(profile.Streams, streams[victim])
	return nil
}

func (b *bed) connect(ctx context.Context, dir string, p *apiv1.GeneratorProfile) (*generator.Generator, error) {
	g, err := generator.Start(ctx, generator.Place{Bin: b.options.Bin, Dir: dir, CPU: b.options.Generator,
		ControlCPU: b.options.Generator, RoundTripCPU: -1})
	if err != nil {
		return nil, err
	}
	return g, b.Connect(ctx, g, p)
}

var (
	hostMAC    = net.HardwareAddr{0x02, 0xc1, 0, 0, 0x10, 2}
	hostRouter = []byte{203, 0, 113, 1}
	hostItself = []byte{203, 0, 113, 2}
)

// startHost adds a fabric port with a host behind it.
func (b *bed) startHost(ctx context.Context) error {
	dir := filepath.Join(b.Dir, hostPort)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	socket := filepath.Join(dir, "memif.sock")
	_, err := api.Call(ctx, b.Client(), apiv1.NewPortsClient, apiv1.PortsClient.Add, &apiv1.PortAddRequest{
		Port: &apiv1.Port{Name: hostPort, Role: apiv1.PortRole_PORT_ROLE_FABRIC, Addresses: []string{"203.0.113.1/24"},
			Device: &apiv1.Port_Memif{Memif: &apiv1.MemifDevice{Socket: socket, RingSize: ringSize}}}})
	if err != nil {
		return err
	}
	s := &apiv1.GeneratorStream{Name: "arp", TxPort: hostPort, RxPort: hostPort}
	if err := fixed(s, &layers.Ethernet{DstMAC: broadcast, SrcMAC: hostMAC, EthernetType: layers.EthernetTypeARP},
		arp(hostMAC, hostItself, hostRouter)); err != nil {
		return err
	}
	b.host, err = b.connect(ctx, dir, &apiv1.GeneratorProfile{
		Ports: []*apiv1.GeneratorPort{{Name: hostPort, Device: &apiv1.GeneratorPort_Memif{
			Memif: &apiv1.GeneratorMemif{Socket: socket, RingSize: 64}}}},
		Streams: []*apiv1.GeneratorStream{s}})
	return err
}
