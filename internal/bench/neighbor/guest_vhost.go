// SPDX-License-Identifier: Apache-2.0
package neighbor

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Messages of vhost-user that a front end needs to connect (QEMU, docs/interop/vhost-user.rst).
const (
	vhostGetFeatures = 1
	vhostSetFeatures = 2
	vhostSetOwner    = 3
	vhostSetMemTable = 5
	vhostSetNum      = 8
	vhostSetAddr     = 9
	vhostSetBase     = 10
	vhostGetBase     = 11
	vhostSetKick     = 12
	vhostSetCall     = 13
	vhostSetEnable   = 18
	vhostFeatures    = 1<<32 | 1<<30 // VERSION_1, PROTOCOL_FEATURES
)

// The guest's memory: two rings, each with descriptors, available and used entries, then the data of all frames.
const (
	vhostSlots   = 256
	vhostRing    = 1 << 14
	vhostAvail   = 1 << 13
	vhostUsed    = 3 << 12
	vhostData    = 2 * vhostRing
	vhostHeader  = 12 // struct virtio_net_hdr_mrg_rxbuf
	vhostRoom    = 1 << 17
	vhostNext    = 1 // flag of a descriptor
	vhostTx      = vhostRing
	vhostEntries = 4 // before the entries of an available ring
	// frames that fullCall offers at a time: the router notifies after each poll, and is not busy with the frames
	vhostFew = 16
)

type vhostGuest struct {
	guestSocket
	memory  *guestMemory
	offered uint16 // frames at a time
	sent    uint16
}

func dialVhost(path string, how misuse) (*vhostGuest, error) {
	size := vhostData + vhostRoom
	if how == huge {
		size = vhostData + hugeBytes + vhostRoom
	}
	memory, err := newGuestMemory(size, how != shrink)
	if err != nil {
		return nil, err
	}
	s, err := dialGuest(path, unix.SOCK_STREAM)
	if err != nil {
		return nil, errors.Join(err, memory.close())
	}
	g := &vhostGuest{guestSocket: s, memory: memory, offered: vhostSlots}
	sendCall := g.sendEvent
	if how == fullCall {
		g.offered, sendCall = vhostFew, g.sendFullEvent
	}
	g.describe(how)
	if err := g.handshake(sendCall); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// describe writes the descriptors of the transmit ring, and offers the first one in every slot.
func (g *vhostGuest) describe(how misuse) {
	ring := g.memory.bytes[vhostTx:]
	for i := range vhostSlots {
		length, flags, next := uint32(vhostHeader+leastFrame), uint16(0), uint16(0)
		switch {
		case how == huge:
			length = hugeBytes
		case how == whole:
			length = vhostHeader + chained*pieceSize
		case how == chain && i < chained:
			length = pieceSize
			if i == 0 {
				length = vhostHeader + pieceSize
			}
			if i < chained-1 {
				flags, next = vhostNext, uint16(i+1)
			}
		}
		binary.LittleEndian.PutUint64(ring[16*i:], vhostData)
		binary.LittleEndian.PutUint32(ring[16*i+8:], length)
		binary.LittleEndian.PutUint16(ring[16*i+12:], flags)
		binary.LittleEndian.PutUint16(ring[16*i+14:], next)
		binary.LittleEndian.PutUint16(ring[vhostAvail+vhostEntries+2*i:], 0)
	}
}

func (g *vhostGuest) tell(request uint32, payload ...any) error {
	return g.send(vhostMessage(request, payload...))
}

func vhostMessage(request uint32, payload ...any) []byte {
	m := make([]byte, 12)
	for _, p := range payload {
		m, _ = binary.Append(m, binary.LittleEndian, p)
	}
	binary.LittleEndian.PutUint32(m, request)
	binary.LittleEndian.PutUint32(m[4:], 1) // version of the protocol
	binary.LittleEndian.PutUint32(m[8:], uint32(len(m)-12))
	return m
}

// memoryTable is the payload of vhostSetMemTable. The guest's addresses begin at 0.
func (g *vhostGuest) memoryTable() []any {
	return []any{uint32(1), uint32(0), uint64(0), uint64(len(g.memory.bytes)), uint64(0), uint64(0)}
}

// vhostAddresses is the payload of vhostSetAddr.
func vhostAddresses(ring uint32) []any {
	at := uint64(ring) * vhostRing
	return []any{ring, uint32(0), at, at + vhostUsed, at + vhostAvail, uint64(0)}
}

// handshake connects. sendCall: sends a message with the descriptor of the guest's notifications.
func (g *vhostGuest) handshake(sendCall func([]byte) error) error {
	err := errors.Join(g.tell(vhostSetOwner), g.tell(vhostGetFeatures))
	if err != nil {
		return err
	}
	if _, err := g.receive(20); err != nil {
		return err
	}
	err = errors.Join(g.tell(vhostSetFeatures, uint64(vhostFeatures)),
		g.send(vhostMessage(vhostSetMemTable, g.memoryTable()...), g.memory.fd))
	for ring := range uint32(2) {
		err = errors.Join(err, g.tell(vhostSetNum, ring, uint32(vhostSlots)), g.tell(vhostSetBase, ring, uint32(0)),
			g.tell(vhostSetAddr, vhostAddresses(ring)...), sendCall(vhostMessage(vhostSetCall, uint64(ring))),
			g.sendEvent(vhostMessage(vhostSetKick, uint64(ring))))
	}
	for ring := range uint32(2) {
		err = errors.Join(err, g.tell(vhostSetEnable, ring, uint32(1)))
	}
	return err
}

// index is a ring's index, which is in the upper half of its first four bytes.
func (g *vhostGuest) index(at int) *uint32 {
	return (*uint32)(unsafe.Pointer(&g.memory.bytes[vhostTx+at]))
}

func (g *vhostGuest) post() (int, error) {
	taken := uint16(atomic.LoadUint32(g.index(vhostUsed))>>16) - g.sent
	g.sent += taken
	atomic.StoreUint32(g.index(vhostAvail), uint32(g.sent+g.offered)<<16)
	if g.closed() {
		return int(taken), errNotServed
	}
	return int(taken), nil
}

func (g *vhostGuest) close() error { return errors.Join(g.guestSocket.close(), g.memory.close()) }
