// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

var ruleListListing = listing[*apiv1.RuleList]{
	key: (*apiv1.RuleList).GetName,
	columns: []column[*apiv1.RuleList]{
		text("name", (*apiv1.RuleList).GetName),
		text("default", func(l *apiv1.RuleList) string { return limits.EnumText(l.DefaultAction) }),
		number("rules", (*apiv1.RuleList).GetRules),
		number("ports", (*apiv1.RuleList).GetPorts),
		counter("default hits", (*apiv1.RuleList).GetDefaultHits),
		text("state", func(l *apiv1.RuleList) string {
			switch {
			case l.LastError != "":
				return l.LastError
			case l.Compiling:
				return "compiling"
			}
			return "ready"
		}),
	},
}

var ruleListFlags = []fieldFlag{{flag: "default-action", help: "what happens to flows that no rule matches: deny " +
	"(the default) or allow"}}

func newRuleListCmd(a *app) *cobra.Command {
	return noun("rule-list", "Rule lists: ordered rules that ports share, one list per direction",
		newList(a, "List rule lists", "  corelane rule-list list", ruleListListing, ruleListsNamed(a, "")),
		newShow(a, "LIST", "Show a rule list; 'corelane rule list' shows its rules",
			"  corelane rule-list show web", ruleListNames,
			func(name string) (fetch[*apiv1.RuleList], error) { return ruleListsNamed(a, name), nil }),
		newRuleListAdd(a), newRuleListSet(a),
		newDel(a, "LIST", "Remove rule lists with their rules", "  corelane rule-list del web", ruleListNames,
			func(ctx context.Context, name string) error {
				return a.done(call(ctx, a, apiv1.NewRuleListsClient, apiv1.RuleListsClient.Del,
					&apiv1.RuleListDelRequest{Name: name}))
			}))
}

func newRuleListAdd(a *app) *cobra.Command {
	l := &apiv1.RuleList{}
	cmd := verb("add LIST", "Add a rule list",
		"  corelane rule-list add web\n  corelane rule-list add out --default-action allow",
		func(ctx context.Context, args []string) error {
			l.Name = args[0]
			return a.done(call(ctx, a, apiv1.NewRuleListsClient, apiv1.RuleListsClient.Add,
				&apiv1.RuleListAddRequest{List: l}))
		})
	cmd.Long = `Add a rule list. It takes effect on the ports that use it: corelane port set PORT --egress-rules LIST
(what the guest may send) or --ingress-rules LIST (what it may receive). A port without a list sends, or receives,
everything.`
	a.bind(cmd, l, ruleListFlags)
	return cmd
}

func newRuleListSet(a *app) *cobra.Command {
	l := &apiv1.RuleList{}
	var cmd *cobra.Command
	cmd = verb("set LIST", "Change a rule list", "  corelane rule-list set web --default-action deny",
		func(ctx context.Context, args []string) error {
			fields, err := needFields(cmd, ruleListFlags)
			if err != nil {
				return err
			}
			l.Name = args[0]
			return a.done(call(ctx, a, apiv1.NewRuleListsClient, apiv1.RuleListsClient.Set,
				&apiv1.RuleListSetRequest{List: l, Fields: fields}))
		})
	a.bind(cmd, l, ruleListFlags)
	cmd.ValidArgsFunction = a.complete(ruleListNames)
	return cmd
}

func ruleListsNamed(a *app, name string) fetch[*apiv1.RuleList] {
	return listOf(a, apiv1.NewRuleListsClient, apiv1.RuleListsClient.List, &apiv1.RuleListListRequest{Name: name})
}

var ruleListNames = named(func(a *app) fetch[*apiv1.RuleList] {
	return ruleListsNamed(a, "")
}, (*apiv1.RuleList).GetName)
