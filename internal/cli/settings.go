// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

var settingFlags = []fieldFlag{
	{flag: "mplsoudp-port", field: "mplsoudp_ports", help: "UDP ports of MPLSoUDP: all are accepted, the first one " +
		"is sent"},
	{flag: "vxlan-port", field: "vxlan_ports", help: "UDP ports of VXLAN: all are accepted, the first one is sent"},
	{flag: "geneve-port", field: "geneve_ports", help: "UDP ports of Geneve: all are accepted, the first one is sent"},
	{flag: "mac-age", field: "mac_age_seconds", help: "time until a learnt MAC address that is not seen again expires"},
	{flag: "neighbor-age", field: "neighbor_age_seconds", help: "time until a neighbour is probed"},
	{flag: "icmp-errors", field: "icmp_errors_per_second", help: "ICMP errors, and TCP resets of services, per " +
		"second and worker; a tenth of " +
		"them for one port or VRF"},
	{flag: "flood-copies", field: "flood_copies_per_second",
		help: "copies of broadcasts and unknown destinations per second and worker that a port, or the tunnels of a " +
			"bridge domain, may cause"},
	{flag: "label-stack-depth", help: "deepest label stack accepted from the wire"},
	{flag: "flow-tcp-half-open", field: "flow_tcp_half_open_seconds",
		help: "time from the last packet until a flow expires: TCP without an answer yet"},
	{flag: "flow-tcp-established", field: "flow_tcp_established_seconds",
		help: "time from the last packet until a flow expires: TCP, established (RFC 5382: at least 2 h 4 min)"},
	{flag: "flow-tcp-closing", field: "flow_tcp_closing_seconds",
		help: "time from the last packet until a flow expires: TCP, one side has sent FIN"},
	{flag: "flow-udp", field: "flow_udp_seconds",
		help: "time from the last packet until a flow expires: UDP without an answer yet"},
	{flag: "flow-udp-answered", field: "flow_udp_answered_seconds",
		help: "time from the last packet until a flow expires: UDP that was answered (RFC 4787: at least 2 min)"},
	{flag: "flow-icmp", field: "flow_icmp_seconds", help: "time from the last packet until a flow expires: ICMP"},
	{flag: "flow-other", field: "flow_other_seconds",
		help: "time from the last packet until a flow expires: other protocols"},
	{flag: "flow-denied", field: "flow_denied_seconds",
		help: "time from the last packet until a denied flow expires; until then its packets are dropped without a " +
			"new decision"},
	{flag: "rebalance", field: "rebalance_seconds",
		help: "interval of moving queues and table entries to workers with less load; 0: only by 'corelane worker " +
			"rebalance'"},
	{flag: "accept-udp6-zero",
		help: "accept tunnel packets over IPv6 without a UDP checksum from any source; otherwise only from ends " +
			"to which a tunnel sends none either"},
	{flag: "service-key", help: "128-bit key for choosing endpoints of services, as four numbers between commas; use " +
		"the same key on all nodes with the same services"},
	{flag: "flow-tcp-strict", help: "a TCP connection must begin with SYN"},
}

func newSettingsCmd(a *app) *cobra.Command {
	return noun("settings", "Settings of the whole node", newSettingsShow(a), newSettingsSet(a))
}

func newSettingsShow(a *app) *cobra.Command {
	return a.watchable(verb("show", "Show the settings", "  corelane settings show",
		func(ctx context.Context, _ []string) error {
			return details(ctx, a, func(ctx context.Context) (*apiv1.Settings, error) {
				return call(ctx, a, apiv1.NewSystemClient, apiv1.SystemService.GetSettings, &apiv1.Empty{})
			})
		}))
}

func newSettingsSet(a *app) *cobra.Command {
	s := &apiv1.Settings{}
	var cmd *cobra.Command
	cmd = verb("set", "Change settings", "  corelane settings set --mplsoudp-port 6635,51234\n  corelane settings "+
		"set --mac-age 600",
		func(ctx context.Context, _ []string) error {
			fields, err := needFields(cmd, settingFlags)
			if err != nil {
				return err
			}
			return a.done(call(ctx, a, apiv1.NewSystemClient, apiv1.SystemService.SetSettings,
				&apiv1.SettingsSetRequest{Settings: s, Fields: fields}))
		})
	a.bind(cmd, s, settingFlags)
	return cmd
}
