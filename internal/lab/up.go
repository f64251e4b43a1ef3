// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/namespace"
	"github.com/corelane/corelane/internal/process"
	"github.com/corelane/corelane/internal/vhostguest"
)

// Options of a new lab.
type Options struct {
	Underlay Underlay
	Daemon   string       // path of corelaned; empty: beside this program, or in PATH
	MemoryMB int          // of each corelaned
	Idle     string       // policy of the workers; empty: sleep, since labs share their CPUs
	Say      func(string) // called with each step
	Root     string       // of all labs; empty: Root

	WorkerCPU  *int     // nil: the hosts take turns over the CPUs
	DaemonArgs []string // more options of corelaned
}

// Lab is a lab on this machine.
type Lab struct {
	Topology
	Ledger *Ledger
	say    func(string)
	guests []*vhostguest.Guest // of networks with vhost-user ports: they end with this program
}

const (
	defaultMemory = 256
	startTimeout  = 30 * time.Second // EAL without hugepages clears all of its memory
)

func (o *Options) defaults() {
	if o.Underlay == "" {
		o.Underlay = IPv4
	}
	if o.MemoryMB == 0 {
		o.MemoryMB = defaultMemory
	}
	if o.Idle == "" {
		o.Idle = "sleep"
	}
	if o.Say == nil {
		o.Say = func(string) {}
	}
	if o.Root == "" {
		o.Root = Root
	}
}

// BringUp builds a lab. When it fails, or ctx ends, it removes everything again.
func BringUp(ctx context.Context, t Topology, o Options) (*Lab, error) {
	o.defaults()
	if unix.Geteuid() != 0 {
		return nil, errors.New("a lab is made of network namespaces, which needs root")
	}
	daemon, err := findDaemon(o.Daemon)
	if err != nil {
		return nil, err
	}
	unlock, err := lock(o.Root)
	if err != nil {
		return nil, err
	}
	defer unlock()
	ledger, err := create(o.Root, t, o.Underlay)
	if err != nil {
		return nil, err
	}
	l := &Lab{Topology: t, Ledger: ledger, say: o.Say}
	if err := l.build(ctx, daemon, o); err != nil {
		return nil, errors.Join(err, l.endGuests(), l.Ledger.tearDown(o.Say))
	}
	return l, nil
}

func (l *Lab) build(ctx context.Context, daemon string, o Options) error {
	l.say("namespaces and wires")
	if err := l.buildWires(); err != nil {
		return err
	}
	cpus, err := allowedCPUs()
	if err != nil {
		return err
	}
	daemons := map[string]*process.Process{}
	for i, h := range l.corelaneHosts() {
		l.say("corelaned on " + h.Name)
		cpu := cpus[i%len(cpus)]
		if o.WorkerCPU != nil {
			cpu = *o.WorkerCPU
		}
		if daemons[h.Name], err = l.startDaemon(h, daemon, cpu, o); err != nil {
			return err
		}
	}
	for _, h := range l.corelaneHosts() {
		if err := l.awaitDaemon(ctx, h, daemons[h.Name]); err != nil {
			return err
		}
	}
	for i, h := range l.Hosts {
		if !h.Ovs {
			continue
		}
		if err := l.startOvs(ctx, h, cpus[i%len(cpus)]); err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
	}
	if err := l.Configure(ctx, o.Underlay); err != nil {
		return err
	}
	for _, g := range l.Guests() {
		if err := l.startVhost(g); err != nil {
			return err
		}
		if err := l.dressGuest(g); err != nil {
			return err
		}
	}
	if err := l.settle(ctx); err != nil {
		return err
	}
	return l.Ledger.setStatus(Up)
}

func (l *Lab) corelaneHosts() []Host {
	return slices.DeleteFunc(slices.Clone(l.Hosts), func(h Host) bool { return h.Linux })
}

// allowedCPUs returns the CPUs that this process may use, the last one first, because the first ones tend to have
// interrupts.
func allowedCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, err
	}
	var cpus []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			cpus = append([]int{cpu}, cpus...)
		}
	}
	return cpus, nil
}

// buildWires makes all namespaces, the wire between hosts, and the bridges of Linux hosts.
func (l *Lab) buildWires() error {
	for _, name := range l.namespaces() {
		if err := l.Ledger.addNetns(name); err != nil {
			return err
		}
	}
	if err := l.plugHosts(); err != nil {
		return err
	}
	for _, h := range l.Hosts {
		if err := l.prepareHost(h); err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
	}
	return nil
}

const switchName = "wire"

func (l *Lab) hasSwitch() bool { return len(l.Hosts) > 2 }

func (l *Lab) namespaces() []string {
	var names []string
	if l.hasSwitch() {
		names = append(names, l.Netns(switchName))
	}
	for _, h := range l.Hosts {
		names = append(names, l.Netns(h.Name))
	}
	for _, g := range l.Guests() {
		names = append(names, l.Netns(g.Name()))
	}
	return names
}

// plugHosts connects two hosts directly, and more than two through a bridge.
func (l *Lab) plugHosts() error {
	if len(l.Hosts) == 1 || l.sharesMemory() {
		return nil
	}
	ends := make([]end, len(l.Hosts))
	for i, h := range l.Hosts {
		ends[i] = end{l.Netns(h.Name), fabricPort, h.mac(), l.Wire}
	}
	if !l.hasSwitch() {
		return wire(ends[0], ends[1], int(l.WireMTU))
	}
	var ports []string
	for i, h := range l.Hosts {
		ports = append(ports, h.Name)
		if err := wire(ends[i], end{l.Netns(switchName), h.Name, "", l.Wire}, int(l.WireMTU)); err != nil {
			return err
		}
	}
	return namespace.Do(l.Netns(switchName), func() error {
		if err := namespace.Sysctl("net/ipv6/conf/all/disable_ipv6", "1"); err != nil {
			return err
		}
		return bridge("br0", int(l.WireMTU), ports...)
	})
}

func (l *Lab) prepareHost(h Host) error {
	if len(l.Hosts) == 1 && !h.Linux || l.sharesMemory() {
		return nil
	}
	if !h.Linux { // the interface is corelaned's: the kernel must not send on it
		return namespace.Do(l.Netns(h.Name), func() error {
			if l.Wire == WireCut {
				if err := namespace.ReceiveTogether(fabricPort); err != nil {
					return err
				}
			}
			return namespace.Sysctl("net/ipv6/conf/"+fabricPort+"/disable_ipv6", "1")
		})
	}
	if len(l.Hosts) > 1 && !h.Ovs {
		err := namespace.Do(l.Netns(h.Name), func() error {
			return addresses(fabricPort, h.cidr(IPv4), h.cidr(IPv6))
		})
		if err != nil {
			return err
		}
	}
	for _, g := range l.Guests() {
		if g.Host != h || g.Network.Vhost {
			continue
		}
		offloads := l.Wire
		if offloads == WireCut {
			offloads = WireWhole
		}
		if err := wire(end{l.Netns(h.Name), g.Name(), "", offloads}, end{l.Netns(g.Name()), "eth0", "", offloads},
			int(g.Network.MTU)); err != nil {
			return err
		}
		if err := l.linuxNetwork(g); err != nil {
			return err
		}
	}
	return nil
}

// findDaemon looks beside this program, then in PATH.
func findDaemon(path string) (string, error) {
	if path == "" {
		path = "corelaned"
		if self, err := os.Executable(); err == nil {
			if beside := filepath.Join(filepath.Dir(self), "corelaned"); exists(beside) {
				path = beside
			}
		}
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return "", fmt.Errorf("corelaned: %w; build it (make build) or give its path (--corelaned)", err)
	}
	return filepath.Abs(found)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
