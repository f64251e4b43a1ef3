// SPDX-License-Identifier: Apache-2.0
package router

import (
	"fmt"
	"strconv"

	"github.com/corelane/corelane/internal/bench/scenario"
)

// Bridges: the tenants' one, and the one on the wire that tunnels end on. The second's internal port has the tunnels'
// address. It is a tap device: in our namespace, not on the host.
const (
	ovsTenants    = "tenants"
	ovsWire       = "underlay"
	ovsTunnelPort = 1000 // OpenFlow number of the port of all tunnels
)

// ovsRings returns the number of memif rings per direction, which is also the number of polled queues of a port. Open
// vSwitch transmits on one queue more than it has polling threads, and counts frames for a missing ring as sent. There
// are twice as many rings as threads, not one more, so that all threads poll the same number.
func ovsRings(workers int) int { return 2 * workers }

const ovsMaxRings = 16 // of a memif of the generator

// ovsPortNumbers returns OpenFlow numbers by name.
func ovsPortNumbers(b *scenario.Setup) map[string]int {
	numbers := map[string]int{}
	for i, p := range b.Ports {
		numbers[p.Name] = i + 1
	}
	return numbers
}

// ovsSettings returns the command that configures the whole switch.
//
// Defaults that are kept: the exact match cache accepts one flow in 100 (emc-insert-inv-prob), the signature match
// cache is off, and megaflows match only on the fields that the rules examined.
//
// Changed: max-idle and max-revalidator are one hour (defaults: 10 s and 0.5 s), flow-limit is 2,000,000 (default:
// 200,000). This switch is stopped while other routers are measured; with the defaults its flows would expire in that
// time, and each round would measure how it learns them again. All three changes are in its favour.
func ovsSettings(env *Env) []string {
	extra := "--no-pci --no-telemetry --file-prefix=corelane-bench" // ovs-vswitchd adds --in-memory
	settings := []string{
		"dpdk-init=true",
		"pmd-cpu-mask=" + plainMask(env.CPUs),
		"dpdk-lcore-mask=" + plainMask([]int{env.ControlCPU}),
		"max-idle=3600000",
		"max-revalidator=3600000",
		"flow-limit=" + strconv.Itoa(ovsFlowLimit),
	}
	if env.Memory > 0 {
		settings = append(settings, "dpdk-socket-mem="+strconv.Itoa(env.Memory))
	} else {
		extra += " --no-huge --legacy-mem -m 512"
	}
	settings = append(settings, `dpdk-extra="`+extra+`"`)
	list := []string{"set", "Open_vSwitch", "."}
	for _, s := range settings {
		list = append(list, "other_config:"+s)
	}
	return list
}

const ovsFlowLimit = 2000000

// ovsTopology makes bridges and ports.
func ovsTopology(env *Env, b *scenario.Setup) []string {
	list := ovsBridge(ovsTenants)
	for i, p := range b.Ports {
		bridge := ovsTenants
		if p.Wire {
			bridge = ovsWire
			list = append(list, ovsBridge(bridge, "other_config:hwaddr="+p.MAC.String())...)
		}
		list = append(list, ovsPort(bridge, p, i, ovsRings(len(env.CPUs)))...)
	}
	switch b.Overlay {
	case scenario.VXLAN, scenario.Geneve:
		list = append(list, ovsTunnel(string(b.Overlay), "options:key=flow")...)
	case scenario.MPLSoGRE:
		list = append(list, ovsTunnel("gre", "options:packet_type=legacy_l3")...)
	}
	return list
}

func ovsBridge(name string, settings ...string) []string {
	return append([]string{"--", "add-br", name, "--", "set", "Bridge", name, "datapath_type=netdev",
		"fail_mode=secure"}, settings...)
}

func ovsPort(bridge string, p scenario.Port, index, rings int) []string {
	devargs := fmt.Sprintf(`net_memif%d,role=server,socket=%s,socket-abstract=no,id=0`, index, p.Socket)
	return []string{"--", "add-port", bridge, p.Name, "--", "set", "Interface", p.Name, "type=dpdk",
		`options:dpdk-devargs="` + devargs + `"`,
		fmt.Sprintf("options:n_rxq=%d", rings),
		fmt.Sprintf("mtu_request=%d", p.MTU),
		fmt.Sprintf("ofport_request=%d", index+1)}
}

// ovsTunnel adds one port for all tunnels of a kind. Rules set and match addresses and VNI.
func ovsTunnel(kind string, options ...string) []string {
	return append([]string{"--", "add-port", ovsTenants, kind, "--", "set", "Interface", kind, "type=" + kind,
		"options:local_ip=flow", "options:remote_ip=flow", fmt.Sprintf("ofport_request=%d", ovsTunnelPort)}, options...)
}
