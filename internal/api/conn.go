// SPDX-License-Identifier: Apache-2.0
package api

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/containerd/ttrpc"
)

// conn is one connection. It is in use by one call or one stream at a time: a stream is cancelled by closing its
// connection (ttrpc has no other way), and a slow reader of a stream must not hold up anything else.
type conn struct {
	*ttrpc.Client
	gate *gate
	dead atomic.Bool // the daemon has gone
}

func newConn(c net.Conn) *conn {
	g := &gate{}
	g.opened = sync.NewCond(&g.mu)
	cn := &conn{gate: g}
	cn.Client = ttrpc.NewClient(gatedConn{c, g}, ttrpc.WithOnClose(func() { cn.dead.Store(true) }))
	return cn
}

func (c *conn) close() {
	c.gate.shut()
	_ = c.Client.Close()
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

type gatedConn struct {
	net.Conn
	gate *gate
}

func (c gatedConn) Read(p []byte) (int, error) {
	c.gate.wait()
	return c.Conn.Read(p)
}
