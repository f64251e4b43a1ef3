// SPDX-License-Identifier: Apache-2.0
package api

import (
	"context"
	"io"
	"net"
	"sync"

	"github.com/containerd/ttrpc"
)

// Stream makes a streaming request and calls each for every message, in order. An error from each ends the stream and
// is returned as it is. each may make calls of its own and may be slow: the daemon waits, and memory stays bounded.
func Stream[S, Req, T any, R interface{ Recv() (T, error) }](ctx context.Context, c *Client,
	service func(*ttrpc.Client) S, method func(S, context.Context, Req) (R, error), req Req, each func(T) error) error {
	cn, err := c.get(ctx)
	if err != nil {
		return err
	}
	stream, err := method(service(cn.Client), ctx, req)
	if err != nil {
		err = convert(ctx, c.socket, err)
		c.release(cn, err)
		return err
	}

	items := make(chan T, gateQueue)
	var end error
	go func() {
		defer close(items)
		for {
			item, err := stream.Recv()
			if err != nil {
				end = err
				return
			}
			cn.gate.add(1)
			items <- item
		}
	}()
	for item := range items {
		cn.gate.add(-1)
		if err := each(item); err != nil {
			cn.close()
			for range items { // let the reader finish
			}
			return err
		}
	}
	if end == io.EOF {
		c.put(cn)
		return nil
	}
	err = convert(ctx, c.socket, end)
	c.release(cn, err)
	return err
}

// Collect is Stream for lists that are known to be small.
func Collect[S, Req, T any, R interface{ Recv() (T, error) }](ctx context.Context, c *Client,
	service func(*ttrpc.Client) S, method func(S, context.Context, Req) (R, error), req Req) ([]T, error) {
	var all []T
	err := Stream(ctx, c, service, method, req, func(item T) error {
		all = append(all, item)
		return nil
	})
	return all, err
}

// ttrpc ends a stream whose buffer of 64 messages stays full for a second, which a pager causes easily. Therefore
// messages go at once into a queue here, and nothing is read from the socket while that queue is long; the daemon then
// waits.
const (
	gateLimit = 1024
	// gateQueue also holds the messages that ttrpc had already read when the gate closed: its 64 messages and the 4096
	// bytes of its read buffer, at least 10 bytes each.
	gateQueue = gateLimit + 1024
)

// gate counts the messages that wait for their reader, and blocks reads from the socket while they are too many.
type gate struct {
	mu      sync.Mutex
	opened  *sync.Cond
	waiting int
	closed  bool
}

func newGate() *gate {
	g := &gate{}
	g.opened = sync.NewCond(&g.mu)
	return g
}

func (g *gate) add(n int) {
	g.mu.Lock()
	g.waiting += n
	if g.waiting < gateLimit {
		g.opened.Signal()
	}
	g.mu.Unlock()
}

func (g *gate) shut() {
	g.mu.Lock()
	g.closed = true
	g.opened.Signal()
	g.mu.Unlock()
}

func (g *gate) wait() {
	g.mu.Lock()
	for g.waiting >= gateLimit && !g.closed {
		g.opened.Wait()
	}
	g.mu.Unlock()
}

// gatedConn is a connection whose reads wait for the gate.
type gatedConn struct {
	net.Conn
	gate *gate
}

func (c gatedConn) Read(p []byte) (int, error) {
	c.gate.wait()
	return c.Conn.Read(p)
}
