// SPDX-License-Identifier: Apache-2.0
package apitest

import (
	"context"

	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
)

// fleet is the agent's service as far as tests ask it: the other methods are not there.
type fleet struct {
	*Server
	agentv1.FleetService
}

func (s fleet) WhyNot(_ context.Context, req *agentv1.WhyNotRequest) (*agentv1.WhyNotReply, error) {
	s.Lock()
	defer s.Unlock()
	if err := s.begin("Fleet.WhyNot", req); err != nil {
		return nil, err
	}
	return &agentv1.WhyNotReply{Stages: s.Stages}, nil
}
