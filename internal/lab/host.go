// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/namespace"
	"github.com/corelane/corelane/internal/process"
	"github.com/corelane/corelane/internal/state"
	"github.com/corelane/corelane/internal/wait"
)

// daemonUser is the user that corelaned runs as: an unprivileged one that each machine has.
const daemonUser = "nobody"

// Dir has the files of a host: node.yaml, corelaned.log, and the folder of its corelaned.
func (l *Lab) Dir(h Host) string { return filepath.Join(l.Ledger.dir, h.Name) }

// runDir belongs to the user of corelaned. So nothing that root writes is in it.
func (l *Lab) runDir(h Host) string { return filepath.Join(l.Dir(h), "run") }

// Socket returns the path of the API socket of the host's corelaned.
func (l *Lab) Socket(h Host) string { return filepath.Join(l.runDir(h), "corelaned.sock") }

func (l *Lab) makeDirs(h Host) error {
	owner, err := user.Lookup(daemonUser)
	if err != nil {
		return err
	}
	uid, _ := strconv.Atoi(owner.Uid)
	gid, _ := strconv.Atoi(owner.Gid)
	if err := os.Mkdir(l.Dir(h), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(l.runDir(h), 0o711); err != nil {
		return err
	}
	return os.Chown(l.runDir(h), uid, gid)
}

func (l *Lab) startDaemon(h Host, daemon string, cpu int, o Options) (*process.Process, error) {
	if err := l.makeDirs(h); err != nil {
		return nil, err
	}
	argv := append([]string{daemon, "--user", daemonUser, "--run-dir", l.runDir(h), "--socket", l.Socket(h),
		"--worker-cpus", strconv.Itoa(cpu), "--idle", o.Idle, "--memory", strconv.Itoa(o.MemoryMB),
		"--router-mac", h.routerMac()}, o.DaemonArgs...)
	return l.Ledger.start("corelaned "+h.Name, l.Netns(h.Name), filepath.Join(l.Dir(h), "corelaned.log"), argv...)
}

// awaitDaemon returns when the host's corelaned answers.
func (l *Lab) awaitDaemon(ctx context.Context, h Host, p *process.Process) error {
	var refused error
	err := p.Await(ctx, startTimeout, func(ctx context.Context) error {
		c, err := l.Dial(ctx, h)
		if err == nil {
			return c.Close()
		}
		var gone *api.Unavailable
		if errors.As(err, &gone) {
			return err
		}
		refused = err // waiting does not help
		return nil
	})
	return errors.Join(err, refused)
}

// Dial connects to a host's corelaned.
func (l *Lab) Dial(ctx context.Context, h Host) (*api.Client, error) {
	return api.Dial(ctx, l.Socket(h), "corelane lab")
}

// Configure configures every host for the topology, with tunnels over the given family: corelaned as `corelane apply`
// does, Linux hosts through netlink.
func (l *Lab) Configure(ctx context.Context, u Underlay) error {
	l.Ledger.Underlay = u
	if err := l.Ledger.save(); err != nil {
		return err
	}
	for _, h := range l.Hosts {
		var err error
		var done state.Count
		switch {
		case h.Ovs:
			err = l.ovsTunnels(ctx, h, u)
		case h.Linux:
			err = l.linuxTunnels(h, u)
		default:
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
	return l.apply(ctx, h, l.Node(h, u))
}

// apply writes the state to the host's file and applies it, as `corelane apply` does.
func (l *Lab) apply(ctx context.Context, h Host, node *state.State) (state.Count, error) {
	path := filepath.Join(l.Dir(h), "node.yaml")
	f, err := os.Create(path)
	if err != nil {
		return state.Count{}, err
	}
	err = state.Write(f, node)
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

// dressGuest gives a guest its addresses and routes. corelaned or buildWires has made its interface.
func (l *Lab) dressGuest(g Guest) error {
	err := namespace.Do(l.Netns(g.Name()), func() error {
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

const settleTime = 5 * time.Second

// settle waits until the routers have resolved their guests. Their first requests came before the guests had
// addresses, and they retry every second.
func (l *Lab) settle(ctx context.Context) error {
	for _, h := range l.corelaneHosts() {
		missing := map[string]bool{}
		for _, g := range l.Guests() {
			if g.Host == h && !g.Network.Bridge {
				missing[g.Address(IPv4)], missing[g.Address(IPv6)] = true, true
			}
		}
		if err := l.awaitResolved(ctx, h, missing); err != nil {
			return err
		}
	}
	return nil
}

// awaitResolved waits until a router has resolved the missing neighbors.
func (l *Lab) awaitResolved(ctx context.Context, h Host, missing map[string]bool) error {
	late := errors.New("timeout")
	limited, cancel := context.WithTimeoutCause(ctx, settleTime, late)
	defer cancel()
	err := wait.Until(limited, pollEvery, func() (bool, error) {
		if len(missing) == 0 {
			return true, nil
		}
		err := l.forgetResolved(ctx, h, missing)
		return len(missing) == 0, err
	})
	if errors.Is(err, late) {
		return fmt.Errorf("%s has not resolved its guests: %v", h.Name, slices.Sorted(maps.Keys(missing)))
	}
	return err
}

func (l *Lab) forgetResolved(ctx context.Context, h Host, missing map[string]bool) error {
	c, err := l.Dial(ctx, h)
	if err != nil {
		return err
	}
	defer c.Close()
	return api.Stream(ctx, c, apiv1.NewNeighborsClient, apiv1.NeighborsClient.List, &apiv1.NeighborListRequest{},
		func(n *apiv1.Neighbor) error {
			if n.Mac != "" {
				delete(missing, n.Address)
			}
			return nil
		})
}
