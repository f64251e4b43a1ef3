// SPDX-License-Identifier: Apache-2.0
package api_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/corelane/corelane/internal/api"
	"github.com/corelane/corelane/internal/api/apitest"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

var ctx = context.Background()

func TestCall(t *testing.T) {
	c := apitest.Start(t).Dial(t)
	vrf, err := api.Call(ctx, c, apiv1.NewVrfsClient, apiv1.VrfsClient.Add,
		&apiv1.VrfAddRequest{Vrf: &apiv1.Vrf{Name: "red"}})
	if err != nil || vrf.Name != "red" {
		t.Fatalf("add: %v, %v", vrf, err)
	}
	all, err := api.Collect(ctx, c, apiv1.NewVrfsClient, apiv1.VrfsClient.List, &apiv1.VrfListRequest{})
	if err != nil || len(all) != 2 || all[1].Name != "red" {
		t.Fatalf("list: %v, %v", all, err)
	}
}

// A text that cannot be sent is wrong input, and the daemon is not blamed for it.
func TestNotUTF8(t *testing.T) {
	c := apitest.Start(t).Dial(t)
	_, err := api.Call(ctx, c, apiv1.NewVrfsClient, apiv1.VrfsClient.Add,
		&apiv1.VrfAddRequest{Vrf: &apiv1.Vrf{Name: "\xff\xfe"}})
	var refused *api.Error
	if !errors.As(err, &refused) || refused.Field != "name" || refused.Code != codes.InvalidArgument {
		t.Errorf("%T: %v", err, err)
	}
}

func TestRefusal(t *testing.T) {
	s := apitest.Start(t)
	s.Refuse = func(string, proto.Message) error {
		return apitest.Refusal(codes.InvalidArgument,
			&apiv1.Error{Field: "vrf.name", Value: "a b", Valid: "up to 31 of A-Z",
				Message: "vrf.name 'a b': has a space", Index: 7})
	}
	c := s.Dial(t)
	_, err := api.Call(ctx, c, apiv1.NewVrfsClient, apiv1.VrfsClient.Add,
		&apiv1.VrfAddRequest{Vrf: &apiv1.Vrf{Name: "a b"}})
	var refused *api.Error
	if !errors.As(err, &refused) {
		t.Fatalf("got %T: %v", err, err)
	}
	want := api.Error{Field: "vrf.name", Value: "a b", Valid: "up to 31 of A-Z", Message: "vrf.name 'a b': has a space",
		Index: 7, Code: codes.InvalidArgument}
	if *refused != want {
		t.Errorf("got %+v", *refused)
	}
	if got := err.Error(); got != "vrf.name 'a b': has a space; valid: up to 31 of A-Z" {
		t.Errorf("text: %s", got)
	}
	err = api.Stream(ctx, c, apiv1.NewVrfsClient, apiv1.VrfsClient.List, &apiv1.VrfListRequest{},
		func(*apiv1.Vrf) error {
			return nil
		})
	if !errors.As(err, &refused) {
		t.Errorf("stream: got %T: %v", err, err)
	}
}

func TestNoDaemon(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "none")
	_, err := api.Dial(ctx, socket, "test")
	var gone *api.Unavailable
	if !errors.As(err, &gone) ||
		!strings.HasPrefix(err.Error(), "corelaned does not answer on "+socket+": is it running?") {
		t.Errorf("got %v", err)
	}
}

func TestOtherMajor(t *testing.T) {
	s := apitest.Start(t)
	s.Hello.Major = 9
	_, err := api.Dial(ctx, s.Socket, "test")
	if err == nil || !strings.Contains(err.Error(), "speaks version 9.0") {
		t.Errorf("got %v", err)
	}
}

func fill(s *apitest.Server, n int) {
	for i := range n {
		p := fmt.Sprintf("10.%d.%d.%d/32", i>>16&255, i>>8&255, i&255)
		s.Routes.Put(apitest.RouteKey{Vrf: "red", Prefix: p}, &apiv1.Route{Vrf: "red", Prefix: p, Nexthop: 1})
	}
}

// A reader that stops for longer than ttrpc's patience of a second still gets everything, and only a bounded number of
// messages waits for it. Its callback may make calls of its own meanwhile.
func TestSlowReader(t *testing.T) {
	const n = 30000
	s := apitest.Start(t)
	fill(s, n)
	c := s.Dial(t)
	got := 0
	err := api.Stream(ctx, c, apiv1.NewRoutesClient, apiv1.RoutesClient.List, &apiv1.RouteListRequest{},
		func(*apiv1.Route) error {
			if got++; got == 10 {
				time.Sleep(2500 * time.Millisecond)
				_, err := api.Call(ctx, c, apiv1.NewSystemClient, apiv1.SystemService.GetStatus, &apiv1.Empty{})
				return err
			}
			return nil
		})
	if err != nil || got != n {
		t.Errorf("%d of %d, %v", got, n, err)
	}
}

func TestStreamEndsEarly(t *testing.T) {
	s := apitest.Start(t)
	fill(s, 5000)
	c := s.Dial(t)
	before := runtime.NumGoroutine()
	stop := errors.New("enough")
	for range 10 {
		got := 0
		err := api.Stream(ctx, c, apiv1.NewRoutesClient, apiv1.RoutesClient.List, &apiv1.RouteListRequest{},
			func(*apiv1.Route) error {
				if got++; got == 5 {
					return stop
				}
				return nil
			})
		if err != stop || got != 5 {
			t.Fatalf("%d, %v", got, err)
		}
	}
	cctx, cancel := context.WithCancelCause(ctx)
	err := api.Stream(cctx, c, apiv1.NewRoutesClient, apiv1.RoutesClient.List, &apiv1.RouteListRequest{},
		func(*apiv1.Route) error {
			cancel(stop)
			return nil
		})
	if err != stop {
		t.Errorf("cancelled: %v", err)
	}
	if !settles(func() bool { return runtime.NumGoroutine() <= before+8 }) {
		t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
	}
}

func settles(ok func() bool) bool {
	for range 100 {
		if ok() {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

// A client outlives the daemon's restart: the call at hand fails, a later one connects anew.
func TestRestart(t *testing.T) {
	s := apitest.Start(t)
	c := s.Dial(t)
	s.Restart(t)
	call := func() error {
		_, err := api.Call(ctx, c, apiv1.NewSystemClient, apiv1.SystemService.GetStatus, &apiv1.Empty{})
		return err
	}
	if !settles(func() bool { return call() == nil }) {
		t.Errorf("still %v", call())
	}
}
