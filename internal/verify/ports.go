// SPDX-License-Identifier: Apache-2.0
package verify

import (
	"fmt"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/topology"
)

// SourceCheckHint says how rules become safe.
const SourceCheckHint = "set guest_mac and guest_addresses, or source_check reverse_path"

// PassableRules says what is wrong with a port that has rules, but no source check: its guest can send with the
// address of another guest, whose flows the rules of both ports have allowed. It returns "" if nothing is wrong.
func PassableRules(p *apiv1.Port) string {
	check := p.SourceCheck
	if check == apiv1.SourceCheck_SOURCE_CHECK_DEFAULT && p.GuestMac != "" && len(p.GuestAddresses) > 0 {
		check = apiv1.SourceCheck_SOURCE_CHECK_STRICT
	}
	unchecked := check == apiv1.SourceCheck_SOURCE_CHECK_DEFAULT || check == apiv1.SourceCheck_SOURCE_CHECK_NONE
	if !unchecked || (p.EgressRules == "" && p.IngressRules == "") {
		return ""
	}
	if p.Vrf == "" && p.Bridge != "" { // bridged flows belong to their ports
		return ""
	}
	return "has rules, but no source check: its guest can send as another guest and pass by that guest's flows"
}

// Ports checks the ports of a running daemon.
func Ports(ports []*apiv1.Port) Finding {
	ru := rule{id: "ports.source_check", group: "Ports", title: "Ports with rules check their guests' addresses",
		source: "docs/security.md",
		why: "A flow is found by its addresses. A guest that sends with another guest's address uses that guest's " +
			"flows, which rules have allowed.",
		check: func(_ *view, r *result) {
			r.pass("%d ports", len(ports))
			for _, p := range ports {
				if text := PassableRules(p); text != "" {
					r.warn("port %s %s", p.Name, text).about("port %s", p.Name).Command =
						fmt.Sprintf("corelane port set %s --source-check reverse_path", p.Name)
				}
			}
		}}
	return ru.run(&view{m: &topology.Machine{}, in: &Intent{}})
}
