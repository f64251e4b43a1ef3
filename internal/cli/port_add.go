// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cli/protoflag"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/limits"
)

// device holds the flags of "port add" that describe the device; deviceFlags lists those of each kind.
type device struct {
	ifname, netns, socket, secret string
	owner, group, mode            string // of the socket
	id, ringSize, bufferSize      uint32
	client, whole                 bool
	parent                        string
	outerVlan                     uint32
}

var deviceFlags = map[string][]string{
	"dpdk": nil,
	"tap":  {"ifname", "netns"},
	"memif": {"socket", "id", "client", "secret", "ring-size", "buffer-size", "whole-segments", "socket-owner",
		"socket-group", "socket-mode"},
	"vhost":   {"socket", "client", "socket-owner", "socket-group", "socket-mode"},
	"subport": {"parent", "outer-vlan"},
}

const deviceKinds = "dpdk DEVARGS, tap, memif, vhost, subport"

func newPortAdd(a *app) *cobra.Command {
	port := &apiv1.Port{}
	dev := &device{}
	var cmd *cobra.Command
	cmd = verb("add PORT ROLE DEVICE [DEVARGS]", "Add a port",
		`  corelane port add fab0 fabric dpdk net_af_packet0,iface=eth1 --address 192.0.2.1/24 --vlan 10
  corelane port add fab1 fabric dpdk 0000:3b:00.0 --address 2001:db8::1/64 --queues 4
  corelane port add vm1 tenant tap --netns blue --vrf red --gateway 10.1.0.1/24 --guest-address 10.1.0.11/32
  corelane port add vm2 tenant memif --socket /run/x.sock --id 0 --client --vrf red
  corelane port add vm3 tenant vhost --socket /run/corelane/vm3.sock --bridge lan
  corelane port add vm3-10 tenant subport --parent vm3 --vlan 10 --vrf red --gateway 10.3.0.1/24
  corelane port add host0 host tap --ifname host0 --fabric fab0`,
		func(ctx context.Context, args []string) error {
			port.Name = args[0]
			role, err := limits.ParseEnum(port.Role.Descriptor(), args[1])
			if err != nil {
				return input.Errorf("role", "fabric, tenant, host", "'%s' is unknown", args[1])
			}
			port.Role = apiv1.PortRole(role)
			if err := dev.fill(cmd, port, args[2:]); err != nil {
				return err
			}
			return a.portDone(call(ctx, a, apiv1.NewPortsClient, apiv1.PortsClient.Add,
				&apiv1.PortAddRequest{Port: port}))
		})
	cmd.Long = `Add a port. ROLE is fabric (faces the underlay), tenant (faces a guest) or host (gives this node's
kernel an interface on a fabric port's link). DEVICE is one of
  dpdk DEVARGS  any device of DPDK: a PCI address, or a virtual device with its arguments
  tap           an interface of the kernel, in the network namespace of --netns
  memif         shared memory with another process, --socket and --id
  vhost         a virtual machine's network card, --socket
  subport       frames of another tenant port, --parent, that have the VLAN tag --vlan; with --outer-vlan two tags

Here --socket is the device's; the daemon's goes before the noun: corelane --socket /run/a.sock port add ...`
	f := cmd.Flags()
	f.StringVar(&dev.ifname, "ifname", "", protoflag.Help("tap: name of the interface (default: the port's)",
		protoflag.Field(&apiv1.TapDevice{}, "ifname")))
	f.StringVar(&dev.netns, "netns", "", "tap: network namespace, name or path (default: the daemon's)")
	f.StringVar(&dev.socket, "socket", "", protoflag.Help("memif, vhost: the device's socket",
		protoflag.Field(&apiv1.MemifDevice{}, "socket")))
	f.Uint32Var(&dev.id, "id", 0, "memif: interface id on that socket")
	f.BoolVar(&dev.client, "client", false, "memif, vhost: connect to the socket instead of serving it")
	f.StringVar(&dev.secret, "secret", "",
		protoflag.Help("memif: shared secret", protoflag.Field(&apiv1.MemifDevice{}, "secret")))
	f.StringVar(&dev.owner, "socket-owner", "", protoflag.Help("memif, vhost server: owner of the socket, a name or "+
		"an id (default: the daemon's)", protoflag.Field(&apiv1.VhostDevice{}, "socket_owner")))
	f.StringVar(&dev.group, "socket-group", "", protoflag.Help("memif, vhost server: group of the socket, a name or "+
		"an id (default: the daemon's; vhost: kvm if the host has it)",
		protoflag.Field(&apiv1.VhostDevice{}, "socket_group")))
	f.StringVar(&dev.mode, "socket-mode", "", protoflag.Help("memif, vhost server: permissions of the socket "+
		"(default: 0660)", protoflag.Field(&apiv1.VhostDevice{}, "socket_mode")))
	f.StringVar(&dev.parent, "parent", "", "subport: the tenant port by which its frames come in and leave")
	a.completeFlag(cmd, "parent", portNames)
	f.Uint32Var(&dev.outerVlan, "outer-vlan", 0, protoflag.Help("subport: 802.1ad tag in front of the tag --vlan, "+
		"0 = there is none", protoflag.Field(&apiv1.SubportDevice{}, "outer_vlan")))
	f.Uint32Var(&dev.ringSize, "ring-size", 0,
		protoflag.Help("memif: size of a ring", protoflag.Field(&apiv1.MemifDevice{}, "ring_size")))
	f.Uint32Var(&dev.bufferSize, "buffer-size", 0, protoflag.Help("memif client: size of a buffer",
		protoflag.Field(&apiv1.MemifDevice{}, "buffer_size")))
	f.BoolVar(&dev.whole, "whole-segments", false, "fabric memif: large segments of guests travel through tunnels in "+
		"one frame of up to 64 KB, if the peer is Corelane and has this option, too")
	a.bind(cmd, port, portFlags)
	a.bind(cmd, port, portAddFlags)
	cmd.ValidArgsFunction = a.complete(fixed(), fixed("fabric", "tenant", "host"),
		fixed("dpdk", "tap", "memif", "vhost", "subport"), fixed())
	return cmd
}

// fill sets the port's device from the arguments from DEVICE on.
func (d *device) fill(cmd *cobra.Command, port *apiv1.Port, args []string) error {
	kind := args[0]
	flags, ok := deviceFlags[kind]
	if !ok {
		return input.Errorf("device", deviceKinds, "'%s' is unknown", kind)
	}
	for _, others := range deviceFlags {
		for _, f := range others {
			if cmd.Flags().Changed(f) && !slices.Contains(flags, f) {
				return input.Errorf("--"+f, "for "+kind+": "+orNone(flags), "is not for %s devices", kind)
			}
		}
	}
	switch {
	case kind == "dpdk" && len(args) != 2:
		return input.Errorf("devargs", "a PCI address, or a virtual device with its arguments", "missing")
	case kind != "dpdk" && len(args) != 1:
		return input.Errorf("arguments", "flags", "'%s' is one too many for %s", args[1], kind)
	case slices.Contains(flags, "socket") && d.socket == "":
		return input.Errorf("--socket", "path of the device's socket", "missing")
	case kind == "subport" && d.parent == "":
		return input.Errorf("--parent", "the name of a tenant port", "missing")
	case kind == "subport" && port.Vlan == 0:
		return input.Errorf("--vlan", "the id of a VLAN tag", "missing")
	}
	switch kind {
	case "dpdk":
		port.Device = &apiv1.Port_Dpdk{Dpdk: &apiv1.DpdkDevice{Devargs: args[1]}}
	case "tap":
		port.Device = &apiv1.Port_Tap{Tap: &apiv1.TapDevice{Ifname: d.ifname, Netns: d.netns}}
	case "memif":
		m := &apiv1.MemifDevice{Socket: d.socket, Id: d.id, Secret: d.secret, RingSize: d.ringSize,
			BufferSize: d.bufferSize, WholeSegments: d.whole,
			SocketOwner: d.owner, SocketGroup: d.group, SocketMode: d.mode}
		if d.client {
			m.Role = apiv1.MemifRole_MEMIF_ROLE_CLIENT
		}
		port.Device = &apiv1.Port_Memif{Memif: m}
	case "vhost":
		port.Device = &apiv1.Port_Vhost{Vhost: &apiv1.VhostDevice{Socket: d.socket, Client: d.client,
			SocketOwner: d.owner, SocketGroup: d.group, SocketMode: d.mode}}
	case "subport":
		port.Device = &apiv1.Port_Subport{Subport: &apiv1.SubportDevice{Parent: d.parent, Vlan: port.Vlan,
			OuterVlan: d.outerVlan}}
		port.Vlan = 0
	}
	return nil
}

func orNone(flags []string) string {
	if len(flags) == 0 {
		return "none"
	}
	return "--" + strings.Join(flags, " --")
}
