// SPDX-License-Identifier: Apache-2.0
package apitest

import (
	"context"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

type debug struct{ *Server }

func (s debug) Delay(_ context.Context, r *apiv1.DebugDelayRequest) (*apiv1.Empty, error) {
	_, err := set(s.Server, &s.Workers, "Debug.Delay", "worker", r, r.Worker, &apiv1.Worker{}, nil)
	return &apiv1.Empty{}, err
}

func (s debug) ForbiddenCall(_ context.Context, r *apiv1.DebugForbiddenCallRequest) (*apiv1.Empty, error) {
	_, err := set(s.Server, &s.Workers, "Debug.ForbiddenCall", "worker", r, r.Worker, &apiv1.Worker{}, nil)
	return &apiv1.Empty{}, err
}

func (s debug) Disturb(_ context.Context, r *apiv1.DebugDisturbRequest) (*apiv1.Empty, error) {
	s.Lock()
	defer s.Unlock()
	return &apiv1.Empty{}, s.begin("Debug.Disturb", r)
}
