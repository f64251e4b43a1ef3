// SPDX-License-Identifier: Apache-2.0
package vhostguest

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// Requests of the vhost-user protocol.
const (
	getFeatures     = 1
	setFeatures     = 2
	setOwner        = 3
	setMemTable     = 5
	setVringNum     = 8
	setVringAddr    = 9
	setVringBase    = 10
	setVringKick    = 12
	setVringCall    = 13
	setVringEnable  = 18
	protocolVersion = 1
)

// tell sends a request, whose payload is a sequence of integers of 32 or 64 bits.
func (g *Guest) tell(request uint32, fd int, payload ...any) error {
	var body, rights []byte
	for _, v := range payload {
		switch v := v.(type) {
		case uint32:
			body = binary.LittleEndian.AppendUint32(body, v)
		case uint64:
			body = binary.LittleEndian.AppendUint64(body, v)
		}
	}
	message := binary.LittleEndian.AppendUint32(nil, request)
	message = binary.LittleEndian.AppendUint32(message, protocolVersion)
	message = append(binary.LittleEndian.AppendUint32(message, uint32(len(body))), body...)
	if fd >= 0 {
		rights = unix.UnixRights(fd)
	}
	_, _, err := g.socket.WriteMsgUnix(message, rights, nil)
	return err
}

const acceptTimeout = 30 * time.Second // a router looks for its server every second

func accept(path string) (*net.UnixConn, error) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	if err := listener.SetDeadline(time.Now().Add(acceptTimeout)); err != nil {
		return nil, err
	}
	return listener.AcceptUnix()
}

// connect negotiates features and shares memory and rings.
func (g *Guest) connect(path string, serve bool) (err error) {
	if serve {
		g.socket, err = accept(path)
	} else {
		g.socket, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	}
	if err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("guest", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, 2*ringMemory); err != nil {
		return err
	}
	g.memory, err = unix.Mmap(fd, 0, 2*ringMemory, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return err
	}
	if g.rx, err = newRing(g.memory[:ringMemory]); err != nil {
		return err
	}
	if g.tx, err = newRing(g.memory[ringMemory:]); err != nil {
		return err
	}
	if err := g.negotiate(); err != nil {
		return err
	}
	// Guest and user addresses begin at 0.
	if err := g.tell(setMemTable, fd, uint32(1), uint32(0), uint64(0), uint64(2*ringMemory), uint64(0),
		uint64(0)); err != nil {
		return err
	}
	for i, r := range []*ring{g.rx, g.tx} {
		if err := g.share(uint32(i), r); err != nil {
			return err
		}
	}
	return nil
}

func (g *Guest) negotiate() error {
	if err := g.tell(setOwner, -1); err != nil {
		return err
	}
	if err := g.tell(getFeatures, -1); err != nil {
		return err
	}
	var answer [20]byte
	if _, err := io.ReadFull(g.socket, answer[:]); err != nil {
		return err
	}
	g.Features = binary.LittleEndian.Uint64(answer[12:]) & wanted
	if g.Features&required != required {
		return fmt.Errorf("the router offers features %#x, without version 1 or mergeable buffers", g.Features)
	}
	return g.tell(setFeatures, -1, g.Features)
}

func (g *Guest) share(i uint32, r *ring) error {
	base := uint64(i) * ringMemory
	for _, err := range []error{
		g.tell(setVringNum, -1, i, uint32(ringSize)),
		g.tell(setVringBase, -1, i, uint32(0)),
		g.tell(setVringAddr, -1, i, uint32(0), base, base+usedAt, base+availAt, uint64(0)),
		g.tell(setVringCall, r.call, uint64(i)),
		g.tell(setVringKick, r.kick, uint64(i)),
		g.tell(setVringEnable, -1, i, uint32(1)),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}
