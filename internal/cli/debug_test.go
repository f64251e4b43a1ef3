// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/corelane/corelane/internal/api/apitest"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// The installed daemon has no such service.
func TestDebugOfDaemonWithout(t *testing.T) {
	s := fixture(t)
	s.Refuse = func(string, proto.Message) error {
		return apitest.Refusal(codes.Unimplemented, &apiv1.Error{Field: "service", Value: "corelane.v1.Debug",
			Message: "service 'corelane.v1.Debug': is not a service of this daemon"})
	}
	const want = "debug: this corelaned is built without fault injection; valid: bin/corelaned of a build tree, " +
		"started with --allow-debug\n"
	for _, args := range [][]string{{"delay", "--worker", "0", "--us", "5"}, {"shootdowns", "--per-second", "5"},
		{"faults", "--per-second", "5"}} {
		got := run(s, "", append([]string{"debug"}, args...)...)
		if got != (result{"", want, exitUsage}) {
			t.Errorf("%v: %+v", args, got)
		}
	}
}
