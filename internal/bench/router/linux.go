// SPDX-License-Identifier: Apache-2.0
package router

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/namespace"
	"github.com/corelane/corelane/internal/process"
	"github.com/corelane/corelane/internal/wait"
)

// Linux is the router in the kernel: routes, bridges, VXLAN devices and netfilter, in a network namespace. Veth pairs
// connect it to the generator's namespace.
//
// A frame that the generator sends is received in a softirq of the generator's CPU. Receive packet steering on the
// router's ends of the pairs hands it to the router's CPUs there, before any of the router's work.
type Linux struct{}

// Name of the router.
func (*Linux) Name() string { return "linux" }

// Version of the kernel.
func (*Linux) Version(context.Context) (string, error) {
	for _, name := range []string{"ip", "bridge"} {
		if _, err := exec.LookPath(name); err != nil {
			return "", fmt.Errorf("linux: %w; it is in the package iproute2", err)
		}
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", fmt.Errorf("linux: %w", err)
	}
	return "Linux " + unix.ByteSliceToString(u.Release[:]), nil
}

// Supports refuses what this kernel does not have.
func (*Linux) Supports(s *scenario.Scenario) error {
	if s.Rules > 0 {
		return errors.New("linux: this adapter programs no security rules")
	}
	if s.Overlay != scenario.Plain && s.Overlay != scenario.VXLAN {
		return fmt.Errorf("linux: this adapter programs no tunnels but VXLAN's, not %s", s.Overlay)
	}
	if s.Stateful {
		return linuxTracks(s, "/proc/sys")
	}
	return nil
}

// linuxTracks returns an error unless netfilter can track the scenario's flows.
func linuxTracks(s *scenario.Scenario, sysctls string) error {
	if s.Bridged {
		return errors.New("linux: flows are tracked between networks, not through a bridge")
	}
	text, err := os.ReadFile(filepath.Join(sysctls, "net/netfilter/nf_conntrack_max"))
	if err != nil {
		return fmt.Errorf("linux: the kernel tracks no flows (no module nf_conntrack): %w", err)
	}
	if most, err := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || s.Flows > most {
		return fmt.Errorf("linux: %d flows; valid: up to net.netfilter.nf_conntrack_max, %s", s.Flows,
			strings.TrimSpace(string(text)))
	}
	if _, err := exec.LookPath("nft"); err != nil {
		return fmt.Errorf("linux: tracking flows needs nft: %w; it is in the package nftables", err)
	}
	return nil
}

// Unchanged is false: it does the work.
func (*Linux) Unchanged() bool { return false }

// Start makes both namespaces and their contents.
func (l *Linux) Start(ctx context.Context, env *Env, b *scenario.Setup) (Instance, error) {
	if err := l.Supports(&b.Scenario); err != nil {
		return nil, err
	}
	i := &linuxInstance{setup: b}
	if err := i.start(ctx, env.CPUs); err != nil {
		return nil, errors.Join(fmt.Errorf("linux: %w", err), i.Stop())
	}
	return i, nil
}

type linuxInstance struct {
	setup     *scenario.Setup
	router    string // namespaces
	generator string
}

func (i *linuxInstance) start(ctx context.Context, cpus []int) (err error) {
	if i.router, err = addNetns("router", i.ipv6()); err != nil {
		return err
	}
	if i.generator, err = addNetns("generator", false); err != nil {
		return err
	}
	if err := namespace.Do(i.router, linuxSysctls); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{i.program, func(ctx context.Context) error {
		return i.tune(ctx, cpus)
	}, i.settle} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// program configures both namespaces with ip, bridge and nft.
func (i *linuxInstance) program(ctx context.Context) error {
	family := "-4"
	if i.setup.IPv6 {
		family = "-6"
	}
	for _, step := range []struct {
		netns string
		argv  []string
		input []byte
	}{
		{i.router, []string{"ip", "-batch", "-"}, linuxLinks(i.setup, i.generator)},
		{i.generator, []string{"ip", "-batch", "-"}, linuxGeneratorLinks(i.setup)},
		{i.router, []string{"bridge", "-batch", "-"}, linuxForwarding(i.setup)},
		{i.router, []string{"ip", "-batch", "-"}, linuxRoutes(i.setup)},
		{i.router, []string{"ip", family, "-batch", "-"}, linuxRules(i.setup)},
		{i.router, []string{"nft", "-f", "-"}, linuxTracking(i.setup)},
	} {
		if len(step.input) == 0 {
			continue
		}
		c := process.Command{Argv: step.argv, Netns: step.netns}
		if _, err := c.Output(ctx, step.input); err != nil {
			return err
		}
	}
	return nil
}

// settle waits when the router's interfaces have IPv6, until their announcements have been sent. The kernel may notice
// a second late that a link is up.
func (i *linuxInstance) settle(ctx context.Context) error {
	if !i.ipv6() {
		return nil
	}
	return wait.For(ctx, 1500*time.Millisecond)
}

func (i *linuxInstance) ipv6() bool { return i.setup.IPv6 && !i.setup.Bridged || i.setup.Underlay6 }

// tune steers received packets to the router's CPUs and switches off the offloads that merge packets or defer
// checksums.
func (i *linuxInstance) tune(ctx context.Context, cpus []int) error {
	for _, netns := range []string{i.router, i.generator} {
		if err := namespace.Do(netns, offloadsOff); err != nil {
			return err
		}
	}
	for _, p := range i.setup.Ports {
		c := process.Command{Argv: []string{"ip", "netns", "exec", i.router, "tee", "/sys/class/net/" + p.Name +
			"/queues/rx-0/rps_cpus"}}
		if _, err := c.Output(ctx, []byte(cpuMask(cpus))); err != nil {
			return fmt.Errorf("steering of %s to CPUs %v (not to isolated ones): %w", p.Name, cpus, err)
		}
	}
	return nil
}

// Devices are packet sockets on the generator's ends.
func (i *linuxInstance) Devices() []*apiv1.GeneratorPort {
	var list []*apiv1.GeneratorPort
	for n, p := range i.setup.Ports {
		list = append(list,
			&apiv1.GeneratorPort{Name: p.Name, Device: &apiv1.GeneratorPort_Devargs{Devargs: afPacket(n, p)}})
	}
	return list
}

// afPacket is a device with rings as long as a memif's, one frame per slot, which bypasses the queueing discipline.
// The driver needs blocks full of slots, the kernel full pages.
func afPacket(n int, p scenario.Port) string {
	const header, align, page = 80, 128, 4096 // header: of the kernel, in front of each frame
	size := max(2048, (p.MTU+header+align-1)/align*align)
	return fmt.Sprintf("net_af_packet%d,iface=%s,framesz=%d,framecnt=%d,blocksz=%d,qdisc_bypass=1", n, p.Name, size,
		p.RingSize, size*page/align)
}

// Netns returns the namespace of the generator.
func (i *linuxInstance) Netns() string { return i.generator }

// Pause does nothing: without frames the kernel has no work.
func (*linuxInstance) Pause() error { return nil }

// Resume does nothing.
func (*linuxInstance) Resume() error { return nil }

// Stop removes the namespaces and their contents.
func (i *linuxInstance) Stop() error { return errors.Join(delNetns(i.router), delNetns(i.generator)) }
