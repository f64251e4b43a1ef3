// SPDX-License-Identifier: Apache-2.0
package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/process"
)

// ovsInstance has its database, sockets and logs in env.Dir and its devices in a namespace.
type ovsInstance struct {
	env      *Env
	setup    *scenario.Setup
	netns    string
	database *process.Process
	daemon   *process.Process
}

func (i *ovsInstance) start(ctx context.Context) error {
	for _, step := range []func(context.Context) error{i.startDatabase, i.startDaemon, i.addPorts, i.addUnderlay,
		i.addFlows} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	// The limit grows from 10,000 by 1,000 with each sweep over all flows, which would take minutes.
	return i.control(ctx, "upcall/set-flow-limit", strconv.Itoa(ovsFlowLimit))
}

func (i *ovsInstance) path(name string) string { return filepath.Join(i.env.Dir, name) }

// environment keeps all files in our directory, and away from an Open vSwitch of the host.
func (i *ovsInstance) environment() []string {
	list := []string{"RUNTIME_DIRECTORY=" + i.env.Dir}
	for _, name := range []string{"RUNDIR", "DBDIR", "LOGDIR", "SYSCONFDIR"} {
		list = append(list, "OVS_"+name+"="+i.env.Dir)
	}
	return list
}

func (i *ovsInstance) command(argv ...string) *process.Command {
	return &process.Command{Name: argv[0], Argv: argv, Env: i.environment(), CPUs: []int{i.env.ControlCPU},
		Log: i.path(filepath.Base(argv[0]) + ".log")}
}

// tool runs a tool to its end, with a timeout for a daemon that does not answer.
func (i *ovsInstance) tool(ctx context.Context, input []byte, argv ...string) (string, error) {
	argv = slices.Insert(argv, 1, "--timeout="+strconv.Itoa(int(startTimeout.Seconds())))
	return i.command(argv...).Output(ctx, input)
}

func (i *ovsInstance) vsctl(ctx context.Context, argv ...string) (string, error) {
	return i.tool(ctx, nil, append([]string{"ovs-vsctl", "--db=unix:" + i.path("db.sock")}, argv...)...)
}

func (i *ovsInstance) ask(ctx context.Context, argv ...string) (string, error) {
	return i.tool(ctx, nil, append([]string{"ovs-appctl", "--target=" + i.path("daemon.ctl")}, argv...)...)
}

func (i *ovsInstance) control(ctx context.Context, argv ...string) error {
	_, err := i.ask(ctx, argv...)
	return err
}

func (i *ovsInstance) startDatabase(ctx context.Context) (err error) {
	file := i.path("conf.db")
	if _, err := i.command("ovsdb-tool", "create", file, ovsSchema).Output(ctx, nil); err != nil {
		return err
	}
	i.database, err = process.Start(*i.command("ovsdb-server", file, "--remote=punix:"+i.path("db.sock"),
		"--unixctl="+i.path("db.ctl"), "--pidfile="+i.path("db.pid")))
	if err != nil {
		return err
	}
	return i.database.Await(ctx, startTimeout, func(ctx context.Context) error {
		_, err := i.vsctl(ctx, "--no-wait", "init")
		return err
	})
}

func (i *ovsInstance) startDaemon(ctx context.Context) (err error) {
	if _, err := i.vsctl(ctx, append([]string{"--no-wait"}, ovsSettings(i.env)...)...); err != nil {
		return err
	}
	if i.netns, err = addNetns("ovs", i.setup.Underlay6); err != nil {
		return err
	}
	c := i.command(ovsDaemon, "unix:"+i.path("db.sock"), "--unixctl="+i.path("daemon.ctl"), "--pidfile="+
		i.path("daemon.pid"))
	c.Netns = i.netns
	if i.daemon, err = process.Start(*c); err != nil {
		return err
	}
	return i.daemon.Await(ctx, startTimeout, func(ctx context.Context) error {
		yes, err := i.vsctl(ctx, "get", "Open_vSwitch", ".", "dpdk_initialized")
		if err == nil && strings.TrimSpace(yes) != "true" {
			err = errors.New("DPDK is not initialized")
		}
		return err
	})
}

// addPorts adds the ports and waits for the daemon, which reports failures only in the database.
func (i *ovsInstance) addPorts(ctx context.Context) error {
	if _, err := i.vsctl(ctx, ovsTopology(i.env, i.setup)...); err != nil {
		return errors.Join(err, i.daemon.Ended())
	}
	text, err := i.vsctl(ctx, "--format=json", "--columns=name,error", "list", "Interface")
	if err != nil {
		return err
	}
	return ovsPortErrors(text)
}

func ovsPortErrors(text string) error {
	var table struct{ Data [][]any }
	if err := json.Unmarshal([]byte(text), &table); err != nil {
		return fmt.Errorf("ovs-vsctl list Interface: %w", err)
	}
	var errs []error
	for _, row := range table.Data {
		if why, bad := row[1].(string); bad { // else an empty set
			errs = append(errs, fmt.Errorf("port %v: %s", row[0], why))
		}
	}
	return errors.Join(errs...)
}

// addUnderlay gives the tunnels their address, route and static neighbour.
func (i *ovsInstance) addUnderlay(ctx context.Context) error {
	if len(i.setup.Tunnels) == 0 {
		return nil
	}
	wire := i.setup.Ports[len(i.setup.Ports)-1]
	ip := i.command("ip", "-batch", "-")
	ip.Netns = i.netns
	batch := fmt.Sprintf("address add %v dev %s\nlink set %s up\n", wire.Address, ovsWire, ovsWire)
	if _, err := ip.Output(ctx, []byte(batch)); err != nil {
		return err
	}
	calls := [][]string{
		{"tnl/neigh/aging", "3600"}, // the maximum
		{"tnl/neigh/set", ovsWire, wire.Peer.String(), wire.PeerMAC.String()},
	}
	for _, t := range i.setup.Tunnels {
		remote := fmt.Sprintf("%v/%d", t.Remote, t.Remote.BitLen())
		calls = append(calls, []string{"ovs/route/add", remote, ovsWire, wire.Peer.String()})
	}
	for _, call := range calls {
		if err := i.control(ctx, call...); err != nil {
			return err
		}
	}
	return nil
}

func (i *ovsInstance) addFlows(ctx context.Context) error {
	flows := map[string][]byte{ovsTenants: ovsTenantFlows(i.setup)}
	if len(i.setup.Tunnels) > 0 {
		flows[ovsWire] = ovsWireFlows(i.setup)
	}
	for bridge, list := range flows {
		_, err := i.tool(ctx, list, "ovs-ofctl", "--protocols=OpenFlow15", "--bundle", "add-flows",
			"unix:"+i.path(bridge+".mgmt"), "-")
		if err != nil {
			return err
		}
	}
	return nil
}

// clean removes everything that start made before it ended or failed.
func (i *ovsInstance) clean() error {
	errs := []error{i.daemon.Stop(), i.database.Stop(), delNetns(i.netns)}
	for _, p := range i.setup.Ports {
		if err := os.Remove(p.Socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
