// SPDX-License-Identifier: Apache-2.0
package api_test

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// closedWithin tells whether the server closes the connection in this time. It reads what comes before.
func closedWithin(c net.Conn, d time.Duration) bool {
	_ = c.SetReadDeadline(time.Now().Add(d))
	_, err := io.Copy(io.Discard, c)
	return err == nil // io.EOF
}

// A user may open 128 connections; the 129th is refused.
func TestConnectionsOfOneUser(t *testing.T) {
	s := start(t)
	var all []net.Conn
	for range 127 {
		all = append(all, s.dial())
	}
	s.status(s.client()) // the 128th
	if !closedWithin(s.dial(), 10*time.Second) {
		t.Error("one more connection is accepted")
	}
	_ = all[0].Close()
	eventually(t, "a connection is accepted again", func() bool {
		c := s.dial()
		defer func() { _ = c.Close() }()
		_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		_, err := c.Read(make([]byte, 1))
		return err != io.EOF
	})
}

// Clients that stop in the middle of a message, or that never send one, are disconnected.
func TestHalfMessages(t *testing.T) {
	s := start(t, "60000", "400")
	silent, half, long := s.dial(), s.dial(), s.dial()
	_, _ = half.Write([]byte{0, 0, 1})
	_, _ = long.Write(append([]byte{0, 0x3f, 0, 0, 0, 0, 0, 1, 1, 0}, make([]byte, 1<<20)...)) // 4 MB were promised
	for name, c := range map[string]net.Conn{"silent": silent, "half": half, "long": long} {
		if !closedWithin(c, 10*time.Second) {
			t.Errorf("%s is not disconnected", name)
		}
	}
}

// A well-behaved client gets its answers while 100 connections of others do what they can.
func TestHostileClients(t *testing.T) {
	s := start(t)
	good := s.client()
	s.status(good)
	for i := range 100 {
		c := s.dial()
		switch i % 5 {
		case 0: // streams without end, which it reads
			for id := uint32(1); id < 9; id += 2 {
				request(t, c, id, "corelane.v1.Routes", "List", &apiv1.RouteListRequest{Vrf: "1000000000"})
			}
			go func() { _, _ = io.Copy(io.Discard, c) }()
		case 1: // the same, and it does not read
			for id := uint32(1); id < 9; id += 2 {
				request(t, c, id, "corelane.v1.Routes", "List", &apiv1.RouteListRequest{Vrf: "1000000000"})
			}
		case 2: // half of a message
			_, _ = c.Write(append([]byte{0, 0x3f, 0, 0, 0, 0, 0, 1, 1, 0}, make([]byte, 100<<10)...))
		case 3: // requests as fast as possible
			go func() {
				for id := uint32(1); ; id += 2 {
					frame := []byte{0, 0, 0, 0, byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id), 1, 0}
					if _, err := c.Write(frame); err != nil {
						return
					}
				}
			}()
			go func() { _, _ = io.Copy(io.Discard, c) }()
		case 4: // garbage
			_, _ = c.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
		}
	}
	var times []time.Duration
	for range 100 {
		begin := time.Now()
		s.status(good)
		times = append(times, time.Since(begin))
	}
	slices.Sort(times)
	t.Logf("answers took %v in the middle, %v at most", times[50], times[99])
	if times[50] > 100*time.Millisecond {
		t.Errorf("half of the answers took more than %v", times[50])
	}
}
