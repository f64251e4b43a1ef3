// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cli/protoflag"
	"github.com/corelane/corelane/internal/limits"
)

var natListing = listing[*apiv1.NatRule]{
	key: natName,
	columns: []column[*apiv1.NatRule]{
		number("id", (*apiv1.NatRule).GetId),
		text("vrf", (*apiv1.NatRule).GetVrf),
		text("external vrf", (*apiv1.NatRule).GetExternalVrf),
		text("kind", natKind),
		text("of", natOf),
		text("becomes", natBecomes),
		text("only", natMatch),
		counter("flows", (*apiv1.NatRule).GetFlows),
	},
}

func newNatCmd(a *app) *cobra.Command {
	return noun("nat", "Address translation: rules for the flows of tenants",
		newNatList(a),
		newShow(a, "ID", "Show a rule", "  corelane nat show 10", natNames,
			func(arg string) (fetch[*apiv1.NatRule], error) {
				id, err := protoflag.ParseField("id", arg, &apiv1.NatRule{}, "id")
				return where(natRules(a, &apiv1.NatListRequest{}), func(r *apiv1.NatRule) bool {
					return r.Id == id
				}), err
			}),
		newNatAdd(a),
		newDel(a, "ID", "Remove rules; the flows that they translate end",
			"  corelane nat del 10", natNames,
			byNumber("id", &apiv1.NatRule{}, "id", func(ctx context.Context, id uint32) error {
				return a.done(call(ctx, a, apiv1.NewNatClient, apiv1.NatClient.Del, &apiv1.NatDelRequest{Id: id}))
			})))
}

func newNatList(a *app) *cobra.Command {
	req := &apiv1.NatListRequest{}
	cmd := newList(a, "List rules in the order in which they are tried",
		"  corelane nat list --vrf red", natListing, natRules(a, req))
	a.bind(cmd, req, []fieldFlag{{flag: "vrf", help: "only those of this VRF", names: vrfNames}})
	return cmd
}

func natRules(a *app, req *apiv1.NatListRequest) fetch[*apiv1.NatRule] {
	return listOf(a, apiv1.NewNatClient, apiv1.NatClient.List, req)
}

func natName(r *apiv1.NatRule) string { return strconv.Itoa(int(r.Id)) }

var natNames = named(func(a *app) fetch[*apiv1.NatRule] { return natRules(a, &apiv1.NatListRequest{}) },
	func(r *apiv1.NatRule) string {
		return natName(r) + "\t" + natKind(r) + " " + natOf(r) + " " + natBecomes(r)
	})

func natKind(r *apiv1.NatRule) string {
	switch r.Kind.(type) {
	case *apiv1.NatRule_Floating:
		return "floating"
	case *apiv1.NatRule_Source:
		return "source"
	case *apiv1.NatRule_Destination:
		return "destination"
	}
	return ""
}

func natOf(r *apiv1.NatRule) string {
	switch k := r.Kind.(type) {
	case *apiv1.NatRule_Floating:
		return k.Floating.Inside
	case *apiv1.NatRule_Source:
		return k.Source.Prefix
	case *apiv1.NatRule_Destination:
		return endpoint(k.Destination.Address, k.Destination.Port)
	}
	return ""
}

func natBecomes(r *apiv1.NatRule) string {
	switch k := r.Kind.(type) {
	case *apiv1.NatRule_Floating:
		return k.Floating.Outside
	case *apiv1.NatRule_Source:
		pool := k.Source.First
		if k.Source.Last != "" && k.Source.Last != pool {
			pool += "-" + k.Source.Last
		}
		return pool + " ports " + portRange(k.Source.FirstPort, k.Source.LastPort)
	case *apiv1.NatRule_Destination:
		var list []string
		for _, b := range k.Destination.Backends {
			s := endpoint(b.Address, b.Port)
			if b.Weight > 1 {
				s += fmt.Sprintf("@%d", b.Weight)
			}
			list = append(list, s)
		}
		return strings.Join(list, " ")
	}
	return ""
}

// natMatch is the part of a rule's match that is not its addresses.
func natMatch(r *apiv1.NatRule) string {
	var parts []string
	if r.Protocol != apiv1.NatProtocol_NAT_PROTOCOL_ANY {
		parts = append(parts, limits.EnumText(r.Protocol))
	}
	if r.FirstPort != 0 || r.LastPort != 0 {
		parts = append(parts, "ports "+portRange(r.FirstPort, r.LastPort))
	}
	if r.To != "" {
		parts = append(parts, "to "+r.To)
	}
	if len(r.Except) > 0 {
		parts = append(parts, "except "+strings.Join(r.Except, " "))
	}
	return strings.Join(parts, " ")
}

func portRange(first, last uint32) string {
	if first == last {
		return strconv.Itoa(int(first))
	}
	return fmt.Sprintf("%d-%d", first, last)
}

// endpoint writes an address with a port, or an address alone when the port is 0.
func endpoint(address string, port uint32) string {
	switch {
	case port == 0:
		return address
	case strings.Contains(address, ":"):
		return fmt.Sprintf("[%s]:%d", address, port)
	}
	return fmt.Sprintf("%s:%d", address, port)
}
