// SPDX-License-Identifier: Apache-2.0
package restart

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/containerd/ttrpc"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/namespace"
	"github.com/corelane/corelane/internal/process"
	"github.com/corelane/corelane/internal/wait"
)

// VRFs, and what TCP goes between.
const (
	inside         = "inside"
	outside        = "outside"
	guestAddress   = "10.2.0.2"
	guestPrefix    = "10.2.0.0/24"
	serverAddress  = "192.0.2.2"
	translated     = "198.51.100.1"
	discardNexthop = 1
	routeBatch     = 4096
	diskBytes      = 64 << 20 // of the file system with the state, and of the one with the run directory
	startTimeout   = 60 * time.Second
)

func space(name string) string { return fmt.Sprintf("corelane-restart%d-%s", os.Getpid(), name) }

var spaces = []string{"taps", "guest", "outside"}

// bed is a router with its ports, and what is behind them.
type bed struct {
	o           *Options
	dir         string
	state       string
	mounted     []string // file systems, the last one first
	process     *process.Process
	client      *api.Client
	streams     []*stream
	connections connections
	context     context.Context // of the run
}

func newBed(ctx context.Context, o *Options) (*bed, error) {
	b := &bed{o: o, context: ctx}
	return b, b.start()
}

func (b *bed) start() (err error) {
	if b.dir, err = os.MkdirTemp("", "corelane-restart-"); err != nil {
		return err
	}
	if err := b.mount(b.dir); err != nil { // a run directory is in /run, where sockets are made at once
		return err
	}
	b.state = filepath.Join(b.dir, "state")
	if err := os.Mkdir(b.state, 0o700); err != nil {
		return err
	}
	if err := b.mount(b.state); err != nil {
		return err
	}
	for _, name := range spaces {
		if err := namespace.New(space(name), func() error { return nil }); err != nil {
			return err
		}
	}
	if err := b.run(); err != nil {
		return err
	}
	if err := b.configure(); err != nil {
		return err
	}
	return b.connect()
}

func (b *bed) mount(path string) error {
	if err := unix.Mount("tmpfs", path, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", diskBytes)); err != nil {
		return fmt.Errorf("a file system at %s: %w", path, err)
	}
	b.mounted = append([]string{path}, b.mounted...)
	return nil
}

// run starts a corelaned and waits until it answers, which it does when its state is back.
func (b *bed) run() error {
	if err := b.launch(); err != nil {
		return err
	}
	return b.dial()
}

func (b *bed) dial() error {
	return b.process.Await(b.context, startTimeout, func(ctx context.Context) (err error) {
		b.client, err = api.Dial(ctx, b.socket(), "corelane bench")
		return err
	})
}

func (b *bed) launch(more ...string) (err error) {
	argv := []string{filepath.Join(b.o.Bin, "corelaned"), "--run-dir", b.dir, "--socket", b.socket(), "--state-dir",
		b.state, "--worker-cpus", strconv.Itoa(b.o.Worker), "--control-cpus", strconv.Itoa(b.o.Other),
		"--idle", "sleep"}
	if b.o.Memory > 0 {
		argv = append(argv, "--memory", strconv.Itoa(b.o.Memory))
	} else {
		argv = append(argv, "--no-huge")
	}
	b.process, err = process.Start(process.Command{Name: "corelaned", Argv: append(argv, more...),
		Log: filepath.Join(b.dir, "corelaned.log")})
	return err
}

func (b *bed) socket() string { return filepath.Join(b.dir, "corelaned.sock") }

func (b *bed) configure() error {
	var errs []error
	for _, name := range []string{inside, outside} {
		errs = append(errs, add(b, apiv1.NewVrfsClient, apiv1.VrfsClient.Add,
			&apiv1.VrfAddRequest{Vrf: &apiv1.Vrf{Name: name}}))
	}
	for i, kind := range b.o.Kinds {
		s := newStream(kind, i, b.dir)
		b.streams = append(b.streams, s)
		for j := range s.ends {
			errs = append(errs, b.addPort(s.port(&s.ends[j])))
		}
	}
	errs = append(errs, b.addPort(tapPort("guest", inside, "10.2.0.1/24", guestAddress)),
		b.addPort(tapPort("outside", outside, "192.0.2.1/24", serverAddress)),
		add(b, apiv1.NewNatClient, apiv1.NatClient.Add, &apiv1.NatAddRequest{Rule: &apiv1.NatRule{Id: 1, Vrf: inside,
			ExternalVrf: outside, To: "192.0.2.0/24",
			Kind: &apiv1.NatRule_Source{Source: &apiv1.SourceNat{Prefix: guestPrefix, First: translated}}}}))
	for i := 2*len(b.streams) + 2; i < b.o.Ports; i++ {
		errs = append(errs, b.addPort(b.idlePort(i)))
	}
	return errors.Join(append(errs, b.addRoutes())...)
}

// idlePort carries nothing.
func (b *bed) idlePort(i int) *apiv1.Port {
	name := fmt.Sprintf("idle%d", i)
	return &apiv1.Port{Name: name, Role: apiv1.PortRole_PORT_ROLE_TENANT, Vrf: inside,
		Gateways: []string{fmt.Sprintf("10.3.%d.1/24", i)}, GuestMac: guestMAC(i).String(),
		GuestAddresses: []string{fmt.Sprintf("10.3.%d.2", i)},
		Device:         &apiv1.Port_Memif{Memif: &apiv1.MemifDevice{Socket: filepath.Join(b.dir, name+".sock")}}}
}

func guestMAC(i int) net.HardwareAddr {
	return net.HardwareAddr{2, 0xc1, 0, 3, byte(i >> 8), byte(i)}
}

func tapPort(name, vrf, gateway, address string) *apiv1.Port {
	return &apiv1.Port{Name: name, Role: apiv1.PortRole_PORT_ROLE_TENANT, Vrf: vrf, Gateways: []string{gateway},
		Stateful: vrf == inside, GuestMac: guestMAC(len(name)).String(), GuestAddresses: []string{address},
		Device: &apiv1.Port_Tap{Tap: &apiv1.TapDevice{Ifname: name, Netns: space(name)}}}
}

func (b *bed) addPort(p *apiv1.Port) error {
	return add(b, apiv1.NewPortsClient, apiv1.PortsClient.Add, &apiv1.PortAddRequest{Port: p})
}

func (b *bed) addNexthop(id uint32) error {
	return add(b, apiv1.NewNexthopsClient, apiv1.NexthopsClient.Add, &apiv1.NexthopAddRequest{
		Nexthop: &apiv1.Nexthop{Id: id, Kind: &apiv1.Nexthop_Discard{Discard: &apiv1.Empty{}}}})
}

func (b *bed) addRoutes() error {
	err := b.addNexthop(discardNexthop)
	for i := 0; i < b.o.Routes && err == nil; i += routeBatch {
		req := &apiv1.RouteAddRequest{}
		for j := i; j < min(i+routeBatch, b.o.Routes); j++ {
			req.Routes = append(req.Routes, &apiv1.Route{Vrf: inside, Nexthop: discardNexthop,
				Prefix: fmt.Sprintf("%d.%d.%d.0/24", 20+j>>16, j>>8&0xff, j&0xff)})
		}
		err = add(b, apiv1.NewRoutesClient, apiv1.RoutesClient.Add, req)
	}
	return err
}

func add[S, Req, Resp any](b *bed, service func(*ttrpc.Client) S, method func(S, context.Context, Req) (Resp, error),
	req Req) error {
	_, err := api.Call(b.context, b.client, service, method, req)
	return err
}

// connect brings the guests up.
func (b *bed) connect() error {
	err := errors.Join(addressOf("guest", guestAddress, "10.2.0.1"), addressOf("outside", serverAddress, "192.0.2.1"))
	for _, s := range b.streams {
		for i := range s.ends {
			if s.kind == "tap" {
				err = errors.Join(err, linkUp("taps", s.ends[i].name))
			}
		}
	}
	for _, s := range b.streams {
		if err == nil {
			err = s.start(b.context, b.o, b.dir)
		}
	}
	for _, s := range b.streams {
		if err == nil {
			err = s.WaitUp(b.context, startTimeout)
		}
	}
	b.connections.n, b.connections.space, b.connections.address = b.o.Connections, space("guest"), serverAddress
	if err == nil {
		err = b.connections.listen(space("outside"), serverAddress)
	}
	if err == nil {
		err = b.connections.dial()
	}
	return err
}

func linkUp(ns, name string) error {
	return namespace.Do(space(ns), func() error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(link)
	})
}

func addressOf(name, address, gateway string) error {
	return namespace.Do(space(name), func() error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		a, err := netlink.ParseAddr(address + "/24")
		if err != nil {
			return err
		}
		mac := guestMAC(len(name))
		return errors.Join(netlink.LinkSetHardwareAddr(link, mac), netlink.AddrAdd(link, a), netlink.LinkSetUp(link),
			netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.ParseIP(gateway)}))
	})
}

// --- Events ---

func (b *bed) again(how func() error) error {
	err := how()
	_ = b.client.Close()
	b.client = nil
	if err != nil {
		return err
	}
	return b.run()
}

// restart lets a standby take over, and then the next router from that one, as a restart of the service does.
func (b *bed) restart() error {
	if err := b.takeOver(); err != nil {
		return err
	}
	return b.takeOver()
}

// restartCold ends the router by request, and starts the next one at once, as a service manager does without a standby.
func (b *bed) restartCold() error { return b.again(b.process.Stop) }

// takeOver starts the next router beside the one that runs.
func (b *bed) takeOver() error {
	old := b.process
	_ = b.client.Close()
	b.client = nil
	if err := b.launch("--takeover"); err != nil {
		b.process = old
		return err
	}
	limited, cancel := context.WithTimeout(b.context, startTimeout)
	defer cancel()
	err := wait.Until(limited, time.Millisecond, func() (bool, error) { return old.Ended() != nil, b.process.Ended() })
	_ = old.Stop() // has ended by itself
	if err != nil {
		return err
	}
	return b.dial()
}

func (b *bed) kill() error {
	return b.again(func() error {
		err := unix.Kill(b.process.Pid, unix.SIGKILL)
		_ = b.process.Stop() // has ended by itself
		return err
	})
}

// killClient kills a client in the midst of a stream.
func (b *bed) killClient() error {
	c := exec.Command(filepath.Join(b.o.Bin, "corelane"), "--socket", b.socket(), "mac", "watch")
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return err
	}
	time.Sleep(time.Second / 2)
	err := c.Process.Kill()
	_ = c.Wait()
	return err
}

// fillDisk leaves no room for the kept state, and then changes something.
func (b *bed) fillDisk() error {
	path := filepath.Join(b.state, "fill")
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<12)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, unix.ENOSPC) {
		return errors.Join(err, f.Close())
	}
	for i := range uint32(1000) { // until the last page of the file is full
		if err = b.addNexthop(discardNexthop + 1 + i); err != nil {
			break
		}
	}
	status, call := api.Call(b.context, b.client, apiv1.NewSystemClient, apiv1.SystemService.GetStatus, &apiv1.Empty{})
	if err = errors.Join(err, call, f.Close(), os.Remove(path)); err == nil && status.GetKept().GetProblem() == "" {
		err = errors.New("the router does not say that its changes are not kept any more")
	}
	return err
}

func (b *bed) close() error {
	var errs []error
	errs = append(errs, b.connections.close())
	if b.connections.server != nil {
		errs = append(errs, b.connections.server.Close())
	}
	if b.client != nil {
		errs = append(errs, b.client.Close())
	}
	if b.process != nil {
		errs = append(errs, b.process.Stop())
	}
	for _, s := range b.streams {
		errs = append(errs, s.close())
	}
	for _, name := range spaces { // with their taps
		errs = append(errs, namespace.Delete(space(name)))
	}
	for _, path := range b.mounted {
		errs = append(errs, unix.Unmount(path, unix.MNT_DETACH))
	}
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}
