// SPDX-License-Identifier: Apache-2.0
package api_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/ttrpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/wait"
)

func lookup(ctx context.Context, c *ttrpc.Client, vrf, address string) error {
	route, err := apiv1.NewRoutesClient(c).Lookup(ctx, &apiv1.RouteLookupRequest{Vrf: vrf, Address: address})
	if err != nil {
		return err
	}
	if route.Vrf != vrf || route.Prefix != address+"/32" {
		return fmt.Errorf("asked for %s in %s, got %v", address, vrf, route)
	}
	return nil
}

func wantStatus(t *testing.T, err error, code codes.Code, word string) *status.Status {
	t.Helper()
	st, ok := status.FromError(err)
	if !ok || st.Code() != code || !strings.Contains(st.Message(), word) {
		t.Fatalf("got %v, want %v with %q", err, code, word)
	}
	return st
}

func TestUnary(t *testing.T) {
	s := start(t)
	c := s.client()
	md := ttrpc.MD{}
	md.Set("a", "key that nobody asked for", "twice") // metadata and a timeout in the request
	if err := lookup(ttrpc.WithMetadata(short(t), md), c, "blue ü", "192.0.2.1"); err != nil {
		t.Fatal(err)
	}
	hello, err := apiv1.NewSystemClient(c).Hello(short(t), &apiv1.HelloRequest{Major: 1})
	if err != nil || hello.Major != 1 {
		t.Fatal(hello, err)
	}
	large := strings.Repeat("x", 2_000_000)
	if err := lookup(short(t), c, large, "192.0.2.1"); err != nil {
		t.Fatal(err)
	}
}

func TestTypedError(t *testing.T) {
	s := start(t)
	c := s.client()
	routes := []*apiv1.Route{{Vrf: "red", Prefix: "10.0.0.0/24", Nexthop: 1},
		{Vrf: "red", Prefix: "2001:db8::1/64", Nexthop: 1}}
	_, err := apiv1.NewRoutesClient(c).Add(short(t), &apiv1.RouteAddRequest{Routes: routes})
	st := wantStatus(t, err, codes.InvalidArgument, "host bits")
	want := &apiv1.Error{Field: "route.prefix", Value: "2001:db8::1/64", Valid: "2001:db8::/64", Index: 1,
		Message: st.Message()}
	if d := st.Details(); len(d) != 1 || !proto.Equal(d[0].(proto.Message), want) {
		t.Fatalf("details are %v, want %v", d, want)
	}
	reply, err := apiv1.NewRoutesClient(c).Add(short(t), &apiv1.RouteAddRequest{Routes: routes[:1]})
	if err != nil || reply.Changed != 1 {
		t.Fatal(reply, err)
	}
	_, err = apiv1.NewSystemClient(c).Hello(short(t), &apiv1.HelloRequest{Major: 7})
	wantStatus(t, err, codes.FailedPrecondition, "major '7.0'")
}

func TestRefused(t *testing.T) {
	s := start(t)
	c := s.client()
	var out apiv1.Empty
	wantStatus(t, c.Call(short(t), "corelane.v1.Moon", "Fly", &apiv1.Empty{}, &out), codes.Unimplemented,
		"corelane.v1.Moon")
	wantStatus(t, c.Call(short(t), "corelane.v1.Routes", "Fly", &apiv1.Empty{}, &out), codes.Unimplemented, "Fly")
	// a number where a text must be
	err := c.Call(short(t), "corelane.v1.Routes", "Lookup", &apiv1.HelloRequest{Major: 1}, &out)
	wantStatus(t, err, codes.InvalidArgument, "RouteLookupRequest")
	err = c.Call(short(t), "corelane.v1.Routes", "List", &apiv1.RouteListRequest{}, &out)
	wantStatus(t, err, codes.InvalidArgument, "stream")
	err = c.Call(short(t), "corelane.v1.Routes", "Lookup", wrapperspb.Bytes([]byte{0xff}), &out)
	wantStatus(t, err, codes.InvalidArgument, "vrf '?': is not UTF-8")
	if err := lookup(short(t), c, "blue", "192.0.2.1"); err != nil {
		t.Fatal(err)
	}
}

// The server refuses an invalid message with an error, and the connection continues.
func TestOversized(t *testing.T) {
	s := start(t)
	conn := s.dial()
	const length = 4<<20 + 1
	frame := make([]byte, 10+length)
	binary.BigEndian.PutUint32(frame, length)
	binary.BigEndian.PutUint32(frame[4:], 1)
	frame[8] = 1
	go func() { _, _ = conn.Write(frame) }()
	header := make([]byte, 10)
	if _, err := io.ReadFull(conn, header); err != nil || header[7] != 1 || header[8] != 2 {
		t.Fatal(header, err)
	}
	body := make([]byte, binary.BigEndian.Uint32(header))
	if _, err := io.ReadFull(conn, body); err != nil || !strings.Contains(string(body), "longer than 4 MiB") {
		t.Fatalf("%q %v", body, err)
	}
}

// A client gets its answer while garbage has arrived on another connection, which stays open meanwhile.
func TestGarbage(t *testing.T) {
	s := start(t)
	c := s.client()
	rng := rand.New(rand.NewSource(1))
	for i := range 300 {
		conn := s.dial()
		junk := make([]byte, 1+rng.Intn(200_000))
		rng.Read(junk)
		if i%3 == 0 {
			junk[0], junk[1] = 0, 0 // a plausible length
		}
		first := min(len(junk), 1000)
		_, _ = conn.Write(junk[:first])
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = conn.Write(junk[first:]) })
		wg.Go(func() { _, _ = io.Copy(io.Discard, conn) })
		if err := lookup(short(t), c, "blue", "192.0.2.1"); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		wg.Wait()
	}
	http := s.dial()
	_, _ = http.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	_ = http.SetReadDeadline(time.Now().Add(wait.Patience))
	if _, err := http.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatalf("what is not ttrpc must be disconnected: %v", err)
	}
}

func concurrent(t *testing.T, connections, requests int) {
	s := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	clients := make([]*ttrpc.Client, connections)
	for i := range clients {
		clients[i] = s.client()
	}
	var wg sync.WaitGroup
	answered := make(chan struct{}, requests)
	began := time.Now()
	for i := range requests {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := lookup(ctx, clients[i%connections], fmt.Sprint("vrf", i), "192.0.2.1"); err != nil {
				t.Errorf("request %d: %v", i, err)
			}
			answered <- struct{}{}
		}()
	}
	for range requests { // all of them may take long, the next one may not
		select {
		case <-answered:
		case <-time.After(wait.Patience):
			cancel()
		}
	}
	wg.Wait()
	d := time.Since(began)
	t.Logf("%d requests at once on %d connections: %v, %.0f/s, server memory %d KiB", requests, connections,
		d.Round(time.Millisecond), float64(requests)/d.Seconds(), s.status(clients[0]).MemoryBytes>>10)
}

func TestConcurrentOneConnection(t *testing.T)   { concurrent(t, 1, 10_000) }
func TestConcurrentConnections(t *testing.T)     { concurrent(t, 10, 10_000) }
func TestRequestsOnManyConnections(t *testing.T) { concurrent(t, 128, 10_000) } // of one user
