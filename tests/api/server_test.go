// SPDX-License-Identifier: Apache-2.0

// Package api_test runs containerd's own ttrpc client against the API server of corelaned, in a program with methods
// whose answers are known: build/tests/api/api_test_server, or what CORELANE_API_TEST_SERVER names.
package api_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/wait"
)

type server struct {
	t    *testing.T
	path string
}

// start runs a server for one test. At its end it must stop cleanly: with status 0, all streams ended, the socket gone.
func start(t *testing.T, args ...string) *server {
	t.Helper()
	program := os.Getenv("CORELANE_API_TEST_SERVER")
	if program == "" {
		program = "../../build/tests/api/api_test_server"
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("the test server is not built (ninja -C build test-programs, or set CORELANE_API_TEST_SERVER): %v",
			err)
	}
	dir, err := os.MkdirTemp("/tmp", "corelane-ttrpc-") // t.TempDir() may be too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &server{t, filepath.Join(dir, "api.sock")}
	cmd := exec.Command(program, append([]string{s.path}, args...)...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ended with %v: %s", err, output.String())
		}
		if _, err := os.Stat(s.path); err == nil {
			t.Error("the server left its socket behind")
		}
	})
	eventually(t, "the server listens, and has closed the connection that asks", func() bool {
		c, err := net.Dial("unix", s.path)
		if err != nil {
			return false
		}
		defer func() { _ = c.Close() }()
		return c.(*net.UnixConn).CloseWrite() == nil && closed(c)
	})
	return s
}

func (s *server) dial() net.Conn {
	s.t.Helper()
	c, err := net.Dial("unix", s.path)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (s *server) client() *ttrpc.Client {
	s.t.Helper()
	c := ttrpc.NewClient(s.dial())
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// status asks the server for its memory, its open streams and the items they gave, over the given connection.
func (s *server) status(c *ttrpc.Client) *apiv1.Status {
	s.t.Helper()
	st, err := apiv1.NewSystemClient(c).GetStatus(short(s.t), &apiv1.Empty{})
	if err != nil {
		s.t.Fatal(err)
	}
	return st
}

func (s *server) wantStreams(c *ttrpc.Client, n uint64) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("%d open streams", n), func() bool { return s.status(c).Nexthops == n })
}

func short(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), wait.Patience)
	t.Cleanup(cancel)
	return ctx
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if err := wait.Patiently(t.Context(), func() (bool, error) { return ok(), nil }); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// request writes the frame that opens a stream, for clients that break ttrpc's rules.
func request(t *testing.T, c net.Conn, id uint32, service, method string, req proto.Message) {
	t.Helper()
	if _, err := c.Write(frame(t, id, service, method, req)); err != nil {
		t.Fatal(err)
	}
}

func frame(t *testing.T, id uint32, service, method string, req proto.Message) []byte {
	t.Helper()
	payload, err := proto.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	data, err := proto.Marshal(&ttrpc.Request{Service: service, Method: method, Payload: payload})
	if err != nil {
		t.Fatal(err)
	}
	header := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	header = binary.BigEndian.AppendUint32(header, id)
	return append(append(header, 1, 1), data...) // request, remote closed
}
