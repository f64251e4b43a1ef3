// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/namespace"
	"github.com/corelane/corelane/internal/process"
)

// An Ovs host has Open vSwitch with DPDK in place of the kernel's bridges. Its ports are the veth pairs of the guests,
// whose large segments it takes and passes on whole (userspace-tso-enable), or vhost-user ports. Between hosts it has
// VXLAN of its own, over which Open vSwitch 3.1 drops large segments and unfinished checksums: the guests of such labs
// send neither (WireFinished). Its database, sockets and logs are in the host's folder, away from an Open vSwitch of
// the machine.
const (
	ovsSchema = "/usr/share/openvswitch/vswitch.ovsschema"
	ovsDaemon = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
	ovsMemory = "256" // MB
	ovsSleep  = "50"  // us, of an idle thread: as the workers of Corelane, it leaves its CPU to the guests
)

func (l *Lab) startOvs(ctx context.Context, h Host, cpu int) error {
	for _, path := range []string{ovsDaemon, ovsSchema} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%w: install openvswitch-switch-dpdk (make deps)", err)
		}
	}
	if err := os.Mkdir(l.Dir(h), 0o755); err != nil {
		return err
	}
	l.say("Open vSwitch on " + h.Name)
	create := []string{"ovsdb-tool", "create", l.ovsPath(h, "conf.db"), ovsSchema}
	if _, err := l.ovsCommand(h, create).Output(ctx, nil); err != nil {
		return err
	}
	database, err := l.ovsStart(h, "ovsdb-server", l.ovsPath(h, "conf.db"), "--remote=punix:"+l.ovsPath(h, "db.sock"),
		"--unixctl="+l.ovsPath(h, "db.ctl"))
	if err != nil {
		return err
	}
	init := func(ctx context.Context) error { return l.ovsSet(ctx, h, "--no-wait", "init") }
	if err := database.Await(ctx, startTimeout, init); err != nil {
		return err
	}
	extra := "--no-pci --no-telemetry --no-huge --legacy-mem -m " + ovsMemory
	mask := fmt.Sprintf("%#x", 1<<cpu)
	if err := l.ovsSet(ctx, h, "--no-wait", "set", "Open_vSwitch", ".", "other_config:dpdk-init=true",
		"other_config:userspace-tso-enable=true", "other_config:pmd-cpu-mask="+mask,
		"other_config:pmd-maxsleep="+ovsSleep,
		"other_config:dpdk-lcore-mask="+mask, `other_config:dpdk-extra="`+extra+`"`); err != nil {
		return err
	}
	daemon, err := l.ovsStart(h, ovsDaemon, "unix:"+l.ovsPath(h, "db.sock"), "--unixctl="+l.ovsPath(h, "daemon.ctl"))
	if err != nil {
		return err
	}
	ready := func(ctx context.Context) error { return l.ovsReady(ctx, h) }
	if err := daemon.Await(ctx, startTimeout, ready); err != nil {
		return err
	}
	if err := l.ovsBridges(ctx, h); err != nil {
		return err
	}
	if len(l.Hosts) > 1 {
		if err := l.ovsUnderlay(ctx, h); err != nil {
			return err
		}
	}
	return daemon.Ended()
}

func (l *Lab) ovsReady(ctx context.Context, h Host) error {
	text, err := l.ovsAsk(ctx, h, "get", "Open_vSwitch", ".", "dpdk_initialized")
	if err == nil && strings.TrimSpace(text) != "true" {
		err = errors.New("DPDK is not initialized")
	}
	return err
}

// ovsBridges makes a learning bridge of each network and its guests.
func (l *Lab) ovsBridges(ctx context.Context, h Host) error {
	var argv []string
	for _, g := range l.Guests() {
		if g.Host != h {
			continue
		}
		if !g.Second {
			argv = append(argv, "--", "add-br", g.Network.Name, "--", "set", "Bridge", g.Network.Name,
				"datapath_type=netdev")
		}
		argv = append(argv, "--", "add-port", g.Network.Name, g.Name())
		if g.Network.Vhost {
			// Open vSwitch as the server of the socket (dpdkvhostuser) takes no large segments.
			argv = append(argv, "--", "set", "Interface", g.Name(), "type=dpdkvhostuserclient",
				"options:vhost-server-path="+l.vhostSocket(g), fmt.Sprintf("mtu_request=%d", g.Network.MTU))
		}
	}
	return l.ovsSet(ctx, h, argv...)
}

const ovsOutside = "br-phy" // the bridge whose own interface has the address of the host

// ovsUnderlay gives the wire to Open vSwitch, which looks for the route of a tunnel's packets in the host's namespace.
func (l *Lab) ovsUnderlay(ctx context.Context, h Host) error {
	if err := l.ovsSet(ctx, h, "--", "add-br", ovsOutside, "--", "set", "Bridge", ovsOutside, "datapath_type=netdev",
		"--", "add-port", ovsOutside, fabricPort); err != nil {
		return err
	}
	return namespace.Do(l.Netns(h.Name), func() error { return addresses(ovsOutside, h.cidr(IPv4), h.cidr(IPv6)) })
}

// ovsTunnels makes the VXLAN ports of a host, or changes their ends.
func (l *Lab) ovsTunnels(ctx context.Context, h Host, u Underlay) error {
	var argv []string
	for _, n := range l.Networks {
		for _, peer := range l.peers(n, h) {
			argv = append(argv, "--", "--may-exist", "add-port", n.Name, n.vxlanDevice(), "--", "set", "Interface",
				n.vxlanDevice(), "type=vxlan", "options:remote_ip="+peer.Address(u),
				fmt.Sprintf("options:key=%d", n.Vni))
		}
	}
	if len(argv) == 0 {
		return nil
	}
	return l.ovsSet(ctx, h, argv...)
}

func (l *Lab) ovsPath(h Host, name string) string { return filepath.Join(l.Dir(h), name) }

func (l *Lab) ovsEnvironment(h Host) (list []string) {
	for _, name := range []string{"OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR", "RUNTIME_DIRECTORY"} {
		list = append(list, name+"="+l.Dir(h))
	}
	return list
}

func (l *Lab) ovsCommand(h Host, argv []string) *process.Command {
	return &process.Command{Argv: argv, Env: l.ovsEnvironment(h), Netns: l.Netns(h.Name)}
}

func (l *Lab) ovsAsk(ctx context.Context, h Host, argv ...string) (string, error) {
	head := []string{"ovs-vsctl", "--timeout=20", "--db=unix:" + l.ovsPath(h, "db.sock")}
	return l.ovsCommand(h, slices.Concat(head, argv)).Output(ctx, nil)
}

func (l *Lab) ovsSet(ctx context.Context, h Host, argv ...string) error {
	_, err := l.ovsAsk(ctx, h, argv...)
	return err
}

// ovsStart starts a process that the ledger ends with the lab.
func (l *Lab) ovsStart(h Host, argv ...string) (*process.Process, error) {
	name := filepath.Base(argv[0])
	full := slices.Concat([]string{"env"}, l.ovsEnvironment(h), argv)
	return l.Ledger.start(name, l.Netns(h.Name), l.ovsPath(h, name+".log"), full...)
}
