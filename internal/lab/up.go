// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/state"
)

// Options of a lab that comes up.
type Options struct {
	Underlay Underlay
	Daemon   string       // path of corelaned; empty: beside this program, or in PATH
	MemoryMB int          // of each corelaned
	Idle     string       // policy of the workers; empty: sleep, since labs share their CPUs
	Say      func(string) // what is being done
	Root     string       // empty: Root
}

// Lab is one that is up.
type Lab struct {
	Topology
	Ledger *Ledger
	say    func(string)
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

// BringUp builds a lab. When it fails, or ctx ends, nothing is left.
func BringUp(ctx context.Context, t Topology, o Options) (*Lab, error) {
	o.defaults()
	if unix.Geteuid() != 0 {
		return nil, errors.New("labs are made of network namespaces, which needs root")
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
		return nil, errors.Join(err, l.Ledger.tearDown(o.Say))
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
	daemons := map[string]*started{}
	for i, h := range l.corelaneHosts() {
		l.say("corelaned on " + h.Name)
		if daemons[h.Name], err = l.startDaemon(h, daemon, cpus[i%len(cpus)], o); err != nil {
			return err
		}
	}
	for _, h := range l.corelaneHosts() {
		if err := l.awaitDaemon(ctx, h, daemons[h.Name]); err != nil {
			return err
		}
	}
	if err := l.Configure(ctx, o.Underlay); err != nil {
		return err
	}
	for _, g := range l.Guests() {
		if err := l.dressGuest(g); err != nil {
			return err
		}
	}
	if err := l.settle(ctx); err != nil {
		return err
	}
	return l.Ledger.setStatus(Up)
}

const settleTime = 5 * time.Second

// settle waits until the routers know their guests: they asked when the guests had no addresses yet, and ask every second.
func (l *Lab) settle(ctx context.Context) error {
	for _, h := range l.corelaneHosts() {
		missing := map[string]bool{}
		for _, g := range l.Guests() {
			if g.Host == h && !g.Network.Bridge {
				missing[g.Address(IPv4)], missing[g.Address(IPv6)] = true, true
			}
		}
		for deadline := time.Now().Add(settleTime); len(missing) > 0; time.Sleep(pollEvery) {
			if err := l.forgetResolved(ctx, h, missing); err != nil {
				return err
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%s does not find its guests: %v", h.Name, slices.Sorted(maps.Keys(missing)))
			}
		}
	}
	return nil
}

func (l *Lab) forgetResolved(ctx context.Context, h Host, missing map[string]bool) error {
	c, err := l.Dial(ctx, h)
	if err != nil {
		return err
	}
	defer c.Close()
	return api.Stream(ctx, c, apiv1.NewNeighborsClient, apiv1.NeighborsClient.List, &apiv1.NeighborListRequest{}, func(n *apiv1.Neighbor) error {
		if n.Mac != "" {
			delete(missing, n.Address)
		}
		return nil
	})
}

func (l *Lab) corelaneHosts() []Host {
	return slices.DeleteFunc(slices.Clone(l.Hosts), func(h Host) bool { return h.Linux })
}

// allowedCPUs: those that this process may use, the last one first: interrupts and shells tend to be on the first.
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

// buildWires makes all namespaces, the wire between hosts, and what the kernel's hosts have instead of a corelaned.
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

// plugHosts joins two hosts directly, more of them by a bridge.
func (l *Lab) plugHosts() error {
	ends := make([]end, len(l.Hosts))
	for i, h := range l.Hosts {
		ends[i] = end{l.Netns(h.Name), fabricPort, h.mac()}
	}
	if !l.hasSwitch() {
		return wire(ends[0], ends[1], int(l.WireMTU))
	}
	var ports []string
	for i, h := range l.Hosts {
		ports = append(ports, h.Name)
		if err := wire(ends[i], end{l.Netns(switchName), h.Name, ""}, int(l.WireMTU)); err != nil {
			return err
		}
	}
	return inNetns(l.Netns(switchName), func() error {
		if err := sysctl("ipv6/conf/all/disable_ipv6=1"); err != nil {
			return err
		}
		return bridge("br0", int(l.WireMTU), ports...)
	})
}

func (l *Lab) prepareHost(h Host) error {
	if !h.Linux { // the interface is corelaned's: the kernel has no address on it and says nothing
		return inNetns(l.Netns(h.Name), func() error { return sysctl("ipv6/conf/" + fabricPort + "/disable_ipv6=1") })
	}
	err := inNetns(l.Netns(h.Name), func() error { return addresses(fabricPort, h.cidr(IPv4), h.cidr(IPv6)) })
	if err != nil {
		return err
	}
	for _, g := range l.Guests() {
		if g.Host != h {
			continue
		}
		if err := wire(end{l.Netns(h.Name), g.Name(), ""}, end{l.Netns(g.Name()), "eth0", ""}, int(g.Network.MTU)); err != nil {
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
		return "", fmt.Errorf("corelaned: %w; build it (make build) or say where it is (--corelaned)", err)
	}
	return filepath.Abs(found)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Dir is where a host of the lab keeps its files: node.yaml, corelaned.log, corelaned.sock.
func (l *Lab) Dir(h Host) string { return filepath.Join(l.Ledger.dir, h.Name) }

// Socket of the host's corelaned.
func (l *Lab) Socket(h Host) string { return filepath.Join(l.Dir(h), "corelaned.sock") }

func (l *Lab) startDaemon(h Host, daemon string, cpu int, o Options) (*started, error) {
	if err := os.Mkdir(l.Dir(h), 0o755); err != nil {
		return nil, err
	}
	return l.Ledger.start("corelaned "+h.Name, l.Netns(h.Name), filepath.Join(l.Dir(h), "corelaned.log"), daemon,
		"--run-dir", l.Dir(h), "--socket", l.Socket(h), "--worker-cpus", strconv.Itoa(cpu), "--idle", o.Idle,
		"--memory", strconv.Itoa(o.MemoryMB), "--router-mac", h.routerMac())
}

// awaitDaemon returns when the host's corelaned answers.
func (l *Lab) awaitDaemon(ctx context.Context, h Host, p *started) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("corelaned on %s does not answer after %v", h.Name, startTimeout))
	defer cancel()
	for {
		c, err := l.Dial(ctx, h)
		if err == nil {
			return c.Close()
		}
		var gone *api.Unavailable
		if !errors.As(err, &gone) {
			return err
		}
		select {
		case <-p.ended:
			return fmt.Errorf("corelaned on %s has ended: %v\n%s", h.Name, p.err, l.lastLines(h))
		case <-ctx.Done():
			return fmt.Errorf("%w\n%s", context.Cause(ctx), l.lastLines(h))
		case <-time.After(pollEvery):
		}
	}
}

// lastLines of a daemon's log, for the error that it explains.
func (l *Lab) lastLines(h Host) string {
	const some = 8
	text, err := os.ReadFile(filepath.Join(l.Dir(h), "corelaned.log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-some):], "\n  ")
}

// Dial connects to a host's corelaned.
func (l *Lab) Dial(ctx context.Context, h Host) (*api.Client, error) {
	return api.Dial(ctx, l.Socket(h), "corelane lab")
}

// Configure makes every host what the topology says, with tunnels over the given family: corelaned through the same
// file and difference as corelane apply, the kernel's hosts through netlink.
func (l *Lab) Configure(ctx context.Context, u Underlay) error {
	l.Ledger.Underlay = u
	if err := l.Ledger.save(); err != nil {
		return err
	}
	for _, h := range l.Hosts {
		var err error
		var done state.Count
		if h.Linux {
			err = l.linuxTunnels(h, u)
		} else {
			done, err = l.applyNode(ctx, h, u)
		}
		if err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
		if !h.Linux {
			l.say(fmt.Sprintf("%s: %v from %s", h.Name, done, filepath.Join(l.Dir(h), "node.yaml")))
		}
	}
	return nil
}

func (l *Lab) applyNode(ctx context.Context, h Host, u Underlay) (state.Count, error) {
	path := filepath.Join(l.Dir(h), "node.yaml")
	f, err := os.Create(path)
	if err != nil {
		return state.Count{}, err
	}
	err = state.Write(f, l.Node(h, u))
	if err = errors.Join(err, f.Close()); err != nil {
		return state.Count{}, err
	}
	want, err := state.LoadFile(path)
	if err != nil {
		return state.Count{}, err
	}
	c, err := l.Dial(ctx, h)
	if err != nil {
		return state.Count{}, err
	}
	defer c.Close()
	have, err := state.Read(ctx, c)
	if err != nil {
		return state.Count{}, err
	}
	return state.Apply(ctx, c, state.Diff(want, have), nil)
}

// dressGuest gives a guest its addresses and routes. Its interface is there: corelaned or the wiring made it.
func (l *Lab) dressGuest(g Guest) error {
	err := inNetns(l.Netns(g.Name()), func() error {
		if err := addresses("eth0", g.cidr(IPv4), g.cidr(IPv6)); err != nil {
			return err
		}
		if g.Network.Bridge {
			return nil
		}
		return errors.Join(defaultRoute(g.Gateway(IPv4)), defaultRoute(g.Gateway(IPv6)))
	})
	if err != nil {
		return fmt.Errorf("guest %s: %w", g.Name(), err)
	}
	return nil
}
