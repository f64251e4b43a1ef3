// SPDX-License-Identifier: Apache-2.0
package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/containerd/ttrpc"
	"google.golang.org/grpc/codes"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

func list(t *testing.T, c *ttrpc.Client, items int) apiv1.Routes_ListClient {
	t.Helper()
	stream, err := apiv1.NewRoutesClient(c).List(context.Background(), &apiv1.RouteListRequest{Vrf: fmt.Sprint(items)})
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// open starts a stream that the client may end, which the generated client cannot.
func open(t *testing.T, c *ttrpc.Client, service, method string, req any) ttrpc.ClientStream {
	t.Helper()
	stream, err := c.NewStream(context.Background(), &ttrpc.StreamDesc{StreamingClient: true, StreamingServer: true},
		service, method, req)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// A client that is slower than the server gets a million items, in order, and neither side's memory grows.
func TestStreamMillion(t *testing.T) {
	const items = 1_000_000
	s := start(t)
	c, other := s.client(), s.client()
	before := s.status(other)
	stream := list(t, c, items)
	var most, lead uint64
	var mem runtime.MemStats
	var heap uint64
	began := time.Now()
	for i := range items {
		route, err := stream.Recv()
		if err != nil {
			t.Fatalf("item %d: %v", i, err)
		}
		if route.Nexthop != uint32(i) {
			t.Fatalf("item %d is %v", i, route)
		}
		if i%1000 == 0 {
			time.Sleep(time.Millisecond)
		}
		if i%50_000 == 0 {
			st := s.status(other)
			most = max(most, st.MemoryBytes)
			lead = max(lead, st.RoutesIpv4-uint64(i))
			runtime.ReadMemStats(&mem)
			heap = max(heap, mem.HeapAlloc)
		}
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Fatalf("after the last item: %v", err)
	}
	d := time.Since(began)
	t.Logf("%d items in %v, %.0f/s; server memory %d KiB before, %d KiB at most; server at most %d items ahead; "+
		"client heap %d KiB",
		items, d.Round(time.Millisecond), items/d.Seconds(), before.MemoryBytes>>10, most>>10, lead, heap>>10)
	if most > before.MemoryBytes+4<<20 {
		t.Errorf("the server grew from %d to %d bytes", before.MemoryBytes, most)
	}
	if lead > 100_000 {
		t.Errorf("the server ran %d items ahead of its client", lead)
	}
	s.wantStreams(other, 0)
}

// stalled returns a client that has stopped reading in the middle of a stream, when the server gives it no more.
func (s *server) stalled(t *testing.T, other *ttrpc.Client) net.Conn {
	t.Helper()
	conn := s.dial()
	request(t, conn, 1, "corelane.v1.Routes", "List", &apiv1.RouteListRequest{Vrf: "100000000"})
	if _, err := io.CopyN(io.Discard, conn, 1<<20); err != nil {
		t.Fatal(err)
	}
	before := uint64(0)
	eventually(t, "the server gives no more items", func() bool {
		was := before
		before = s.status(other).RoutesIpv4
		return before == was
	})
	return conn
}

// A client that stops reading in the middle of a stream delays no other client and costs no memory.
func TestStall(t *testing.T) {
	s := start(t, "3600000")
	other := s.client()
	s.stalled(t, other)
	before := s.status(other)
	for range 100 {
		if err := lookup(short(t), other, "blue", "192.0.2.1"); err != nil {
			t.Fatal(err)
		}
	}
	after := s.status(other)
	if after.Nexthops != 1 || after.RoutesIpv4 != before.RoutesIpv4 || after.MemoryBytes > before.MemoryBytes+4<<20 {
		t.Errorf("%v, then %v", before, after)
	}
}

// It is disconnected after API_STALL, and not before.
func TestStallEnds(t *testing.T) {
	const stall = 1500 * time.Millisecond
	s := start(t, fmt.Sprint(stall.Milliseconds()))
	other := s.client()
	began := time.Now() // before the last byte that it reads
	conn := s.dial()
	request(t, conn, 1, "corelane.v1.Routes", "List", &apiv1.RouteListRequest{Vrf: "100000000"})
	// EOF: it has been disconnected already, because this test did not run for so long.
	if _, err := io.CopyN(io.Discard, conn, 1<<20); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	s.wantStreams(other, 0)
	if d := time.Since(began); d < stall-100*time.Millisecond {
		t.Errorf("disconnected after %v", d)
	}
	if n, err := io.Copy(io.Discard, conn); err != nil || n > 1<<20 {
		t.Errorf("%d bytes were on their way, then %v", n, err)
	}
}

func TestCancel(t *testing.T) {
	s := start(t)
	c := s.client()
	stream := open(t, c, "corelane.v1.Routes", "List", &apiv1.RouteListRequest{Vrf: "100000000"})
	var route apiv1.Route
	for range 10 {
		if err := stream.RecvMsg(&route); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	var err error
	for err == nil { // items that were under way
		err = stream.RecvMsg(&route)
	}
	wantStatus(t, err, codes.Canceled, "cancelled")
	s.wantStreams(c, 0)

	// A client whose context ends closes its connection: ttrpc has no message for it.
	ctx, cancel := context.WithCancel(context.Background())
	gone := s.client()
	endless, err := apiv1.NewRoutesClient(gone).List(ctx, &apiv1.RouteListRequest{Vrf: "100000000"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := endless.Recv(); err != nil {
		t.Fatal(err)
	}
	s.wantStreams(c, 1)
	cancel()
	_ = gone.Close()
	s.wantStreams(c, 0)
}

// A stream without items waits until it is woken; the loop does not spin meanwhile.
func TestWaitingStream(t *testing.T) {
	s := start(t)
	c := s.client()
	stream := open(t, c, "corelane.v1.Capture", "Packets", &apiv1.CaptureRequest{})
	var p apiv1.CapturedPacket
	for range 5 {
		if err := stream.RecvMsg(&p); err != nil {
			t.Fatal(err)
		}
	}
	if err := lookup(short(t), c, "blue", "192.0.2.1"); err != nil { // on the same connection
		t.Fatal(err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	s.wantStreams(c, 0)
}

func TestTooManyStreams(t *testing.T) {
	s := start(t)
	c := s.client()
	for range 128 {
		open(t, c, "corelane.v1.Capture", "Packets", &apiv1.CaptureRequest{})
	}
	over := open(t, c, "corelane.v1.Capture", "Packets", &apiv1.CaptureRequest{})
	wantStatus(t, over.RecvMsg(&apiv1.CapturedPacket{}), codes.ResourceExhausted, "128 open streams")
	other := s.client()
	s.wantStreams(other, 128)
	_ = c.Close()
	s.wantStreams(other, 0)
}

// Ten clients at once get their lists whole.
func TestStreamsAtOnce(t *testing.T) {
	const clients, items = 10, 50_000
	s := start(t)
	errs := make(chan error)
	for range clients {
		stream := list(t, s.client(), items)
		go func() {
			n := 0
			for {
				route, err := stream.Recv()
				if errors.Is(err, io.EOF) && n == items {
					errs <- nil
					return
				}
				if err != nil || route.Nexthop != uint32(n) {
					errs <- fmt.Errorf("item %d: %v %v", n, route, err)
					return
				}
				n++
			}
		}()
	}
	for range clients {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
