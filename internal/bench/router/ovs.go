// SPDX-License-Identifier: Apache-2.0
package router

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/scenario"
)

// OVS is Open vSwitch with its datapath in user space, on DPDK, as Debian ships it.
type OVS struct{}

const (
	ovsDaemon  = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
	ovsSchema  = "/usr/share/openvswitch/vswitch.ovsschema"
	ovsPackage = "openvswitch-switch-dpdk"
)

var ovsTools = []string{"ovsdb-tool", "ovsdb-server", "ovs-vsctl", "ovs-ofctl", "ovs-appctl"}

// Name of the router.
func (*OVS) Name() string { return "ovs" }

// Version of the daemon and of its DPDK.
func (*OVS) Version(ctx context.Context) (string, error) {
	for _, name := range append([]string{ovsDaemon}, ovsTools...) {
		if _, err := exec.LookPath(name); err != nil {
			return "", fmt.Errorf("ovs: %w; it is in the package %s", err, ovsPackage)
		}
	}
	if _, err := os.Stat(ovsSchema); err != nil {
		return "", fmt.Errorf("ovs: %w; it is in the package %s", err, ovsPackage)
	}
	text, err := exec.CommandContext(ctx, ovsDaemon, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", ovsDaemon, err)
	}
	return parseOVSVersion(string(text))
}

var ovsVersion = regexp.MustCompile(`\(Open vSwitch\) (\S+)\s+DPDK (\S+)`)

func parseOVSVersion(text string) (string, error) {
	m := ovsVersion.FindStringSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%s is not Open vSwitch with DPDK: its version is %q", ovsDaemon, text)
	}
	return fmt.Sprintf("Open vSwitch %s (DPDK %s)", m[1], m[2]), nil
}

// Supports refuses MPLS over UDP, security rules, and more workers than a memif has rings for.
func (*OVS) Supports(s *scenario.Scenario) error {
	if s.Rules > 0 {
		return errors.New("ovs: this adapter programs no security rules")
	}
	if s.Overlay == scenario.MPLSoUDP {
		return errors.New("ovs: its datapath in user space has no MPLS over UDP (bareudp is the kernel's)")
	}
	if most := ovsMaxRings / ovsRings(1); s.Workers > most {
		return fmt.Errorf("ovs: %d workers need %d rings of a memif, which has %d; valid: 1 to %d", s.Workers,
			ovsRings(s.Workers), ovsMaxRings, most)
	}
	return nil
}

// Unchanged is false: it does the work.
func (*OVS) Unchanged() bool { return false }

// Start starts a database and a daemon, and programs them.
func (o *OVS) Start(ctx context.Context, env *Env, b *scenario.Setup) (Instance, error) {
	if err := o.Supports(&b.Scenario); err != nil {
		return nil, err
	}
	i := &ovsInstance{env: env, setup: b}
	if err := i.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("ovs: %w", err), i.clean())
	}
	return i, nil
}

// Devices returns memif clients with as many rings as it uses.
func (i *ovsInstance) Devices() []*apiv1.GeneratorPort {
	var list []*apiv1.GeneratorPort
	for _, p := range i.setup.Ports {
		list = append(list, &apiv1.GeneratorPort{Name: p.Name, Device: &apiv1.GeneratorPort_Memif{
			Memif: &apiv1.GeneratorMemif{Socket: p.Socket, RingSize: uint32(p.RingSize),
				Queues: uint32(ovsRings(len(i.env.CPUs)))}}})
	}
	return list
}

// Netns returns none: the sockets are reachable from every namespace.
func (*ovsInstance) Netns() string { return "" }

// Pause the daemon, not its database.
func (i *ovsInstance) Pause() error { return i.daemon.Pause() }

// Resume ends a pause.
func (i *ovsInstance) Resume() error { return i.daemon.Resume() }

// Stop both processes, and remove their namespace and sockets.
func (i *ovsInstance) Stop() error {
	if err := i.clean(); err != nil {
		return fmt.Errorf("ovs: %w", err)
	}
	return nil
}
