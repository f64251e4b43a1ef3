// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/state"
)

// Check is one test of rules or translation, with its result.
type Check struct {
	Text  string `json:"text"`
	Ping  Ping   `json:"ping"`
	Pass  bool   `json:"pass"` // true: all echoes should come back; false: none
	Drops string `json:"drops,omitempty"`
	Flow  string `json:"flow,omitempty"` // of the receiving host, in words
	Error string `json:"error,omitempty"`
}

// OK says whether the result is the expected one.
func (c Check) OK() bool {
	return c.Error == "" && c.Ping.Sent > 0 && (c.Pass && c.Ping.Lost() == 0 || !c.Pass && c.Ping.Received == 0)
}

const (
	guardList = "guard"
	floating  = "198.51.100.12" // of the guest with the rules
)

// guarded is a host's state in which a guest has a stateful port with ingress rules, and a floating address.
func (l *Lab) guarded(p Path, rules ...*apiv1.Rule) *state.State {
	s := l.Node(p.To.Host, l.Ledger.Underlay)
	for _, port := range s.Ports {
		if port.Name == p.To.Port() {
			port.Stateful, port.IngressRules = true, guardList
		}
	}
	s.RuleLists = append(s.RuleLists, &apiv1.RuleList{Name: guardList})
	for i, r := range rules {
		r.List, r.Id = guardList, uint32(10*(i+1))
		s.Rules = append(s.Rules, r)
	}
	s.Nat = append(s.Nat, &apiv1.NatRule{Id: 1, Vrf: p.To.Network.Name,
		Kind: &apiv1.NatRule_Floating{Floating: &apiv1.FloatingNat{Inside: p.To.Address(IPv4), Outside: floating}}})
	s.Normalize()
	return s
}

// Policy shows security rules and translation between the guests of the first network, and restores the lab afterwards.
func (l *Lab) Policy(ctx context.Context) (list []Check, err error) {
	p := l.paths(l.Networks[0])[0]
	defer func() {
		for _, h := range []Host{p.From.Host, p.To.Host} {
			_, e := l.applyNode(context.WithoutCancel(ctx), h, l.Ledger.Underlay)
			err = errors.Join(err, e)
		}
	}()
	near := l.Node(p.From.Host, l.Ledger.Underlay)
	near.Routes = append(near.Routes, state.NewRoute(p.From.Network.Name, floating+"/32",
		p.From.Network.nexthop(p.To.Host)))
	near.Normalize()
	if _, err := l.apply(ctx, p.From.Host, near); err != nil {
		return nil, err
	}
	tcp := &apiv1.Rule{Action: apiv1.RuleAction_RULE_ACTION_ALLOW, Protocol: "tcp"}
	ping := &apiv1.Rule{Action: apiv1.RuleAction_RULE_ACTION_ALLOW, Protocol: "icmp"}
	for _, step := range []struct {
		rules []*apiv1.Rule
		to    string
		pass  bool
		text  string
	}{
		{[]*apiv1.Rule{tcp}, p.To.Address(IPv4), false, "may receive TCP only: ping is denied"},
		{[]*apiv1.Rule{tcp, ping}, p.To.Address(IPv4), true, "may receive ICMP too: ping passes"},
		{[]*apiv1.Rule{tcp, ping}, floating, true, "has the floating address " + floating + ": ping is translated"},
	} {
		c := Check{Text: p.To.Name() + " " + step.text, Pass: step.pass}
		if err := l.check(ctx, p, step.rules, step.to, &c); err != nil {
			c.Error = err.Error()
		}
		list = append(list, c)
		if ctx.Err() != nil {
			return list, context.Cause(ctx)
		}
	}
	return list, nil
}

func (l *Lab) check(ctx context.Context, p Path, rules []*apiv1.Rule, to string, c *Check) error {
	if _, err := l.apply(ctx, p.To.Host, l.guarded(p, rules...)); err != nil {
		return err
	}
	before, err := l.losses(ctx, p)
	if err != nil {
		return err
	}
	if c.Ping, err = l.ping(ctx, p, pings, "-i", pingInterval, "-w", pingDeadline, to); err != nil && c.Pass {
		return err
	}
	after, err := l.losses(ctx, p)
	if err != nil {
		return err
	}
	c.Drops = LossText(after.since(before).drops)
	c.Flow, err = l.flow(ctx, p.To)
	return err
}

// flow describes the newest flow of a guest.
func (l *Lab) flow(ctx context.Context, g Guest) (string, error) {
	client, err := l.Dial(ctx, g.Host)
	if err != nil {
		return "", err
	}
	defer client.Close()
	flows, err := api.Collect(ctx, client, apiv1.NewFlowsClient, apiv1.FlowsClient.List,
		&apiv1.FlowFilter{Port: g.Port(), Protocol: "icmp"})
	if err != nil || len(flows) == 0 {
		return "", err
	}
	f := flows[len(flows)-1]
	text := fmt.Sprintf("%s > %s", f.GetForward().GetSource(), f.GetForward().GetDestination())
	if inside := f.GetReverse().GetSource(); inside != f.GetForward().GetDestination() {
		text += ", translated to " + inside
	}
	by := []string{strings.ToLower(strings.TrimPrefix(f.Action.String(), "FLOW_ACTION_"))}
	if f.IngressRule != 0 {
		by = append(by, fmt.Sprintf("by rule %d", f.IngressRule))
	}
	if f.Nat != 0 {
		by = append(by, fmt.Sprintf("translation by rule %d", f.Nat))
	}
	return fmt.Sprintf("%s: %s, %d packets, %d answers", text, strings.Join(by, ", "), f.GetForward().GetPackets(),
		f.GetReverse().GetPackets()), nil
}
