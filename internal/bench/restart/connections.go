// SPDX-License-Identifier: Apache-2.0
package restart

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/corelane/corelane/internal/namespace"
)

// connections are TCP connections from a guest to an echo server outside, whose source NAT translates.
type connections struct {
	server         net.Listener
	space, address string // of the guest; of the server
	n              int
	list           []net.Conn
}

const serverPort = 7

func (c *connections) listen(space, address string) error {
	return namespace.Do(space, func() (err error) {
		c.server, err = net.Listen("tcp4", net.JoinHostPort(address, fmt.Sprint(serverPort)))
		if err == nil {
			go c.serve(c.server)
		}
		return err
	})
}

func (*connections) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(conn, conn) // until the client closes
			_ = conn.Close()
		}()
	}
}

// dial opens all connections, and sees an echo on each.
func (c *connections) dial() error {
	err := namespace.Do(c.space, func() error {
		for range c.n {
			conn, err := net.DialTimeout("tcp4", net.JoinHostPort(c.address, fmt.Sprint(serverPort)), 5*time.Second)
			if err != nil {
				return err
			}
			c.list = append(c.list, conn)
		}
		return nil
	})
	if err == nil && c.survivors(5*time.Second) < c.n {
		err = errors.New("not all connections echo before the event")
	}
	return err
}

// survivors counts the connections that echo within a time, together.
func (c *connections) survivors(within time.Duration) (n int) {
	answers := make(chan bool, len(c.list))
	end := time.Now().Add(within)
	for _, conn := range c.list {
		go func() {
			text := []byte("still there?")
			_ = conn.SetDeadline(end)
			_, err := conn.Write(text)
			if err == nil {
				_, err = io.ReadFull(conn, text)
			}
			answers <- err == nil
		}()
	}
	for range c.list {
		if <-answers {
			n++
		}
	}
	return n
}

// renew opens all connections again if some broke.
func (c *connections) renew() error {
	if c.survivors(time.Second) == c.n {
		return nil
	}
	_ = c.close() // some are broken
	return c.dial()
}

func (c *connections) close() (err error) {
	for _, conn := range c.list {
		err = errors.Join(err, conn.Close())
	}
	c.list = nil
	return err
}
