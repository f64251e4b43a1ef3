// SPDX-License-Identifier: Apache-2.0
package neighbor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Messages of memif (dataplane/port/memif/memif.h): 128 bytes, in host byte order.
const (
	memifMessage   = 128
	memifAck       = 1
	memifHello     = 2
	memifInit      = 3
	memifAddRegion = 4
	memifAddRing   = 5
	memifConnect   = 6
	memifConnected = 7
	memifVersion   = 0x0200
	memifCookie    = 0x3e31f20
	memifToServer  = 1 // flag of a ring
	memifNext      = 1 // flag of a descriptor
)

// The guest's region: a ring in each direction, then the data of all frames.
const (
	memifSlots = 1 << memifLog2
	memifLog2  = 10
	memifDescs = 128 // bytes before the descriptors of a ring
	memifTail  = 64
	memifRing  = memifDescs + 16*memifSlots
	memifData  = 2 * memifRing
	memifRoom  = 1 << 16
)

type memifGuest struct {
	guestSocket
	memory  *guestMemory
	frames  int    // descriptors of a frame
	offered uint16 // descriptors that are full at a time
	sent    uint16
}

func dialMemif(path string, how misuse) (guest, error) {
	size := 1 << 18
	if how == huge {
		size = hugeBytes + 1<<18
	}
	memory, err := newGuestMemory(size, true)
	if err != nil {
		return nil, err
	}
	s, err := dialGuest(path, unix.SOCK_SEQPACKET)
	if err != nil {
		return nil, errors.Join(err, memory.close())
	}
	g := &memifGuest{guestSocket: s, memory: memory, frames: 1, offered: memifSlots}
	g.describe(how)
	if err := g.handshake(); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// describe writes the rings. Every descriptor of the first one is full.
func (g *memifGuest) describe(how misuse) {
	for ring := range 2 {
		binary.NativeEndian.PutUint32(g.memory.bytes[ring*memifRing:], memifCookie)
	}
	if how == chain {
		g.frames = chained
	} else if how == whole {
		g.offered = memifSlots / chained
	}
	for i := range memifSlots {
		length, flags := uint32(leastFrame), uint16(0)
		switch how {
		case huge:
			length = hugeBytes
		case whole:
			length = chained * pieceSize
		case chain:
			length = pieceSize
			if i%chained < chained-1 {
				flags = memifNext
			}
		}
		d := g.memory.bytes[memifDescs+16*i:]
		binary.NativeEndian.PutUint16(d, flags)
		binary.NativeEndian.PutUint32(d[4:], length)
		binary.NativeEndian.PutUint32(d[8:], memifData)
	}
}

func memifMessageOf(kind uint16, payload ...any) []byte {
	m := binary.NativeEndian.AppendUint16(nil, kind)
	for _, p := range payload {
		m, _ = binary.Append(m, binary.NativeEndian, p)
	}
	return append(m, make([]byte, memifMessage-len(m))...)
}

// expect reads a message of this kind.
func (g *memifGuest) expect(kind uint16) error {
	m, err := g.receive(memifMessage)
	if err != nil {
		return err
	}
	if got := binary.NativeEndian.Uint16(m); got != kind {
		return errors.Join(errNotServed, fmt.Errorf("memif: message %d instead of %d", got, kind))
	}
	return nil
}

func (g *memifGuest) handshake() error {
	if err := g.expect(memifHello); err != nil {
		return err
	}
	steps := []func() error{
		func() error {
			return g.send(memifMessageOf(memifInit, uint16(memifVersion), uint32(0), uint8(0), [24]byte{},
				[32]byte{}))
		},
		func() error {
			return g.send(memifMessageOf(memifAddRegion, uint16(0), uint64(len(g.memory.bytes))), g.memory.fd)
		},
		func() error { return g.addRing(memifToServer, 0) },
		func() error { return g.addRing(0, memifRing) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
		if err := g.expect(memifAck); err != nil {
			return err
		}
	}
	if err := g.send(memifMessageOf(memifConnect, [32]byte{})); err != nil {
		return err
	}
	return g.expect(memifConnected)
}

func (g *memifGuest) addRing(flags uint16, at uint32) error {
	return g.sendEvent(memifMessageOf(memifAddRing, flags, uint16(0), uint16(0), at, uint8(memifLog2), uint16(0)))
}

func (g *memifGuest) post() (int, error) {
	tail := (*uint32)(unsafe.Pointer(&g.memory.bytes[memifTail]))
	head := (*uint32)(unsafe.Pointer(&g.memory.bytes[4])) // flags, then head
	taken := uint16(atomic.LoadUint32(tail)) - g.sent
	g.sent += taken
	atomic.StoreUint32(head, uint32(g.sent+g.offered)<<16)
	if g.closed() {
		return int(taken) / g.frames, errNotServed
	}
	return int(taken) / g.frames, nil
}

func (g *memifGuest) close() error { return errors.Join(g.guestSocket.close(), g.memory.close()) }
