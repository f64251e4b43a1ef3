// SPDX-License-Identifier: Apache-2.0
package vhostguest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// router is the other side of the protocol: what the guest sends comes back to it, cut into the buffers that it posted.
type router struct {
	features uint64 // that it offers
	acked    uint64
	memory   []byte
	rings    [2]struct{ kick, call int }
	enabled  int
}

func (r *router) serve(c *net.UnixConn) error {
	for r.enabled < 2 {
		var head [12]byte
		oob := make([]byte, 64)
		_, n, _, _, err := c.ReadMsgUnix(head[:], oob)
		if err != nil {
			return err
		}
		body := make([]byte, binary.LittleEndian.Uint32(head[8:]))
		if _, err := io.ReadFull(c, body); err != nil {
			return err
		}
		fd := -1
		if messages, err := unix.ParseSocketControlMessage(oob[:n]); err == nil && len(messages) == 1 {
			if fds, err := unix.ParseUnixRights(&messages[0]); err == nil {
				fd = fds[0]
			}
		}
		if err := r.handle(c, binary.LittleEndian.Uint32(head[:]), body, fd); err != nil {
			return err
		}
	}
	return nil
}

func (r *router) handle(c *net.UnixConn, request uint32, body []byte, fd int) (err error) {
	switch request {
	case getFeatures:
		answer := binary.LittleEndian.AppendUint32(nil, getFeatures)
		answer = binary.LittleEndian.AppendUint32(answer, 5)
		answer = binary.LittleEndian.AppendUint32(answer, 8)
		_, err = c.Write(binary.LittleEndian.AppendUint64(answer, r.features))
	case setFeatures:
		r.acked = binary.LittleEndian.Uint64(body)
	case setMemTable:
		size := binary.LittleEndian.Uint64(body[16:])
		r.memory, err = unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		_ = unix.Close(fd)
	case setVringKick:
		r.rings[body[0]].kick = fd
	case setVringCall:
		r.rings[body[0]].call = fd
	case setVringEnable:
		r.enabled++
	}
	return err
}

// echo takes n frames of the guest's transmit ring, and puts each into as many buffers as it needs.
func (r *router) echo(n int) error {
	rx, tx := &ring{memory: r.memory[:ringMemory]}, &ring{memory: r.memory[ringMemory:]}
	var taken, filled uint16
	for i := 0; i < n; {
		avail := atomic.LoadUint32(tx.word(availAt))
		if uint16(avail>>16) == taken {
			fds := []unix.PollFd{{Fd: int32(r.rings[1].kick), Events: unix.POLLIN}}
			if ready, err := unix.Poll(fds, 10000); err != unix.EINTR && ready == 0 {
				return errors.New("no kick")
			}
			_, _ = unix.Read(r.rings[1].kick, make([]byte, 8))
			continue
		}
		head := binary.LittleEndian.Uint16(tx.memory[availAt+4+int(taken)%ringSize*2:])
		frame := tx.chainData(int(head))
		tx.use(&taken, int(head), 0, 0)
		count := (len(frame) + bufferSize - 1) / bufferSize
		binary.LittleEndian.PutUint16(frame[headerSize-2:], uint16(count))
		for k := range count {
			slot := int(binary.LittleEndian.Uint16(rx.memory[availAt+4+int(filled)%ringSize*2:]))
			length := copy(rx.buffer(slot), frame[k*bufferSize:])
			rx.use(&filled, slot, length, count-1-k)
		}
		for side, rr := range []*ring{rx, tx} {
			if atomic.LoadUint32(rr.word(availAt))&quiet == 0 {
				if _, err := unix.Write(r.rings[side].call, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
					return err
				}
			}
		}
		i++
	}
	return nil
}

// chainData reads the chain of a transmit ring.
func (r *ring) chainData(head int) (data []byte) {
	for {
		at := head * 16
		length := int(binary.LittleEndian.Uint32(r.memory[at+8:]))
		data = append(data, r.buffer(head)[:length]...)
		if binary.LittleEndian.Uint16(r.memory[at+12:])&descNext == 0 {
			return data
		}
		head = int(binary.LittleEndian.Uint16(r.memory[at+14:]))
	}
}

// use adds an entry to the used ring, which the guest sees once nothing more belongs to it.
func (r *ring) use(at *uint16, head, length, more int) {
	entry := usedAt + 4 + int(*at)%ringSize*8
	binary.LittleEndian.PutUint32(r.memory[entry:], uint32(head))
	binary.LittleEndian.PutUint32(r.memory[entry+4:], uint32(length))
	*at++
	if more == 0 {
		atomic.StoreUint32(r.word(usedAt), uint32(*at)<<16)
	}
}

func connected(t *testing.T, offered uint64) (*Guest, *router, error) {
	path := filepath.Join(t.TempDir(), "socket")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	r, served := &router{features: offered}, make(chan error, 1)
	go func() {
		c, err := listener.AcceptUnix()
		if err == nil {
			err = r.serve(c)
			_ = c.Close()
		}
		served <- err
	}()
	g := &Guest{tap: -1, ended: make(chan error, 2)}
	if g.stop, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if err := g.connect(path, false); err != nil {
		g.release()
		return nil, nil, err
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	return g, r, nil
}

// Frames of all lengths, more than the rings have room for at once, go out and come back as they were.
func TestEcho(t *testing.T) {
	g, r, err := connected(t, ^uint64(0))
	if err != nil {
		t.Fatal(err)
	}
	if g.Features != wanted || r.acked != wanted {
		t.Errorf("negotiated %#x and %#x", g.Features, r.acked)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	g.tap = pair[0]
	kernel := pair[1]
	defer unix.Close(kernel)
	if err := unix.SetNonblock(kernel, false); err != nil {
		t.Fatal(err)
	}
	go g.run(g.send)
	go g.run(g.receive)
	const frames = 400 // of nine descriptors each
	echoed := make(chan error, 1)
	go func() { echoed <- r.echo(frames) }()
	got := make([]byte, longest)
	for i := range frames {
		frame := bytes.Repeat([]byte{byte(i)}, headerSize+1+i*37%(longest-headerSize))
		clear(frame[:headerSize])
		if _, err := unix.Write(kernel, frame); err != nil {
			t.Fatal(err)
		}
		n, err := unix.Read(kernel, got)
		if err != nil {
			t.Fatal(err)
		}
		if n != len(frame) || !bytes.Equal(got[headerSize:n], frame[headerSize:]) {
			t.Fatalf("frame %d of %d bytes came back with %d", i, len(frame), n)
		}
	}
	if err := errors.Join(<-echoed, g.Close()); err != nil {
		t.Error(err)
	}
}

// A router may lie, too: the guest ends, and says why.
func TestRouterLies(t *testing.T) {
	for name, lie := range map[string]func(r *ring){
		"descriptor": func(r *ring) { r.use(new(uint16), ringSize, headerSize, 0) },
		"length":     func(r *ring) { r.use(new(uint16), 0, bufferSize+1, 0) },
		"no header":  func(r *ring) { r.use(new(uint16), 0, headerSize-1, 0) },
		"no buffers": func(r *ring) { r.use(new(uint16), 0, headerSize, 0) }, // the header says 0
	} {
		g, r, err := connected(t, wanted)
		if err != nil {
			t.Fatal(err)
		}
		go g.run(func() error { return nil })
		lie(&ring{memory: r.memory[:ringMemory]})
		if err := g.receive(); err == nil {
			t.Errorf("%s: accepted", name)
		}
		go g.run(func() error { return nil })
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := connected(t, featCsum); err == nil {
		t.Error("a router without mergeable buffers is accepted")
	}
}

func TestOffloads(t *testing.T) {
	for features, expected := range map[uint64]int{
		0:                               0,
		featHostTSO4:                    0, // without checksums there are no segments
		featCsum:                        unix.TUN_F_CSUM,
		featCsum | featHostECN:          unix.TUN_F_CSUM,
		featCsum | featHostTSO4:         unix.TUN_F_CSUM | unix.TUN_F_TSO4,
		wanted &^ (featHostECN | 1<<32): unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6,
		wanted:                          unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN,
	} {
		if got := tapOffloads(features); got != expected {
			t.Errorf("features %#x: %#x", features, got)
		}
	}
}
