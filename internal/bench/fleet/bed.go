// SPDX-License-Identifier: Apache-2.0
package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
	"github.com/corelane/corelane/internal/namespace"
	"github.com/corelane/corelane/internal/process"
	"github.com/corelane/corelane/internal/wait"
)

const (
	vrf      = "red"
	fabric   = "100.64.0.1" // the node; its fabric network has all next hops
	nodeEnd  = "127.0.0.3"  // of the agent's sessions
	peerEnd  = "127.0.0.2"  // of the peer that loads it
	poll     = 2 * time.Millisecond
	deadline = 60 * time.Second
)

// bed is a node of a fleet, corelaned and the agent, and a peer that loads it.
type bed struct {
	o        *Options
	context  context.Context
	dir      string
	space    string
	router   *process.Process
	client   *api.Client
	agent    *process.Process
	asked    *api.Client // the agent
	listener net.Listener
	peer     peer
	base     uint64 // routes of the node without any path
}

func newBed(ctx context.Context, o *Options) (*bed, error) {
	b := &bed{o: o, context: ctx, space: fmt.Sprintf("corelane-fleet%d", os.Getpid()),
		peer: peer{router: netip.MustParseAddr("192.0.2.100")}}
	return b, b.start()
}

func (b *bed) start() (err error) {
	if b.dir, err = os.MkdirTemp("", "corelane-fleet-"); err != nil {
		return err
	}
	err = errors.Join(os.Mkdir(b.path("intent"), 0o700), namespace.New(b.space, func() error { return nil }))
	if err != nil {
		return err
	}
	if b.listener, err = net.Listen("tcp4", peerEnd+":0"); err != nil {
		return err
	}
	if err := b.startRouter(); err != nil {
		return err
	}
	return b.tell(nil)
}

func (b *bed) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bed) startRouter() (err error) {
	argv := []string{filepath.Join(b.o.Bin, "corelaned"), "--run-dir", b.dir, "--socket", b.path("corelaned.sock"),
		"--worker-cpus", strconv.Itoa(b.o.Worker), "--control-cpus", strconv.Itoa(b.o.Other), "--idle", "sleep"}
	if b.o.Memory > 0 {
		argv = append(argv, "--memory", strconv.Itoa(b.o.Memory))
	} else {
		argv = append(argv, "--no-huge")
	}
	if b.router, err = process.Start(process.Command{Name: "corelaned", Argv: argv,
		Log: b.path("corelaned.log")}); err != nil {
		return err
	}
	err = b.router.Await(b.context, deadline, func(ctx context.Context) (err error) {
		b.client, err = api.Dial(ctx, b.path("corelaned.sock"), "corelane bench")
		return err
	})
	if err != nil {
		return err
	}
	_, err = api.Call(b.context, b.client, apiv1.NewPortsClient, apiv1.PortsClient.Add, &apiv1.PortAddRequest{
		Port: &apiv1.Port{Name: "fab0", Role: apiv1.PortRole_PORT_ROLE_FABRIC, Addresses: []string{fabric + "/10"},
			Device: &apiv1.Port_Tap{Tap: &apiv1.TapDevice{Ifname: "fab0", Netns: b.space}}}})
	if err == nil {
		err = namespace.Do(b.space, func() error {
			link, err := netlink.LinkByName("fab0")
			if err != nil {
				return err
			}
			return netlink.LinkSetUp(link)
		})
	}
	if err == nil {
		b.base, err = b.routes()
	}
	return err
}

// tell writes the intent, with further peers.
func (b *bed) tell(more []string) error {
	port := b.listener.Addr().(*net.TCPAddr).Port
	text := fmt.Sprintf(`bgp: {asn: %d, router_id: %s}
instances:
  - {vrf: %s, import_targets: ["%d:%d"], route_limit: 1000000}
peers:
  - {address: %s, port: %d, local_address: %s}
%s`, asn, fabric, vrf, asn, target, peerEnd, port, nodeEnd, strings.Join(more, ""))
	path := b.path("intent/node.yaml")
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// startAgent starts the agent, and makes its first connection a session.
func (b *bed) startAgent() (err error) {
	b.agent, err = process.Start(process.Command{Name: "corelane-agent", Log: b.path("agent.log"),
		CPUs: []int{b.o.Other}, Env: []string{fmt.Sprintf("GOMEMLIMIT=%d", b.o.Agent*1e6)}, Argv: []string{
			filepath.Join(b.o.Bin, "corelane-agent"), "--intent", b.path("intent"), "--agent-socket",
			b.path("agent.sock"), "--socket", b.path("corelaned.sock"), "--journal", b.path("journal"), "--every",
			"1h"}})
	if err == nil {
		err = b.accept()
	}
	return err
}

func (b *bed) accept() error {
	if err := b.listener.(*net.TCPListener).SetDeadline(time.Now().Add(deadline)); err != nil {
		return err
	}
	conn, err := b.listener.Accept()
	if err != nil {
		return errors.Join(err, b.agent.Ended())
	}
	return b.peer.speak(conn)
}

func (b *bed) killAgent() error {
	err := unix.Kill(-b.agent.Pid, unix.SIGKILL)
	_ = b.agent.Stop() // has ended by itself
	b.closeAsked()
	return err
}

func (b *bed) closeAsked() {
	if b.asked != nil {
		_ = b.asked.Close()
		b.asked = nil
	}
}

// routes counts those of all VRFs.
func (b *bed) routes() (uint64, error) {
	st, err := api.Call(b.context, b.client, apiv1.NewSystemClient, apiv1.SystemService.GetStatus, &apiv1.Empty{})
	return st.GetRoutesIpv4(), err
}

// until waits for something that is looked at every few milliseconds.
func (b *bed) until(what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(b.context, deadline, fmt.Errorf("no %s within %v", what, deadline))
	defer cancel()
	return wait.Until(ctx, poll, func() (bool, error) {
		ok, err := done()
		return ok, errors.Join(err, b.agent.Ended())
	})
}

// untilRoutes waits until the node has so many routes from paths.
func (b *bed) untilRoutes(n int) error {
	return b.until(fmt.Sprintf("%d routes", n), func() (bool, error) {
		have, err := b.routes()
		return have == b.base+uint64(n), err
	})
}

func (b *bed) status() (*agentv1.BgpStatus, error) {
	if b.asked == nil {
		c, err := api.Dial(b.context, b.path("agent.sock"), "corelane bench")
		if err != nil {
			return nil, err
		}
		b.asked = c
	}
	return api.Call(b.context, b.asked, agentv1.NewFleetClient, agentv1.FleetClient.GetBgp, &apiv1.Empty{})
}

// untilInStep waits until the agent has heard n paths anew from the peer, and the node has what follows from them.
func (b *bed) untilInStep(n int) error {
	return b.until(fmt.Sprintf("%d paths in step", n), func() (bool, error) {
		st, err := b.status()
		if err != nil {
			b.closeAsked()
			return false, nil // the agent has just started
		}
		p := st.Peers[0]
		return p.EndOfRib && p.Received == uint64(n) && p.Stale == 0 && st.Sync.InStepSinceNs > 0, nil
	})
}

// memory is what the agent had at most, in MB.
func (b *bed) memory() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.agent.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		var kb float64
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kb); n == 1 {
			return kb * 1024 / 1e6, nil
		}
	}
	return 0, errors.New("the kernel does not say how much memory the agent had")
}

func (b *bed) close() error {
	var errs []error
	b.closeAsked()
	if b.agent != nil {
		errs = append(errs, b.agent.Stop())
	}
	b.peer.close()
	if b.client != nil {
		errs = append(errs, b.client.Close())
	}
	errs = append(errs, b.router.Stop())
	if b.listener != nil {
		errs = append(errs, b.listener.Close())
	}
	errs = append(errs, namespace.Delete(b.space))
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}
