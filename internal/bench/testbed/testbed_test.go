// SPDX-License-Identifier: Apache-2.0
package testbed

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/router"
	"github.com/corelane/corelane/internal/bench/scenario"
)

// made records the order in which its parts are stopped.
type made struct {
	router.Router
	router.Instance
	order *[]string
	fails error
}

func (m made) Start(context.Context, *router.Env, *scenario.Setup) (router.Instance, error) {
	return m, m.fails
}
func (m made) Stop() error                     { *m.order = append(*m.order, "router"); return nil }
func (m made) Devices() []*apiv1.GeneratorPort { return []*apiv1.GeneratorPort{{Name: "device"}} }

type traffic struct {
	Generator
	order *[]string
	fails error
	ports []*apiv1.GeneratorPort
}

func (g *traffic) Configure(_ context.Context, p *apiv1.GeneratorProfile) error {
	g.ports = p.Ports
	return g.fails
}
func (g *traffic) WaitUp(context.Context, time.Duration) error { return nil }
func (g *traffic) Close() error {
	*g.order = append(*g.order, "generator")
	return g.fails
}

func TestBed(t *testing.T) {
	failed := errors.New("failed")
	for _, c := range []struct {
		name               string
		router, generator  error
		order              string
		errAtEnd, noRouter bool
	}{
		{"all of it", nil, nil, "router generator", false, false},
		{"a generator that fails", nil, failed, "router generator", true, false},
		{"a router that fails", failed, nil, "", false, true},
	} {
		b, err := New("test")
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		ctx, g := context.Background(), &traffic{order: &order, fails: c.generator}
		err = b.StartRouter(ctx, made{order: &order, fails: c.router}, &router.Env{}, nil)
		if !errors.Is(err, c.router) {
			t.Errorf("%s: start: %v", c.name, err)
		}
		if !c.noRouter {
			if err := b.Connect(ctx, g, &apiv1.GeneratorProfile{}); !errors.Is(err, c.generator) || len(g.ports) != 1 {
				t.Errorf("%s: connect: %v, ports %v", c.name, err, g.ports)
			}
		}
		if err := b.Close(); (err != nil) != c.errAtEnd || strings.Join(order, " ") != c.order {
			t.Errorf("%s: close: %v, %v", c.name, err, order)
		}
		if _, err := os.Stat(b.Dir); !os.IsNotExist(err) {
			t.Errorf("%s: the folder is left: %v", c.name, err)
		}
		if n := len(order); b.Close() != nil || len(order) != n {
			t.Errorf("%s: closed twice: %v", c.name, order)
		}
	}
	if err := (*Bed)(nil).Close(); err != nil {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	good := &apiv1.GeneratorWindow{Sent: 4000, Received: 4000}
	bad := &apiv1.GeneratorWindow{Sent: 4000, Received: 3900, Lost: 100, Misplaced: 2}
	for _, c := range []struct {
		windows []*apiv1.GeneratorWindow
		ok      bool
	}{
		{[]*apiv1.GeneratorWindow{good}, true}, {[]*apiv1.GeneratorWindow{bad, {}, good}, true},
		{[]*apiv1.GeneratorWindow{bad, bad, bad, bad, bad}, false},
	} {
		n := 0
		err := Check(context.Background(), func(context.Context, *apiv1.GeneratorTrial) (*apiv1.GeneratorWindow,
			error) {
			n++
			return c.windows[n-1], nil
		})
		if (err == nil) != c.ok || n != len(c.windows) {
			t.Errorf("%v after %d trials", err, n)
		}
	}
	spec := &apiv1.GeneratorTrial{RealTime: []int32{1, 2}}
	if CheckRealTime(spec, &apiv1.GeneratorWindow{RealTime: 1}) == nil ||
		CheckRealTime(spec, &apiv1.GeneratorWindow{RealTime: 2}) != nil {
		t.Error("real-time priority")
	}
}
