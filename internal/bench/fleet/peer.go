// SPDX-License-Identifier: Apache-2.0
package fleet

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// peer speaks just enough BGP to load others: it sends paths of VPNv4 that were made before, as fast as they are read,
// and forgets what it hears.
type peer struct {
	router netip.Addr

	writing sync.Mutex // of whole messages
	conn    net.Conn
	ended   chan struct{} // closed when the session has ended
}

const (
	asn        = 65000
	target     = 100 // paths have the route target asn:target
	holdTime   = 90
	handshake  = 10 * time.Second
	messageMax = 4096
)

// Types of messages.
const (
	typeOpen      = 1
	typeUpdate    = 2
	typeKeepalive = 4
)

func message(kind byte, body []byte) []byte {
	m := make([]byte, 18, 19+len(body))
	for i := range 16 {
		m[i] = 0xff
	}
	binary.BigEndian.PutUint16(m[16:], uint16(19+len(body)))
	return append(append(m, kind), body...)
}

// open offers VPNv4, AS numbers of four bytes, and graceful restart.
func (p *peer) open() []byte {
	capabilities := []byte{
		1, 4, 0, 1, 0, 128, // RFC 4760
		65, 4, 0, 0, asn >> 8, asn & 0xff, // RFC 6793
		64, 6, 0, 120, 0, 1, 128, 0x80, // RFC 4724
	}
	body := []byte{4, asn >> 8, asn & 0xff, 0, holdTime}
	body = append(append(body, p.router.AsSlice()...), byte(2+len(capabilities)), 2, byte(len(capabilities)))
	return message(typeOpen, append(body, capabilities...))
}

// speak makes a connection a session, and returns when both sides have agreed to it.
func (p *peer) speak(conn net.Conn) error {
	_ = conn.SetDeadline(time.Now().Add(handshake))
	r := bufio.NewReaderSize(conn, 1<<16)
	err := write(conn, p.open())
	for seen := 0; err == nil && seen&(1<<typeKeepalive) == 0; {
		var kind byte
		if kind, err = next(r); err == nil && kind == typeOpen {
			err = write(conn, message(typeKeepalive, nil))
		}
		seen |= 1 << kind
	}
	if err != nil {
		_ = conn.Close()
		return fmt.Errorf("BGP with %v: %w", conn.RemoteAddr(), err)
	}
	_ = conn.SetDeadline(time.Time{})
	p.conn, p.ended = conn, make(chan struct{})
	go p.read(r, conn, p.ended)
	go p.keepAlive(conn, p.ended)
	return nil
}

func write(w io.Writer, b []byte) error {
	_, err := w.Write(b)
	return err
}

// next reads a message and returns its type.
func next(r *bufio.Reader) (byte, error) {
	var head [19]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, err
	}
	length := int(binary.BigEndian.Uint16(head[16:]))
	if length < len(head) || length > messageMax {
		return 0, fmt.Errorf("a message of %d bytes", length)
	}
	if head[18] == 3 {
		body := make([]byte, length-len(head))
		_, err := io.ReadFull(r, body)
		return 0, errors.Join(fmt.Errorf("a notification: %x", body), err)
	}
	_, err := r.Discard(length - len(head))
	return head[18], err
}

func (p *peer) read(r *bufio.Reader, conn net.Conn, ended chan struct{}) {
	for {
		if _, err := next(r); err != nil {
			_ = conn.Close()
			close(ended)
			return
		}
	}
}

func (p *peer) keepAlive(conn net.Conn, ended chan struct{}) {
	tick := time.NewTicker(holdTime / 3 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			p.writing.Lock()
			_ = write(conn, message(typeKeepalive, nil))
			p.writing.Unlock()
		}
	}
}

// send sends messages.
func (p *peer) send(messages []byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	return write(p.conn, messages)
}

// close ends the session as a crash does: without a word.
func (p *peer) close() {
	if p.conn != nil {
		_ = p.conn.Close()
		<-p.ended
	}
}

// --- What it sends ---

// route is one path: prefixes are told apart by the number.
type route struct {
	number  int
	nexthop netip.Addr
	label   uint32
	med     uint32 // paths with different ones share no attributes
}

func (r route) prefix() netip.Prefix {
	n := r.number
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{20 + byte(n>>24), byte(n >> 16), byte(n >> 8), byte(n)}), 32)
}

func (r route) nlri(label uint32) []byte {
	b := []byte{24 + 64 + 32, byte(label >> 16), byte(label >> 8), byte(label)}
	b = append(append(b, 0, 1), r.nexthop.AsSlice()...) // the route distinguisher: that host's
	return append(append(b, 0, 1), r.prefix().Addr().AsSlice()...)
}

// unique makes paths that share no attributes.
func unique(n int) []route {
	first := netip.MustParseAddr("100.65.0.0").As4()
	list := make([]route, n)
	for i := range list {
		host := i % hosts
		a := first
		a[2], a[3] = byte(host>>8), byte(host)
		list[i] = route{number: i, nexthop: netip.AddrFrom4(a), label: 1000, med: uint32(i)}
	}
	return list
}

// shared makes paths of one host.
func shared(n int) []route {
	list := make([]route, n)
	for i := range list {
		list[i] = route{number: i, nexthop: netip.MustParseAddr("100.65.0.1"), label: 1000}
	}
	return list
}

const (
	hosts        = 5000 // next hops of a table whose paths share no attributes
	sharedRoutes = 200  // paths in one message
)

// announce makes the messages for routes. Those that follow each other with equal attributes share a message.
func announce(routes []route) []byte {
	var out []byte
	for len(routes) > 0 {
		n := 1
		for n < min(len(routes), sharedRoutes) && routes[n].nexthop == routes[0].nexthop &&
			routes[n].med == routes[0].med {
			n++
		}
		out = append(out, update(routes[:n])...)
		routes = routes[n:]
	}
	return out
}

func update(routes []route) []byte {
	attrs := []byte{
		0x40, 1, 1, 0, // origin
		0x40, 2, 0, // AS path
		0x40, 5, 4, 0, 0, 0, 100, // local preference
		0xc0, 16, 16, // extended communities: a route target, and MPLS in UDP
		0, 2, asn >> 8, asn & 0xff, 0, 0, 0, target, 3, 0x0c, 0, 0, 0, 0, 0, 13,
	}
	attrs = append(attrs, 0x80, 4, 4)
	attrs = binary.BigEndian.AppendUint32(attrs, routes[0].med)
	reach := append([]byte{0, 1, 128, 12, 0, 0, 0, 0, 0, 0, 0, 0}, routes[0].nexthop.AsSlice()...)
	reach = append(reach, 0)
	for _, r := range routes {
		reach = append(reach, r.nlri(r.label<<4|1)...)
	}
	return message(typeUpdate, attributes(long(attrs, 14, reach)))
}

// withdraw makes the messages that end routes.
func withdraw(routes []route) []byte {
	var out []byte
	for len(routes) > 0 {
		n := min(len(routes), sharedRoutes)
		unreach := []byte{0, 1, 128}
		for _, r := range routes[:n] {
			unreach = append(unreach, r.nlri(0x800000)...)
		}
		out = append(out, message(typeUpdate, attributes(long(nil, 15, unreach)))...)
		routes = routes[n:]
	}
	return out
}

// endOfRib says that all has been sent.
func endOfRib() []byte { return message(typeUpdate, attributes([]byte{0x80, 15, 3, 0, 1, 128})) }

// long appends an attribute whose length takes two bytes.
func long(attrs []byte, kind byte, value []byte) []byte {
	attrs = append(attrs, 0x90, kind)
	attrs = binary.BigEndian.AppendUint16(attrs, uint16(len(value)))
	return append(attrs, value...)
}

// attributes makes the body of an update that has nothing else.
func attributes(attrs []byte) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{0, 0}, uint16(len(attrs))), attrs...)
}
