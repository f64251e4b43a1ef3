// SPDX-License-Identifier: Apache-2.0
package apitest

import (
	"context"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

type threads struct{ *Server }

func (s threads) List(_ context.Context, r *apiv1.ThreadListRequest, out apiv1.Threads_ListServer) error {
	return send(s.Server, "Threads.List", r, slice(s.Server.Threads), nil, out)
}

type events struct{ *Server }

func (s events) List(_ context.Context, r *apiv1.EventListRequest, out apiv1.Events_ListServer) error {
	return send(s.Server, "Events.List", r, slice(s.Server.Events), func(e *apiv1.Event) bool {
		return e.Number > r.After && e.Severity >= r.Severity && given(r.Kind, e.Kind)
	}, out)
}

func (s events) Kinds(_ context.Context, r *apiv1.Empty, out apiv1.Events_KindsServer) error {
	return send(s.Server, "Events.Kinds", r, slice(s.Server.Kinds), nil, out)
}
