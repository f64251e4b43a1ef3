// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/input"
)

func newDebugCmd(a *app) *cobra.Command {
	cmd := noun("debug", "Inject faults into a daemon of a test or lab", newDebugDelay(a), newDebugForbiddenCall(a),
		newDebugShootdowns(a), newDebugFaults(a))
	cmd.Long = `Inject faults into the daemon, to see how it behaves when it is overloaded. Only the corelaned of a
build tree (bin/corelaned) can do that, and only when it was started with --allow-debug; the installed one is built
without.`
	return cmd
}

// debugCall replaces the error of a daemon that has no such service by one that says what to do.
func debugCall[Req any](ctx context.Context, a *app, method func(apiv1.DebugService, context.Context,
	Req) (*apiv1.Empty, error), req Req) error {
	done, err := call(ctx, a, apiv1.NewDebugClient, method, req)
	if refused := new(api.Error); errors.As(err, &refused) && refused.Code == codes.Unimplemented {
		return input.Errorf("debug", "bin/corelaned of a build tree, started with --allow-debug",
			"this corelaned is built without fault injection")
	}
	return a.done(done, err)
}

func newDebugDelay(a *app) *cobra.Command {
	req := &apiv1.DebugDelayRequest{}
	flags := []fieldFlag{
		{flag: "worker", help: "worker that is to be slow", names: workerNames},
		{flag: "us", help: "microseconds to add to each of its loops; 0 ends it"},
	}
	cmd := verb("delay", "Make each loop of a worker take longer", `  corelane debug delay --worker 0 --us 1000
  corelane debug delay --worker 0 --us 0`,
		func(ctx context.Context, _ []string) error {
			return debugCall(ctx, a, apiv1.DebugService.Delay, req)
		})
	a.bind(cmd, req, flags)
	for _, f := range flags {
		required(cmd, f.flag)
	}
	return cmd
}

func newDebugForbiddenCall(a *app) *cobra.Command {
	req := &apiv1.DebugForbiddenCallRequest{}
	worker := fieldFlag{flag: "worker", help: "worker that makes the call", names: workerNames}
	cmd := verb("forbidden-call", "Let a worker make a system call that its filter does not allow",
		"  corelane debug forbidden-call --worker 0",
		func(ctx context.Context, _ []string) error {
			return debugCall(ctx, a, apiv1.DebugService.ForbiddenCall, req)
		})
	cmd.Long = `Let a worker make a system call that its filter does not allow. The daemon then writes a line that names
the thread and the call, and ends by the signal SIGSYS. Without a filter (corelaned --system-calls) nothing happens.`
	a.bind(cmd, req, []fieldFlag{worker})
	required(cmd, worker.flag)
	return cmd
}

func newDebugShootdowns(a *app) *cobra.Command {
	return newDebugDisturb(a, apiv1.Disturbance_DISTURBANCE_SHOOTDOWNS, "shootdowns",
		"Let a service thread interrupt the workers by TLB shootdowns",
		`Let the thread svc-debug change the protection of a page of memory repeatedly. Each time the kernel
interrupts all CPUs that run threads of the daemon, including workers, because their TLBs may be stale.`)
}

func newDebugFaults(a *app) *cobra.Command {
	return newDebugDisturb(a, apiv1.Disturbance_DISTURBANCE_FAULTS, "faults",
		"Let a service thread discard the program's pages",
		`Let the thread svc-debug discard the pages of the daemon's program and libraries repeatedly, as a host does
that runs out of memory. Each time the workers fault on the code that they execute next. Nothing is read from a disk:
the pages are still in the kernel's cache.`)
}

func newDebugDisturb(a *app, what apiv1.Disturbance, name, short, long string) *cobra.Command {
	req := &apiv1.DebugDisturbRequest{What: what}
	flags := []fieldFlag{{flag: "per-second", help: "times per second; 0 ends it"}}
	cmd := verb(name, short, fmt.Sprintf("  corelane debug %[1]s --per-second 2000\n  corelane debug %[1]s "+
		"--per-second 0", name),
		func(ctx context.Context, _ []string) error {
			return debugCall(ctx, a, apiv1.DebugService.Disturb, req)
		})
	cmd.Long = long
	a.bind(cmd, req, flags)
	required(cmd, flags[0].flag)
	return cmd
}
