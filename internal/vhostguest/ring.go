// SPDX-License-Identifier: Apache-2.0
package vhostguest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The layout of the memory: two rings, each with its buffers. A descriptor always describes the same buffer, as large
// as a page, which is what a guest of Linux posts for large segments.
const (
	ringSize   = 1024 // descriptors: the most that QEMU allows
	bufferSize = 4096
	headerSize = 12 // struct virtio_net_hdr_mrg_rxbuf
	longest    = headerSize + 14 + 4 + 65535
	chainMost  = (longest + bufferSize - 1) / bufferSize

	availAt    = ringSize * 16
	usedAt     = availAt + 4096
	buffersAt  = usedAt + 4096*3
	ringMemory = buffersAt + ringSize*bufferSize

	descNext, descWrite = 1, 2
	quiet               = 1 // flag of both sides: no kick, no call
)

// ring is a split virtqueue, which its owner fills in the order of the descriptors.
type ring struct {
	memory []byte
	kick   int // eventfds
	call   int
	avail  uint16 // index of the next entry of the available ring
	used   uint16 // of the next one of the used ring
	next   int    // transmit: descriptor of the next chain
	free   int    // transmit: descriptors
	flags  uint32 // of the available ring
}

func newRing(memory []byte) (r *ring, err error) {
	r = &ring{memory: memory, free: ringSize}
	if r.kick, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, err
	}
	if r.call, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		_ = unix.Close(r.kick)
		return nil, err
	}
	return r, nil
}

func (r *ring) buffer(i int) []byte {
	at := buffersAt + i%ringSize*bufferSize
	return r.memory[at : at+bufferSize]
}

// describe writes descriptor i. Guest addresses begin with the memory of the first ring.
func (r *ring) describe(i int, base uint64, length, flags int) {
	at := i * 16
	binary.LittleEndian.PutUint64(r.memory[at:], base+uint64(buffersAt+i*bufferSize))
	binary.LittleEndian.PutUint32(r.memory[at+8:], uint32(length))
	binary.LittleEndian.PutUint16(r.memory[at+12:], uint16(flags))
	binary.LittleEndian.PutUint16(r.memory[at+14:], uint16((i+1)%ringSize))
}

// word is the first word of a ring's part, flags and index, which both sides read and write as a whole.
func (r *ring) word(at int) *uint32 { return (*uint32)(unsafe.Pointer(&r.memory[at])) }

// offer appends a chain to the available ring. publish makes it visible.
func (r *ring) offer(head int) {
	binary.LittleEndian.PutUint16(r.memory[availAt+4+int(r.avail)%ringSize*2:], uint16(head))
	r.avail++
}

func (r *ring) publish() error {
	atomic.StoreUint32(r.word(availAt), r.flags|uint32(r.avail)<<16)
	if atomic.LoadUint32(r.word(usedAt))&quiet != 0 {
		return nil
	}
	_, err := unix.Write(r.kick, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	return err
}

// wantCall says whether the router has to wake this side.
func (r *ring) wantCall(want bool) {
	r.flags = quiet
	if want {
		r.flags = 0
	}
	atomic.StoreUint32(r.word(availAt), r.flags|uint32(r.avail)<<16)
}

// done says how many entries of the used ring are new.
func (r *ring) done() int { return int(uint16(atomic.LoadUint32(r.word(usedAt))>>16) - r.used) }

// take returns the next entry of the used ring.
func (r *ring) take() (head, length int) {
	at := usedAt + 4 + int(r.used)%ringSize*8
	r.used++
	return int(binary.LittleEndian.Uint32(r.memory[at:])), int(binary.LittleEndian.Uint32(r.memory[at+4:]))
}

// awaitDone returns when the router has used something.
func (g *Guest) awaitDone(r *ring) (end bool, err error) {
	var count [8]byte
	for r.done() == 0 {
		r.wantCall(true)
		if r.done() == 0 {
			if end, err = g.await(r.call); end || err != nil {
				return end, err
			}
		}
		_, _ = unix.Read(r.call, count[:]) // a call that came earlier, or none
		r.wantCall(false)
	}
	return false, nil
}

// reclaim makes the descriptors of sent chains free. chains has their lengths, by their first descriptor.
func (r *ring) reclaim(chains *[ringSize]int) error {
	for r.done() > 0 {
		head, _ := r.take()
		if head >= ringSize || chains[head] == 0 {
			return fmt.Errorf("the router has used chain %d, which was not offered", head)
		}
		r.free += chains[head]
		chains[head] = 0
	}
	return nil
}

// send carries frames from the tap to the router. The used chains come back in order, because the router copies.
func (g *Guest) send() error {
	var chains [ringSize]int
	r := g.tx
	r.wantCall(false)
	for {
		if err := r.reclaim(&chains); err != nil {
			return err
		}
		if r.free < chainMost {
			if end, err := g.awaitDone(r); end || err != nil {
				return err
			}
			continue
		}
		n, err := g.readFrame(r)
		if errors.Is(err, unix.EAGAIN) {
			if end, err := g.await(g.tap); end || err != nil {
				return err
			}
			continue
		}
		if errors.Is(err, unix.EIO) { // the interface is down
			if end, err := g.pause(); end || err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("tap: %w", err)
		}
		chains[r.next] = r.chain(n)
		r.offer(r.next)
		r.free -= chains[r.next]
		r.next = (r.next + chains[r.next]) % ringSize
		if err := r.publish(); err != nil {
			return err
		}
	}
}

const pauseMs = 50

// pause waits a moment for an interface that is not up yet.
func (g *Guest) pause() (end bool, err error) {
	fds := []unix.PollFd{{Fd: int32(g.stop), Events: unix.POLLIN}}
	_, err = unix.Poll(fds, pauseMs)
	if err == unix.EINTR {
		err = nil
	}
	return fds[0].Revents != 0, err
}

func (g *Guest) readFrame(r *ring) (int, error) {
	var vector [chainMost][]byte
	for i := range vector {
		vector[i] = r.buffer(r.next + i)
	}
	return unix.Readv(g.tap, vector[:])
}

// chain describes the frame of n bytes that begins at the next descriptor. Returns how many descriptors it takes.
func (r *ring) chain(n int) (count int) {
	for left := n; left > 0; left -= bufferSize {
		flags := 0
		if left > bufferSize {
			flags = descNext
		}
		r.describe((r.next+count)%ringSize, ringMemory, min(left, bufferSize), flags)
		count++
	}
	return count
}

// receive carries frames from the router to the tap.
func (g *Guest) receive() error {
	r := g.rx
	for i := range ringSize {
		r.describe(i, 0, bufferSize, descWrite)
		r.offer(i)
	}
	r.wantCall(false)
	if err := r.publish(); err != nil {
		return err
	}
	for {
		if end, err := g.awaitDone(r); end || err != nil {
			return err
		}
		for r.done() > 0 {
			if err := g.writeFrame(r); err != nil {
				return err
			}
		}
		if err := r.publish(); err != nil {
			return err
		}
	}
}

// writeFrame writes the frame at the head of the used ring, and offers its buffers again. What the kernel does not take
// is lost, as by any network stack.
func (g *Guest) writeFrame(r *ring) error {
	var heads [chainMost + 1]int
	var vector [chainMost + 1][]byte
	count := 1
	for i := 0; i < count; i++ {
		if r.done() == 0 {
			return errors.New("the router has used fewer buffers than the header of the frame says")
		}
		head, length := r.take()
		if head >= ringSize || length > bufferSize || length < headerSize && i == 0 {
			return fmt.Errorf("the router has written %d bytes to descriptor %d", length, head)
		}
		heads[i], vector[i] = head, r.buffer(head)[:length]
		if i == 0 {
			count = int(binary.LittleEndian.Uint16(vector[0][headerSize-2:]))
			if count < 1 || count > len(vector) {
				return fmt.Errorf("the router has used %d buffers for a frame", count)
			}
		}
	}
	_, _ = unix.Writev(g.tap, vector[:count])
	for _, head := range heads[:count] {
		r.offer(head)
	}
	return nil
}
