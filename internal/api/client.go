// SPDX-License-Identifier: Apache-2.0

// Package api talks to corelaned: protobuf messages over ttrpc on a Unix socket, as api/*.proto define them.
//
//	c, err := api.Dial(ctx, api.DefaultSocket, "corelane 1.0")
//	port, err := api.Call(ctx, c, apiv1.NewPortsClient, apiv1.PortsClient.Add, &apiv1.PortAddRequest{...})
//	err = api.Stream(ctx, c, apiv1.NewPortsClient, apiv1.PortsClient.List, &apiv1.PortListRequest{},
//		func(p *apiv1.Port) error { ... })
//
// Errors are *Error (the daemon refused), *Unavailable (no daemon), or the cause of the context's end.
package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

const (
	DefaultSocket = "/run/corelane/corelaned.sock"
	AgentSocket   = "/run/corelane/agent.sock" // of corelane-agent, whose services are those of api/agent/*.proto
	Major         = 1                          // version of the API; both sides must have the same
	Minor         = 0
	helloTimeout  = 10 * time.Second // a daemon that is alive answers in far less
	maxIdle       = 4
)

// Client may be used by several goroutines. It opens connections as it needs them.
type Client struct {
	Server *apiv1.HelloReply // from the last Hello

	socket, name string
	owner        string // of what it adds; empty: "api"
	mu           sync.Mutex
	idle         []*conn
	closed       bool
}

// DefaultOwner is the owner of what clients add that name none.
const DefaultOwner = "api"

// Dial connects and says Hello. name is the client's, for the daemon's log.
func Dial(ctx context.Context, socket, name string) (*Client, error) {
	return DialAs(ctx, socket, name, "")
}

// DialAs does the same for an owner: what the client adds belongs to it, and the client changes nothing else.
func DialAs(ctx context.Context, socket, name, owner string) (*Client, error) {
	c := &Client{socket: socket, name: name, owner: owner}
	first, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	c.put(first)
	return c, nil
}

// Owner is the owner of what the client adds.
func (c *Client) Owner() string { return cmp.Or(c.owner, DefaultOwner) }

// Close ends all connections that are not in use.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, cn := range c.idle {
		cn.close()
	}
	c.idle = nil
	return nil
}

func (c *Client) open(ctx context.Context) (*conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "unix", c.socket)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &Unavailable{c.socket, err}
	}
	cn := newConn(nc)
	if err := c.hello(ctx, cn); err != nil {
		cn.close()
		return nil, err
	}
	return cn, nil
}

func (c *Client) hello(ctx context.Context, cn *conn) error {
	hctx, cancel := context.WithTimeoutCause(ctx, helloTimeout,
		&Unavailable{c.socket, fmt.Errorf("no answer within %v", helloTimeout)})
	defer cancel()
	reply, err := apiv1.NewSystemClient(cn.Client).Hello(hctx, &apiv1.HelloRequest{Major: Major, Minor: Minor,
		Client: c.name, Owner: c.owner})
	if err != nil {
		return convert(hctx, c.socket, err)
	}
	if reply.Major != Major {
		return fmt.Errorf("corelaned %s on %s speaks version %d.%d of the API, this program %d.%d: install the same "+
			"release of both",
			reply.Version, c.socket, reply.Major, reply.Minor, Major, Minor)
	}
	c.mu.Lock()
	c.Server = reply
	c.mu.Unlock()
	return nil
}

func (c *Client) get(ctx context.Context) (*conn, error) {
	for {
		c.mu.Lock()
		n := len(c.idle)
		if n == 0 {
			c.mu.Unlock()
			return c.open(ctx)
		}
		cn := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		if !cn.dead.Load() {
			return cn, nil
		}
		cn.close()
	}
}

func (c *Client) put(cn *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.idle) >= maxIdle {
		cn.close()
		return
	}
	c.idle = append(c.idle, cn)
}

// release returns a connection to the pool after a call that ended with err, or closes it if it may be out of step.
func (c *Client) release(cn *conn, err error) {
	var refused *Error
	if err == nil || errors.As(err, &refused) {
		c.put(cn)
		return
	}
	cn.close()
}

// Call makes one unary request: service is the generated constructor, method the generated method expression.
func Call[S, Req, Resp any](ctx context.Context, c *Client, service func(*ttrpc.Client) S,
	method func(S, context.Context, Req) (Resp, error), req Req) (Resp, error) {
	var none Resp
	cn, err := c.get(ctx)
	if err != nil {
		return none, err
	}
	resp, err := method(service(cn.Client), ctx, req)
	if m, ok := any(req).(proto.Message); ok && err != nil {
		if text := checkText(m.ProtoReflect()); text != nil { // it was not sent
			c.release(cn, nil)
			return none, text
		}
	}
	err = convert(ctx, c.socket, err)
	c.release(cn, err)
	if err != nil {
		return none, err
	}
	return resp, nil
}

// conn is one connection. It is in use by one call or one stream at a time: a stream is cancelled by closing its
// connection (ttrpc has no other way), and a slow reader of a stream must not hold up anything else.
type conn struct {
	*ttrpc.Client
	gate *gate       // of streams (stream.go)
	dead atomic.Bool // the daemon has gone
}

func newConn(c net.Conn) *conn {
	cn := &conn{gate: newGate()}
	cn.Client = ttrpc.NewClient(gatedConn{c, cn.gate}, ttrpc.WithOnClose(func() { cn.dead.Store(true) }))
	return cn
}

func (c *conn) close() {
	c.gate.shut()
	_ = c.Client.Close()
}
