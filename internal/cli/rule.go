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
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/limits"
)

var ruleListing = listing[*apiv1.Rule]{
	key: func(r *apiv1.Rule) string { return fmt.Sprint(r.List, " ", r.Id) },
	columns: []column[*apiv1.Rule]{
		text("list", (*apiv1.Rule).GetList),
		number("id", (*apiv1.Rule).GetId),
		text("action", func(r *apiv1.Rule) string {
			return limits.EnumText(r.Action) + map[bool]string{true: ", log"}[r.Log]
		}),
		text("protocol", func(r *apiv1.Rule) string { return orAny(r.Protocol) }),
		text("source", func(r *apiv1.Rule) string { return ruleSide(r.Source, r.SourceGroup) }),
		text("ports", func(r *apiv1.Rule) string { return orAny(r.SourcePorts) }),
		text("destination", func(r *apiv1.Rule) string { return ruleSide(r.Destination, r.DestinationGroup) }),
		text("ports", ruleDestinationPorts),
		counter("hits", (*apiv1.Rule).GetHits),
		text("note", func(r *apiv1.Rule) string {
			if r.ShadowedBy == 0 {
				return ""
			}
			return fmt.Sprintf("shadowed by %d", r.ShadowedBy)
		}),
	},
}

// ruleFlags are the flags of a rule, on the command line and in a line of a file.
var ruleFlags = []fieldFlag{
	{flag: "protocol", help: "protocol (default: any)", names: fixed("tcp", "udp", "sctp", "icmp", "icmpv6")},
	{flag: "source", help: "prefix that the packets come from (default: any)"},
	{flag: "destination", help: "prefix that they go to (default: any)"},
	{flag: "source-group", help: "address group instead of a source prefix", names: groupNames},
	{flag: "destination-group", help: "address group instead of a destination prefix", names: groupNames},
	{flag: "source-ports", help: "tcp, udp, sctp"},
	{flag: "destination-ports", help: "tcp, udp, sctp"},
	{flag: "icmp-type", help: "icmp, icmpv6"},
	{flag: "icmp-code", help: "icmp, icmpv6, with a type"},
	{flag: "meter", help: "allow: meter that limits all of the rule's flows together, both directions",
		names: meterNames},
	{flag: "mirror", help: "mirror that gets copies of the packets of the rule's flows, both directions",
		names: mirrorNames},
	{flag: "log", help: "log new flows that the rule decides about"},
}

const ruleLong = `Rules decide about new flows of the ports that their list is attached to; replies pass. The rule
with the lowest ID that matches decides, else the list's default. Changes take effect at once.

A rule never decides if one earlier rule matches everything that it matches. It is accepted, with a warning, and
listed as "shadowed by ID". Prefixes, ports and types are compared by value, address groups by name. Several earlier
rules that shadow it only together are not found.`

func newRuleCmd(a *app) *cobra.Command {
	cmd := noun("rule", "Rules of rule lists: what tenant ports may send and receive",
		newRuleList(a), newRuleShow(a), newRuleAdd(a), newRuleLoad(a), newRuleDel(a), newRuleExplain(a))
	cmd.Long = ruleLong
	return cmd
}

func newRuleList(a *app) *cobra.Command {
	req := &apiv1.RuleListRulesRequest{}
	cmd := newList(a, "List rules with the number of flows that each decided about",
		"  corelane rule list --list web\n  corelane rule list --watch", ruleListing,
		listOf(a, apiv1.NewRulesClient, apiv1.RulesClient.List, req))
	a.bind(cmd, req, []fieldFlag{{flag: "list", help: "only those of this rule list", names: ruleListNames}})
	return cmd
}

func newRuleShow(a *app) *cobra.Command {
	cmd := a.watchable(verb("show LIST ID", "Show a rule", "  corelane rule show web 100",
		func(ctx context.Context, args []string) error {
			id, err := protoflag.ParseField("id", args[1], &apiv1.Rule{}, "id")
			if err != nil {
				return err
			}
			return details(ctx, a, func(ctx context.Context) (*apiv1.Rule, error) {
				return one(ctx, rulesOf(a, args[0], id), "rule", args[1], "see 'corelane rule list --list "+args[0]+"'")
			})
		}))
	cmd.ValidArgsFunction = a.completeRules
	return cmd
}

func newRuleAdd(a *app) *cobra.Command {
	req := &apiv1.RuleAddRequest{}
	rule := &apiv1.Rule{}
	cmd := verb("add LIST ID ACTION", "Add a rule",
		`  corelane rule add web 100 allow --protocol tcp --destination-ports 80
  corelane rule add web 110 allow --protocol tcp --source 10.0.0.0/8 --destination-ports 8000-8999 --log
  corelane rule add web 120 deny --protocol icmpv6 --icmp-type 128 --source-group offices`,
		func(ctx context.Context, args []string) (err error) {
			rule.List = args[0]
			if err = ruleHead(rule, args[1:]); err != nil {
				return err
			}
			req.Rules = []*apiv1.Rule{rule}
			return a.sendRules(ctx, req)
		})
	cmd.Long = "Add a rule. ID is its place in the list, " + protoflag.Numbers(rule, "id") +
		"; ACTION is allow or deny. Without flags the rule matches everything.\n\n" + ruleLong
	a.bind(cmd, rule, ruleFlags)
	a.bind(cmd, req, []fieldFlag{{flag: "replace", help: "replace an existing rule of this ID (default: refuse)"}})
	cmd.ValidArgsFunction = a.complete(ruleListNames, fixed(), fixed("allow", "deny"))
	return cmd
}

func newRuleDel(a *app) *cobra.Command {
	cmd := verb("del LIST ID...", "Remove rules", "  corelane rule del web 100 110",
		func(ctx context.Context, args []string) error {
			req := &apiv1.RuleDelRequest{}
			for _, arg := range args[1:] {
				id, err := protoflag.ParseField("id", arg, &apiv1.Rule{}, "id")
				if err != nil {
					return err
				}
				req.Rules = append(req.Rules, &apiv1.Rule{List: args[0], Id: id})
			}
			return a.done(call(ctx, a, apiv1.NewRulesClient, apiv1.RulesClient.Del, req))
		})
	cmd.ValidArgsFunction = a.completeRules
	return cmd
}

func newRuleExplain(a *app) *cobra.Command {
	req := &apiv1.RuleExplainRequest{}
	cmd := a.watchable(verb("explain PORT DIRECTION", "Say which rule decides about a flow",
		"  corelane rule explain vm1 ingress --protocol tcp --source 10.1.0.9 --destination 10.1.0.11 "+
			"--destination-port 80",
		func(ctx context.Context, args []string) error {
			direction, err := limits.ParseEnum(req.Direction.Descriptor(), args[1])
			if err != nil {
				return input.Errorf("direction", "egress, ingress", "'%s' is unknown", args[1])
			}
			req.Port, req.Direction = args[0], apiv1.RuleDirection(direction)
			return details(ctx, a, func(ctx context.Context) (*apiv1.RuleExplainReply, error) {
				return call(ctx, a, apiv1.NewRulesClient, apiv1.RulesClient.Explain, req)
			})
		}))
	cmd.Long = `Say which rule decides about a new flow, without sending anything. DIRECTION is egress (the guest
sends) or ingress (the guest receives). Nothing is counted. An answer with id 0 is the list's default; without a
list everything is allowed.`
	a.bind(cmd, req, []fieldFlag{
		{flag: "protocol", help: "tcp, udp, sctp, icmp, icmpv6 or a number from 0 to 255",
			names: fixed("tcp", "udp", "sctp", "icmp", "icmpv6")},
		{flag: "source", help: "address"},
		{flag: "destination", help: "address"},
		{flag: "source-port", help: ""},
		{flag: "destination-port", help: ""},
		{flag: "icmp-type", help: ""},
		{flag: "icmp-code", help: ""},
	})
	for _, flag := range []string{"protocol", "source", "destination"} {
		required(cmd, flag)
	}
	cmd.ValidArgsFunction = a.complete(portNames, fixed("egress", "ingress"))
	return cmd
}

// ruleHead reads "ID ACTION".
func ruleHead(rule *apiv1.Rule, args []string) (err error) {
	if rule.Id, err = protoflag.ParseField("id", args[0], &apiv1.Rule{}, "id"); err != nil {
		return err
	}
	action, err := limits.ParseEnum(rule.Action.Descriptor(), args[1])
	if err != nil {
		return input.Errorf("action", "allow, deny", "'%s' is unknown", args[1])
	}
	rule.Action = apiv1.RuleAction(action)
	return nil
}

// sendRules adds rules and warns of those that never decide.
func (a *app) sendRules(ctx context.Context, req *apiv1.RuleAddRequest) error {
	reply, err := call(ctx, a, apiv1.NewRulesClient, apiv1.RulesClient.Add, req)
	if err == nil {
		a.warnShadowed(reply)
	}
	return a.done(reply, err)
}

func (a *app) warnShadowed(reply *apiv1.RuleReply) {
	for _, s := range reply.Some {
		fmt.Fprintf(a.stderr, "warning: rule %d of '%s' never decides: it is shadowed by %d\n", s.Id, s.List,
			s.ShadowedBy)
	}
	if more := int(reply.Shadowed) - len(reply.Some); more > 0 {
		fmt.Fprintf(a.stderr, "warning: %d more rules never decide: see 'corelane rule list'\n", more)
	}
}

func orAny(s string) string {
	if s == "" {
		return "any"
	}
	return s
}

func ruleSide(prefix, group string) string {
	if group != "" {
		return "group " + group
	}
	return orAny(prefix)
}

func ruleDestinationPorts(r *apiv1.Rule) string {
	if r.IcmpType != "" {
		return "type " + r.IcmpType + optional(" code ", r.IcmpCode)
	}
	return orAny(r.DestinationPorts)
}

func rulesOf(a *app, list string, id uint32) fetch[*apiv1.Rule] {
	return listOf(a, apiv1.NewRulesClient, apiv1.RulesClient.List, &apiv1.RuleListRulesRequest{List: list, Id: id})
}

// completeRules offers lists, then the rules of the one that was given.
func (a *app) completeRules(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.offer(cmd.Context(), ruleListNames, prefix), cobra.ShellCompDirectiveNoFileComp
	}
	if len(args) > 1 && !strings.Contains(cmd.Use, "...") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	rules := named(func(a *app) fetch[*apiv1.Rule] { return rulesOf(a, args[0], 0) }, func(r *apiv1.Rule) string {
		return strconv.Itoa(int(r.Id)) + "\t" + limits.EnumText(r.Action)
	})
	return a.offer(cmd.Context(), rules, prefix), cobra.ShellCompDirectiveNoFileComp
}
