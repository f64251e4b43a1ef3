// SPDX-License-Identifier: Apache-2.0
package neighbor

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"

	"golang.org/x/sys/unix"
)

// lieSeed begins the messages of each run: connection n of a run always says the same.
const lieSeed = 1

// lyingGuest sends ordinary, changed and random messages, one after the other, while the router serves its rings.
type lyingGuest struct {
	*vhostGuest
	random *rand.Rand
	files  []int // descriptors of several kinds, the first one of the memory
	own    []int // those of them that are closed at the end
	runs   bool  // the router has taken frames
	sent   int   // messages that the router has not read yet: 0 or 1
}

// The first ones of the files.
const (
	lieMemory = iota
	lieEvent
)

func newLyingGuest(g *vhostGuest, number uint64) (guest, error) {
	l := &lyingGuest{vhostGuest: g, random: rand.New(rand.NewPCG(lieSeed, number)), files: []int{g.memory.fd}}
	if err := l.openFiles(); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// openFiles makes an eventfd, the ends of a pipe, a device, and memory of a page.
func (g *lyingGuest) openFiles() error {
	keep := func(fds ...int) {
		g.files, g.own = append(g.files, fds...), append(g.own, fds...)
	}
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return err
	}
	keep(event)
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return err
	}
	keep(pipe[:]...)
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	keep(null)
	page, err := unix.MemfdCreate("page", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	keep(page)
	return unix.Ftruncate(page, 4096)
}

// post sends the next message when the router has read the last one. It counts those that were read.
func (g *lyingGuest) post() (read int, err error) {
	taken, err := g.vhostGuest.post()
	g.runs = g.runs || taken > 0
	if err != nil { // the router did not like the last message
		return g.sent, err
	}
	unread, err := unix.IoctlGetInt(int(g.guestSocket), unix.SIOCOUTQ)
	if err != nil || !g.runs || unread > 0 {
		return 0, err
	}
	read, g.sent = g.sent, 0
	w := g.next()
	if err := g.send(w.bytes(), w.files...); err != nil {
		return read, err
	}
	g.sent = 1
	return read, nil
}

func (g *lyingGuest) close() error {
	err := g.vhostGuest.close()
	for _, fd := range g.own {
		err = errors.Join(err, unix.Close(fd))
	}
	return err
}

// vhostWord is a message before it is sent.
type vhostWord struct {
	request, flags uint32
	size           uint32 // of the payload, as the header says
	payload        []byte
	files          []int
}

func (w *vhostWord) bytes() []byte {
	m := binary.LittleEndian.AppendUint32(nil, w.request)
	m = binary.LittleEndian.AppendUint32(m, w.flags)
	return append(binary.LittleEndian.AppendUint32(m, w.size), w.payload...)
}

// next is mostly an ordinary message: a connection that is refused at once says little.
func (g *lyingGuest) next() vhostWord {
	switch n := g.random.IntN(8); {
	case n == 0:
		return g.anything()
	case n < 3:
		w := g.usual()
		g.change(&w)
		return w
	}
	return g.usual()
}

const (
	vhostVersion   = 1 // flags of a message
	vhostNeedReply = 8
)

func vhostWordOf(request uint32, payload []any, files ...int) vhostWord {
	m := vhostMessage(request, payload...)[12:]
	return vhostWord{request: request, flags: vhostVersion, size: uint32(len(m)), payload: m, files: files}
}

// usual is a message as the handshake has them, or as a guest that stops a ring.
func (g *lyingGuest) usual() vhostWord {
	ring := uint32(g.random.IntN(2))
	state := func(request, value uint32) vhostWord { return vhostWordOf(request, []any{ring, value}) }
	event := func(request uint32) vhostWord {
		return vhostWordOf(request, []any{uint64(ring)}, g.files[lieEvent])
	}
	words := []vhostWord{
		vhostWordOf(vhostGetFeatures, nil), vhostWordOf(vhostSetFeatures, []any{uint64(vhostFeatures)}),
		vhostWordOf(vhostSetOwner, nil), vhostWordOf(vhostSetMemTable, g.memoryTable(), g.files[lieMemory]),
		state(vhostSetNum, vhostSlots), state(vhostSetBase, uint32(g.random.IntN(vhostSlots))),
		vhostWordOf(vhostSetAddr, vhostAddresses(ring)), event(vhostSetKick), event(vhostSetCall),
		state(vhostSetEnable, uint32(g.random.IntN(2))), state(vhostSetEnable, 1), state(vhostGetBase, 0),
	}
	w := words[g.random.IntN(len(words))]
	if g.random.IntN(2) == 0 {
		w.flags |= vhostNeedReply
	}
	return w
}

// lieValues are at the bounds of something.
var lieValues = []uint32{0, 1, 2, 31, 32, 255, 256, 257, 1024, 4096, vhostRing, vhostAvail, math.MaxInt16,
	math.MaxUint16, math.MaxUint16 + 1, math.MaxInt32, math.MaxUint32}

func (g *lyingGuest) value() uint32 {
	if g.random.IntN(4) == 0 {
		return g.random.Uint32()
	}
	return lieValues[g.random.IntN(len(lieValues))]
}

func (g *lyingGuest) anyFiles(n int) (fds []int) {
	for range n {
		fds = append(fds, g.files[g.random.IntN(len(g.files))])
	}
	return fds
}

// change makes one thing of a message wrong or, now and then, right in another way.
func (g *lyingGuest) change(w *vhostWord) {
	switch n := g.random.IntN(8); {
	case n < 4 && len(w.payload) > 0:
		at := 4 * g.random.IntN(len(w.payload)/4)
		binary.LittleEndian.PutUint32(w.payload[at:], g.value())
	case n == 4:
		w.size = g.value()
	case n == 5:
		w.flags = g.value()
	case n == 6:
		w.request = g.value()
	default:
		w.files = g.anyFiles(g.random.IntN(10))
	}
}

// anything is a message of random words.
func (g *lyingGuest) anything() vhostWord {
	w := vhostWord{request: uint32(g.random.IntN(45)), flags: vhostVersion}
	for range g.random.IntN(75) { // up to the longest payload, and a little more
		w.payload = binary.LittleEndian.AppendUint32(w.payload, g.value())
	}
	w.size = uint32(len(w.payload))
	w.files = g.anyFiles([]int{0, 0, 1, 1, 2, 8, 9}[g.random.IntN(7)])
	return w
}
