// SPDX-License-Identifier: Apache-2.0
package api_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/wait"
)

// closed tells whether the server closes the connection. It reads what comes before.
func closed(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(wait.Patience))
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
	if !closed(s.dial()) {
		t.Error("one more connection is accepted")
	}
	_ = all[0].Close()
	eventually(t, "a connection is accepted again", func() bool {
		c := ttrpc.NewClient(s.dial())
		defer func() { _ = c.Close() }()
		_, err := apiv1.NewSystemClient(c).GetStatus(short(t), &apiv1.Empty{})
		return err == nil
	})
}

// Clients that stop in the middle of a message, or that never send one, are disconnected.
func TestHalfMessages(t *testing.T) {
	s := start(t, "60000", "400")
	silent, half, long := s.dial(), s.dial(), s.dial()
	_, _ = half.Write([]byte{0, 0, 1})
	_, _ = long.Write(append([]byte{0, 0x3f, 0, 0, 0, 0, 0, 1, 1, 0}, make([]byte, 1<<20)...)) // 4 MB were promised
	for name, c := range map[string]net.Conn{"silent": silent, "half": half, "long": long} {
		if !closed(c) {
			t.Errorf("%s is not disconnected", name)
		}
	}
}

const (
	turnItems = 256 // API_TURN_ITEMS: what the streams of a connection may give in one turn
	asked     = 10  // questions that are sent at once
)

// A well-behaved client gets its turns while 100 connections of others do what they can. Its questions arrive together,
// and a turn answers at least one of them, so that others get no more turns than it has questions, and two while the
// first one begins and the last one ends.
func TestHostileClients(t *testing.T) {
	s := start(t)
	good := s.dial()
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
	const streaming = 40 // connections of the first two kinds
	most := uint64(0)
	for n := range 100 {
		given := answers(t, good, 1+2*asked*uint32(n))
		most = max(most, given[asked-1]-given[0])
	}
	t.Logf("others got at most %d items during %d answers", most, asked)
	if most > (asked+2)*streaming*turnItems {
		t.Errorf("others got %d items during %d answers", most, asked)
	}
}

// answers asks for the status several times at once. It returns how many items all streams had given at each answer.
func answers(t *testing.T, c net.Conn, id uint32) (given []uint64) {
	t.Helper()
	var all bytes.Buffer
	for n := range uint32(asked) {
		all.Write(frame(t, id+2*n, "corelane.v1.System", "GetStatus", &apiv1.Empty{}))
	}
	_ = c.SetDeadline(time.Now().Add(wait.Patience))
	if _, err := c.Write(all.Bytes()); err != nil {
		t.Fatal(err)
	}
	for n := range uint32(asked) {
		header := make([]byte, 10)
		if _, err := io.ReadFull(c, header); err != nil {
			t.Fatalf("answer %d: %v", n, err)
		}
		body := make([]byte, binary.BigEndian.Uint32(header))
		if _, err := io.ReadFull(c, body); err != nil {
			t.Fatalf("answer %d: %v", n, err)
		}
		var answer ttrpc.Response
		var status apiv1.Status
		if err := errors.Join(proto.Unmarshal(body, &answer), proto.Unmarshal(answer.Payload, &status)); err != nil ||
			binary.BigEndian.Uint32(header[4:]) != id+2*n || status.Pid == 0 {
			t.Fatalf("answer %d: % x, %v, %v", n, header, &answer, err)
		}
		given = append(given, status.RoutesIpv4)
	}
	return given
}
