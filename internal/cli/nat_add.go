// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cli/protoflag"
	"github.com/corelane/corelane/internal/input"
)

var natKinds = []string{"floating", "source", "destination"}

var natFlags = []fieldFlag{
	{flag: "vrf", help: "VRF of the hosts inside", names: vrfNames},
	{flag: "external-vrf",
		help:  "VRF of the outside addresses and of the routes to the outside (default: that of --vrf)",
		names: vrfNames},
	{flag: "to", help: "floating, source: only flows from inside to this prefix"},
	{flag: "except",
		help: "floating, source: do not translate flows from inside to these prefixes, such as other tenant networks"},
	{flag: "protocol", help: "only this protocol"},
}

func newNatAdd(a *app) *cobra.Command {
	rule := &apiv1.NatRule{}
	var ports, poolPorts string
	cmd := verb("add ID KIND ADDRESS TO...", "Add a rule",
		`  corelane nat add 10 floating 10.1.0.2 198.51.100.2 --vrf red --except 10.0.0.0/8
  corelane nat add 20 source 10.1.0.0/16 198.51.100.10-198.51.100.13 --vrf red --external-vrf internet
  corelane nat add 30 destination 198.51.100.1:443 10.1.0.5:8443 10.1.0.6:8443@3 --vrf red --protocol tcp`,
		func(ctx context.Context, args []string) error {
			if err := parseNat(rule, args, ports, poolPorts); err != nil {
				return err
			}
			return a.done(call(ctx, a, apiv1.NewNatClient, apiv1.NatClient.Add, &apiv1.NatAddRequest{Rule: rule}))
		})
	cmd.Long = "Add a rule with an id of your choice, " + protoflag.Numbers(rule, "id") + `; of several rules that
match, the one with the lowest id applies. ADDRESS and TO by KIND:
  floating INSIDE OUTSIDE         one address for another, for flows in both directions
  source PREFIX FIRST[-LAST]      hosts of the prefix get an address of the pool and a free port
  destination SERVICE BACKEND...  flows to ADDRESS[:PORT] go to one of ADDRESS[:PORT][@WEIGHT]
                                  (IPv6 with a port: [2001:db8::1]:443)`
	a.bind(cmd, rule, natFlags)
	cmd.Flags().StringVar(&ports, "ports", "",
		"floating, source: only flows to this port, or FIRST-LAST; needs --protocol")
	cmd.Flags().StringVar(&poolPorts, "pool-ports", "",
		"source: ports to translate to, FIRST-LAST (default 1024-65535)")
	a.completeFlag(cmd, "ports", fixed())
	a.completeFlag(cmd, "pool-ports", fixed())
	cmd.ValidArgsFunction = a.complete(fixed(), fixed(natKinds...), fixed())
	return cmd
}

// parseNat reads "ID KIND ADDRESS TO...".
func parseNat(rule *apiv1.NatRule, args []string, ports, poolPorts string) (err error) {
	if rule.Id, err = protoflag.ParseField("id", args[0], &apiv1.NatRule{}, "id"); err != nil {
		return err
	}
	if rule.Vrf == "" {
		return input.Errorf("--vrf", "the VRF of the hosts inside", "missing")
	}
	if rule.FirstPort, rule.LastPort, err = parsePorts("--ports", ports); err != nil {
		return err
	}
	kind, address, to := args[1], args[2], args[3:]
	switch {
	case kind == "destination":
		rule.Kind, err = natDestination(address, to)
	case kind != "floating" && kind != "source":
		return input.Errorf("kind", strings.Join(natKinds, ", "), "'%s' is unknown", kind)
	case len(to) > 1:
		return input.Errorf("arguments", "corelane nat add ID "+kind+" ADDRESS TO", "'%s' is one too many", to[1])
	case kind == "floating":
		rule.Kind = &apiv1.NatRule_Floating{Floating: &apiv1.FloatingNat{Inside: address, Outside: to[0]}}
	default:
		first, last, _ := strings.Cut(to[0], "-")
		source := &apiv1.SourceNat{Prefix: address, First: first, Last: last}
		source.FirstPort, source.LastPort, err = parsePorts("--pool-ports", poolPorts)
		rule.Kind = &apiv1.NatRule_Source{Source: source}
	}
	if err == nil && poolPorts != "" && kind != "source" {
		return input.Errorf("--pool-ports", "", "is for source, not for %s", kind)
	}
	return err
}

// parsePorts reads "80" or "1024-65535".
func parsePorts(field, text string) (first, last uint32, err error) {
	if text == "" {
		return 0, 0, nil
	}
	from, to, ranged := strings.Cut(text, "-")
	if !ranged {
		to = from
	}
	if first, err = parseID(field, from, 1, 65535); err != nil {
		return 0, 0, err
	}
	last, err = parseID(field, to, first, 65535)
	return first, last, err
}

func natDestination(service string, backends []string) (*apiv1.NatRule_Destination, error) {
	d := &apiv1.DestinationNat{}
	var err error
	if d.Address, d.Port, err = parseEndpoint("service", service); err != nil {
		return nil, err
	}
	for _, text := range backends {
		b := &apiv1.NatBackend{}
		where, weight, weighted := strings.Cut(text, "@")
		if b.Address, b.Port, err = parseEndpoint("backend", where); err != nil {
			return nil, err
		}
		if weighted {
			if b.Weight, err = protoflag.ParseField("weight", weight, &apiv1.NatBackend{}, "weight"); err != nil {
				return nil, err
			}
		}
		d.Backends = append(d.Backends, b)
	}
	return &apiv1.NatRule_Destination{Destination: d}, nil
}

const validEndpoint = "192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1]:80"

// parseEndpoint reads an address, or one with a port: 192.0.2.1:80, [2001:db8::1]:80.
func parseEndpoint(field, text string) (string, uint32, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return a.String(), 0, nil
	}
	ap, err := netip.ParseAddrPort(text)
	if err != nil || ap.Port() == 0 {
		return "", 0, input.Errorf(field, validEndpoint, "'%s' is not an address, with or without a port", text)
	}
	return ap.Addr().String(), uint32(ap.Port()), nil
}
