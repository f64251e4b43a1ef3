// SPDX-License-Identifier: Apache-2.0
package apitest

import (
	"context"
	"fmt"

	"github.com/containerd/ttrpc"
	"google.golang.org/grpc/codes"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

func registerPolicy(srv *ttrpc.Server, s *Server) {
	apiv1.RegisterAddressGroupsService(srv, groups{s})
	apiv1.RegisterRuleListsService(srv, ruleLists{s})
	apiv1.RegisterRulesService(srv, rules{s})
}

type groups struct{ *Server }

func (s groups) Add(_ context.Context, r *apiv1.AddressGroupAddRequest) (*apiv1.AddressGroup, error) {
	return add(s.Server, &s.Groups, "AddressGroups.Add", "group.name", r, r.Group.Name, r.Group, false)
}
func (s groups) Set(_ context.Context, r *apiv1.AddressGroupSetRequest) (*apiv1.AddressGroup, error) {
	return set(s.Server, &s.Groups, "AddressGroups.Set", "group.name", r, r.Group.Name, r.Group, r.Fields)
}
func (s groups) Del(_ context.Context, r *apiv1.AddressGroupDelRequest) (*apiv1.Empty, error) {
	return del(s.Server, &s.Groups, "AddressGroups.Del", "group.name", r, r.Name)
}
func (s groups) List(_ context.Context, r *apiv1.AddressGroupListRequest, out apiv1.AddressGroups_ListServer) error {
	return send(s.Server, "AddressGroups.List", r, s.Groups.All, func(g *apiv1.AddressGroup) bool {
		return given(r.Name, g.Name)
	}, out)
}

type ruleLists struct{ *Server }

func (s ruleLists) Add(_ context.Context, r *apiv1.RuleListAddRequest) (*apiv1.RuleList, error) {
	return add(s.Server, &s.RuleLists, "RuleLists.Add", "rule_list.name", r, r.List.Name, r.List, false)
}
func (s ruleLists) Set(_ context.Context, r *apiv1.RuleListSetRequest) (*apiv1.RuleList, error) {
	return set(s.Server, &s.RuleLists, "RuleLists.Set", "rule_list.name", r, r.List.Name, r.List, r.Fields)
}
func (s ruleLists) Del(_ context.Context, r *apiv1.RuleListDelRequest) (*apiv1.Empty, error) {
	return del(s.Server, &s.RuleLists, "RuleLists.Del", "rule_list.name", r, r.Name)
}
func (s ruleLists) List(_ context.Context, r *apiv1.RuleListListRequest, out apiv1.RuleLists_ListServer) error {
	return send(s.Server, "RuleLists.List", r, s.RuleLists.All, func(l *apiv1.RuleList) bool {
		return given(r.Name, l.Name)
	}, out)
}

type rules struct{ *Server }

// Add answers that the first rule of two shadows the second one, so that tests see the warning.
func (s rules) Add(_ context.Context, r *apiv1.RuleAddRequest) (*apiv1.RuleReply, error) {
	s.Lock()
	defer s.Unlock()
	if err := s.begin("Rules.Add", r); err != nil {
		return nil, err
	}
	for i, rule := range r.Rules {
		if _, ok := s.RuleLists.Get(rule.List); !ok {
			return nil, missing("rule.list", rule.List)
		}
		if _, ok := s.Rules.Get(RuleKey{rule.List, rule.Id}); ok && !r.Replace {
			return nil,
				Refusal(codes.AlreadyExists, &apiv1.Error{Field: "rule.id", Index: uint32(i),
					Value: fmt.Sprint(rule.Id), Message: fmt.Sprintf("rule.id '%d': is taken", rule.Id)})
		}
	}
	reply := &apiv1.RuleReply{Changed: uint32(len(r.Rules))}
	if len(r.Rules) == 2 {
		second := r.Rules[1]
		second.ShadowedBy = r.Rules[0].Id
		reply.Shadowed = 1
		reply.Some = []*apiv1.RuleShadow{{List: second.List, Id: second.Id, ShadowedBy: second.ShadowedBy}}
	}
	for _, rule := range r.Rules {
		s.Rules.Put(RuleKey{rule.List, rule.Id}, rule)
	}
	return reply, nil
}

func (s rules) Del(_ context.Context, r *apiv1.RuleDelRequest) (*apiv1.RuleReply, error) {
	s.Lock()
	defer s.Unlock()
	if err := s.begin("Rules.Del", r); err != nil {
		return nil, err
	}
	for _, rule := range r.Rules {
		if _, ok := s.Rules.Get(RuleKey{rule.List, rule.Id}); !ok {
			return nil, missing("rule.id", rule.Id)
		}
	}
	for _, rule := range r.Rules {
		s.Rules.Delete(RuleKey{rule.List, rule.Id})
	}
	return &apiv1.RuleReply{Changed: uint32(len(r.Rules))}, nil
}

func (s rules) List(_ context.Context, r *apiv1.RuleListRulesRequest, out apiv1.Rules_ListServer) error {
	return send(s.Server, "Rules.List", r, s.Rules.All,
		func(o *apiv1.Rule) bool { return given(r.List, o.List) && given(r.Id, o.Id) }, out)
}

func (s rules) Explain(_ context.Context, r *apiv1.RuleExplainRequest) (*apiv1.RuleExplainReply, error) {
	s.Lock()
	defer s.Unlock()
	if err := s.begin("Rules.Explain", r); err != nil {
		return nil, err
	}
	return &apiv1.RuleExplainReply{Action: apiv1.RuleAction_RULE_ACTION_ALLOW, List: "web", Id: 100,
		Rule: "100 allow --protocol tcp --destination-ports 80"}, nil
}
