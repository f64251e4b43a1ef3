// SPDX-License-Identifier: Apache-2.0
package neighbor

import (
	"encoding/binary"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/wait"
)

// backEnd is the router of one connection: it reads messages, and takes frames of the transmit ring.
type backEnd struct {
	mu       sync.Mutex
	requests []uint32 // that it has read
	memory   int      // descriptor, -1 = none yet
	calls    []int
	rings    []byte
	takes    int // so often does it take all frames that are there
	refuses  int // the connection ends after so many messages; 0: never
	socket   int
}

// serveGuest accepts one connection at the path.
func serveGuest(t *testing.T, b *backEnd) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guest")
	listener, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = errors.Join(unix.Bind(listener, &unix.SockaddrUnix{Name: path}), unix.Listen(listener, 1))
	}
	if err != nil {
		t.Fatal(err)
	}
	b.memory = -1
	served := make(chan error, 1)
	go func() {
		fd, _, err := unix.Accept(listener)
		if err == nil {
			b.socket = fd
			err = errors.Join(b.serve(), unix.Close(fd))
		}
		served <- err
	}()
	t.Cleanup(func() {
		_ = unix.Shutdown(listener, unix.SHUT_RDWR) // ends an accept()
		if err := errors.Join(<-served, unix.Close(listener), b.release()); err != nil {
			t.Error(err)
		}
	})
	return path
}

func (b *backEnd) release() (err error) {
	for _, fd := range append(b.calls, b.memory) {
		if fd >= 0 {
			err = errors.Join(err, unix.Close(fd))
		}
	}
	if b.rings != nil {
		err = errors.Join(err, unix.Munmap(b.rings))
	}
	return err
}

// serve reads one message after the other, until the guest has gone.
func (b *backEnd) serve() error {
	for {
		ready := []unix.PollFd{{Fd: int32(b.socket), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, 1); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		b.takeFrames()
		if ready[0].Revents == 0 {
			continue
		}
		if end, err := b.read(); end || err != nil {
			return err
		}
	}
}

func (b *backEnd) takeFrames() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rings == nil || b.takes == 0 { // afterwards the memory may be gone
		return
	}
	avail := atomic.LoadUint32((*uint32)(unsafe.Pointer(&b.rings[vhostTx+vhostAvail])))
	used := (*uint32)(unsafe.Pointer(&b.rings[vhostTx+vhostUsed]))
	if atomic.LoadUint32(used) != avail {
		atomic.StoreUint32(used, avail)
		b.takes--
	}
}

func (b *backEnd) read() (end bool, err error) {
	var message [512]byte
	control := make([]byte, unix.CmsgSpace(4*16))
	n, n2, _, _, err := unix.Recvmsg(b.socket, message[:12], control, unix.MSG_CMSG_CLOEXEC)
	if n < 12 || err != nil {
		return true, nil // it has gone, perhaps in the middle of a message
	}
	fds, err := descriptors(control[:n2])
	if err != nil {
		return true, err
	}
	request, size := binary.LittleEndian.Uint32(message[:]), binary.LittleEndian.Uint32(message[8:])
	if size > uint32(len(message)) {
		return true, closeAll(fds)
	}
	if size > 0 {
		if n, err := unix.Read(b.socket, message[:size]); n < int(size) || err != nil {
			return true, closeAll(fds)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests = append(b.requests, request)
	return b.obey(request, fds)
}

func (b *backEnd) obey(request uint32, fds []int) (end bool, err error) {
	switch {
	case b.refuses > 0 && len(b.requests) >= b.refuses:
		return true, closeAll(fds)
	case request == vhostSetMemTable && b.memory < 0:
		b.memory = fds[0]
		b.rings, err = unix.Mmap(b.memory, 0, vhostData, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		return false, err
	case request == vhostSetCall && len(b.calls) < 2:
		b.calls = append(b.calls, fds...)
		return false, nil
	case request == vhostGetFeatures && len(b.requests) < 3: // later answers are nobody's
		return false, unix.Sendmsg(b.socket, vhostMessage(vhostGetFeatures, uint64(vhostFeatures)), nil, nil,
			unix.MSG_NOSIGNAL)
	}
	return false, closeAll(fds)
}

func closeAll(fds []int) (err error) {
	for _, fd := range fds {
		err = errors.Join(err, unix.Close(fd))
	}
	return err
}

func descriptors(control []byte) (fds []int, err error) {
	parts, err := unix.ParseSocketControlMessage(control)
	for _, p := range parts {
		rights, err := unix.ParseUnixRights(&p)
		if err != nil {
			return nil, err
		}
		fds = append(fds, rights...)
	}
	return fds, err
}

// look reads what the back end knows.
func (b *backEnd) look(at func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at()
}

// connectTo starts the guest of a back end.
func connectTo(t *testing.T, b *backEnd, how misuse, number uint64) guest {
	t.Helper()
	g, err := connectGuest(&scenario.Port{Device: scenario.Vhost, Socket: serveGuest(t, b)}, how, number)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// postUntil lets the guest act until it has done so much.
func postUntil(t *testing.T, g guest, least int) (done int, err error) {
	t.Helper()
	if waited := wait.Patiently(t.Context(), func() (bool, error) {
		var n int
		n, err = g.post()
		done += n
		return done >= least || err != nil, nil
	}); waited != nil {
		t.Fatalf("done %d times: %v", done, waited)
	}
	return done, err
}

func TestShrinkingGuest(t *testing.T) {
	for number, want := range []int64{0, vhostData} {
		b := &backEnd{}
		g := connectTo(t, b, shrink, uint64(number))
		if err := wait.Patiently(t.Context(), func() (mapped bool, err error) {
			b.look(func() { mapped = b.rings != nil })
			return mapped, nil
		}); err != nil {
			t.Fatal(err)
		}
		if n, err := g.post(); n != 0 || err != nil || sizeOf(t, b.memory) != vhostData+vhostRoom {
			t.Errorf("memory that is not used yet: %d, %v, %d bytes", n, err, sizeOf(t, b.memory))
		}
		b.look(func() { b.takes = 1 })
		if n, err := postUntil(t, g, 1); n != 1 || !errors.Is(err, errShrunk) {
			t.Errorf("%d times, %v", n, err)
		}
		if got := sizeOf(t, b.memory); got != want {
			t.Errorf("the file of memory has %d bytes, want %d", got, want)
		}
	}
}

func sizeOf(t *testing.T, fd int) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	return st.Size
}

// The guest's frames flow, and nobody can write to its call descriptors without waiting.
func TestFullCall(t *testing.T) {
	b := &backEnd{takes: 3}
	n, err := postUntil(t, connectTo(t, b, fullCall, 0), 3*vhostFew)
	if n != 3*vhostFew || err != nil {
		t.Errorf("%d frames, %v", n, err)
	}
	var calls []int
	b.look(func() { calls = slices.Clone(b.calls) })
	if len(calls) != 2 {
		t.Fatalf("%d call descriptors", len(calls))
	}
	for _, fd := range calls {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil || flags&unix.O_NONBLOCK != 0 {
			t.Errorf("a write would not wait: flags %#x, %v", flags, err)
		}
		can := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLOUT}}
		if _, err := unix.Poll(can, 0); err != nil || can[0].Revents != unix.POLLIN {
			t.Errorf("the eventfd is not full: %#x, %v", can[0].Revents, err)
		}
		var count [8]byte
		if _, err := unix.Read(fd, count[:]); err != nil || binary.NativeEndian.Uint64(count[:]) != math.MaxUint64-1 {
			t.Errorf("the eventfd had %v, %v", count, err)
		}
	}
}

const handshakeMessages = 16

// Messages begin when the rings run. Those that are counted have been read.
func TestLyingGuest(t *testing.T) {
	b := &backEnd{}
	g := connectTo(t, b, lie, 0)
	requests := func() (got []uint32) {
		b.look(func() { got = slices.Clone(b.requests) })
		return got
	}
	if err := wait.Patiently(t.Context(), func() (bool, error) {
		n, err := g.post()
		if n != 0 || err != nil {
			return true, errors.Join(err, errors.New("it lies before its rings run"))
		}
		return len(requests()) >= handshakeMessages, nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := requests(); len(got) != handshakeMessages {
		t.Errorf("the handshake has messages %v", got)
	}
	b.look(func() { b.takes, b.refuses = 1, handshakeMessages+3 })
	n, err := postUntil(t, g, 1000)
	if got := len(requests()) - handshakeMessages; !errors.Is(err, errNotServed) || n < 1 || n > got+1 {
		t.Errorf("%d messages are counted, %d were read, %v", n, got, err)
	}
}

// What the guests of a run say: most of each kind of message, each time the same, and a third of it wrong somewhere.
func TestLies(t *testing.T) {
	memory, err := newGuestMemory(vhostData+vhostRoom, true)
	if err != nil {
		t.Fatal(err)
	}
	say := func(number uint64) (words []vhostWord) {
		g, err := newLyingGuest(&vhostGuest{guestSocket: -1, memory: memory}, number)
		if err != nil {
			t.Fatal(err)
		}
		l := g.(*lyingGuest)
		for range 2000 {
			words = append(words, l.next())
		}
		if err := closeAll(l.own); err != nil {
			t.Error(err)
		}
		return words
	}
	first, again := say(1), say(1)
	requests, wrong, most := map[uint32]int{}, 0, 0
	for i, w := range first {
		if string(w.bytes()) != string(again[i].bytes()) || len(w.files) != len(again[i].files) {
			t.Fatalf("message %d is %+v, and then %+v", i, w, again[i])
		}
		requests[w.request]++
		if int(w.size) != len(w.payload) || w.flags&^vhostNeedReply != vhostVersion || w.request > 44 {
			wrong++
		}
		most = max(most, len(w.files))
	}
	for request := range uint32(45) {
		if requests[request] == 0 {
			t.Errorf("no message %d in 2,000", request)
		}
	}
	if wrong == 0 || wrong > len(first)/3 || most < 9 {
		t.Errorf("%d messages with a wrong header, at most %d descriptors", wrong, most)
	}
	if other := say(2); string(other[0].bytes())+string(other[1].bytes())+string(other[2].bytes()) ==
		string(first[0].bytes())+string(first[1].bytes())+string(first[2].bytes()) {
		t.Error("the next connection says the same")
	}
	if err := memory.close(); err != nil {
		t.Error(err)
	}
}
