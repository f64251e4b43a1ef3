// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"

	"github.com/containerd/ttrpc"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/corelane/corelane/internal/cli/protoflag"
)

// listOf makes a fetch of a List call. Flags may write into req until the fetch runs.
func listOf[S, Req, T any, R interface{ Recv() (T, error) }](a *app, service func(*ttrpc.Client) S,
	method func(S, context.Context, Req) (R, error), req Req) fetch[T] {
	return func(ctx context.Context, each func(T) error) error { return stream(ctx, a, service, method, req, each) }
}

// where keeps the objects that match.
func where[T any](f fetch[T], match func(T) bool) fetch[T] {
	return func(ctx context.Context, each func(T) error) error {
		return f(ctx, func(obj T) error {
			if !match(obj) {
				return nil
			}
			return each(obj)
		})
	}
}

// named turns a list into names for completion.
func named[T any](f func(a *app) fetch[T], name func(T) string) names {
	return func(ctx context.Context, a *app) ([]string, error) {
		objs, err := all(ctx, f(a))
		var names []string
		for _, obj := range objs {
			names = append(names, name(obj))
		}
		return names, err
	}
}

func newList[T proto.Message](a *app, short, example string, l listing[T], f fetch[T]) *cobra.Command {
	return a.watchable(verb("list", short, example, func(ctx context.Context, _ []string) error {
		return l.rows(ctx, a, f)
	}))
}

// newShow makes "show ARG", which shows the first object that find yields.
func newShow[T proto.Message](a *app, arg, short, example string, n names,
	find func(arg string) (fetch[T], error)) *cobra.Command {
	var cmd *cobra.Command
	cmd = verb("show "+arg, short, example, func(ctx context.Context, args []string) error {
		f, err := find(args[0])
		if err != nil {
			return err
		}
		return details(ctx, a, func(ctx context.Context) (T, error) {
			return one(ctx, f, cmd.Parent().Name(), args[0], "see '"+cmd.Parent().CommandPath()+" list'")
		})
	})
	cmd.ValidArgsFunction = a.complete(n)
	return a.watchable(cmd)
}

// newDel makes "del ARG...": del is called for each until one is refused.
func newDel(a *app, arg, short, example string, n names,
	del func(ctx context.Context, arg string) error) *cobra.Command {
	cmd := verb("del "+arg+"...", short, example, func(ctx context.Context, args []string) error {
		for _, arg := range args {
			if err := del(ctx, arg); err != nil {
				return err
			}
		}
		return nil
	})
	cmd.ValidArgsFunction = a.complete(n)
	return cmd
}

// byNumber makes the function of newDel for objects whose key is a number, which a field of msg takes; argument is its
// name on the command line.
func byNumber(argument string, msg proto.Message, field protoreflect.Name,
	del func(ctx context.Context, number uint32) error) func(ctx context.Context, arg string) error {
	return func(ctx context.Context, arg string) error {
		n, err := protoflag.ParseField(argument, arg, msg, field)
		if err != nil {
			return err
		}
		return del(ctx, n)
	}
}
