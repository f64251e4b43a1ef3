// SPDX-License-Identifier: Apache-2.0
package state

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// RuleBatch is the largest number of rules in a request.
const RuleBatch = 4096

var protocolNames = map[uint64]string{6: "tcp", 17: "udp", 132: "sctp", 1: "icmp", 58: "icmpv6"}

// Protocol returns the canonical name of a protocol; "" means any.
func Protocol(s string) (string, bool) { return canonProtocol(s) }

func canonProtocol(s string) (string, bool) {
	if s == "any" {
		return "", true
	}
	for _, name := range protocolNames {
		if s == name {
			return s, true
		}
	}
	n, err := strconv.ParseUint(s, 10, 8)
	if name := protocolNames[n]; err == nil && name != "" {
		return name, true
	}
	return strconv.FormatUint(n, 10), err == nil
}

// canonRange reads ranges from 0 to most: "80-80" becomes "80", and the whole range becomes "".
func canonRange(most uint64) func(string) (string, bool) {
	return func(s string) (string, bool) {
		low, high, isRange := strings.Cut(s, "-")
		if !isRange {
			high = low
		}
		a, err1 := strconv.ParseUint(low, 10, 16)
		b, err2 := strconv.ParseUint(high, 10, 16)
		switch {
		case err1 != nil || err2 != nil || b > most || a > b:
			return "", false
		case a == b:
			return strconv.FormatUint(a, 10), true
		case a == 0 && b == most:
			return "", true
		}
		return fmt.Sprintf("%d-%d", a, b), true
	}
}

// sortPrefixes sorts a list of prefixes, since their order has no meaning.
func sortPrefixes(l protoreflect.List) {
	list := make([]netip.Prefix, l.Len())
	for i := range list {
		p, err := netip.ParsePrefix(l.Get(i).String())
		if err != nil {
			return // not a prefix, which Load has reported
		}
		list[i] = p
	}
	slices.SortFunc(list, func(a, b netip.Prefix) int {
		if c := a.Addr().Compare(b.Addr()); c != 0 {
			return c
		}
		return a.Bits() - b.Bits()
	})
	for i, p := range list {
		l.Set(i, protoreflect.ValueOfString(p.String()))
	}
}

// checkRule finds fields of a rule that contradict each other.
func (l *loader) checkRule(path string, n *yaml.Node, m *apiv1.Rule) {
	fail := func(field, valid, what string, args ...any) {
		at := n
		if c := child(n, field); c != nil {
			at = c
		}
		l.fail(l.at(at), path+"."+field, valid, what, args...)
	}
	if m.Meter != "" && m.Action != apiv1.RuleAction_RULE_ACTION_ALLOW {
		fail("meter", "with action RULE_ACTION_ALLOW", "a rule that denies has no traffic to limit")
	}
	both := func(field, prefix, group string) {
		if prefix != "" && group != "" {
			fail(field, "a prefix or a group", "'%s' and '%s' are both given", prefix, group)
		}
	}
	both("source_group", m.Source, m.SourceGroup)
	both("destination_group", m.Destination, m.DestinationGroup)
	if m.Source != "" && m.Destination != "" && isIPv6(m.Source) != isIPv6(m.Destination) {
		fail("destination", "prefixes of one family", "'%s' and '%s' are not of one family", m.Source, m.Destination)
	}
	for _, prefix := range []string{m.Source, m.Destination} {
		if prefix != "" && (m.Protocol == "icmp" && isIPv6(prefix) || m.Protocol == "icmpv6" && !isIPv6(prefix)) {
			fail("protocol",
				"icmp with IPv4, icmpv6 with IPv6", "'%s' does not match the family of '%s'", m.Protocol, prefix)
			break
		}
	}
	if m.Protocol != "tcp" && m.Protocol != "udp" && m.Protocol != "sctp" {
		for _, field := range []string{"source_ports", "destination_ports"} {
			if child(n, field) != nil {
				fail(field, "with protocol tcp, udp or sctp", "the protocol has no ports")
			}
		}
	}
	if m.Protocol != "icmp" && m.Protocol != "icmpv6" {
		for _, field := range []string{"icmp_type", "icmp_code"} {
			if child(n, field) != nil {
				fail(field, "with protocol icmp or icmpv6", "the protocol has no ICMP types")
			}
		}
	} else if m.IcmpCode != "" && m.IcmpType == "" {
		fail("icmp_code", "with an icmp_type", "a code belongs to a type")
	}
}

func isIPv6(prefix string) bool { return strings.Contains(prefix, ":") }

// rules changes, adds and deletes rules, in this order, before ports get new lists. The rules of a list that is
// deleted are deleted with it.
func (d *differ) rules() {
	for _, want := range d.wantState.Rules {
		want = d.ruleWithMirror(want)
		if have := d.have["rules"][keyOf(want)]; have != nil && len(changed(want, have)) > 0 {
			d.op(Set, "rules", want, have, "")
		}
	}
	for _, want := range d.wantState.Rules {
		if d.have["rules"][keyOf(want)] == nil {
			d.op(Add, "rules", d.ruleWithMirror(want), nil, "")
		}
	}
	for _, have := range d.haveState.Rules {
		if d.want["rules"][keyOf(have)] == nil && d.want["rule_lists"][have.List] != nil {
			d.op(Del, "rules", nil, have, "")
		}
	}
}

// putNamed adds and changes objects that never have to be replaced.
func (d *differ) putNamed(section string) {
	for _, want := range d.wantState.objects(section) {
		switch have := d.have[section][keyOf(want)]; {
		case have == nil:
			d.op(Add, section, want, nil, "")
		case len(changed(want, have)) > 0:
			d.op(Set, section, want, have, "")
		}
	}
}

// doRules carries out operations on rules in one request, which changes all of them or none.
func doRules(ctx context.Context, c *api.Client, ops []Op) error {
	list := make([]*apiv1.Rule, len(ops))
	for i, op := range ops {
		if op.Verb == Del {
			old := op.Old.(*apiv1.Rule)
			list[i] = &apiv1.Rule{List: old.List, Id: old.Id}
		} else {
			list[i] = op.New.(*apiv1.Rule)
		}
	}
	if ops[0].Verb == Del {
		return call(ctx, c, apiv1.NewRulesClient, apiv1.RulesClient.Del, &apiv1.RuleDelRequest{Rules: list})
	}
	return call(ctx, c, apiv1.NewRulesClient, apiv1.RulesClient.Add,
		&apiv1.RuleAddRequest{Rules: list, Replace: ops[0].Verb == Set})
}
