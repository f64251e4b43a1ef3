// SPDX-License-Identifier: Apache-2.0
package neighbor

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/wait"
)

// A hostile guest breaks the protocol of its port, which the generator's drivers cannot. It runs in this process, on
// the generator's CPU, and rests between two steps so that it takes little of it.
type guest interface {
	// post offers frames to the router and returns how many it has taken since the last call, or how often the guest
	// has done something else that is its attack. An error: this connection is over.
	post() (taken int, err error)
	close() error
}

const (
	guestRest = 100 * time.Microsecond
	hugeBytes = 64 << 20 // of a descriptor
	chained   = 128      // descriptors of a frame: the most that memif allows
	pieceSize = 8        // bytes in each descriptor of a chain
)

// misuse is what the frames of a hostile guest are like.
type misuse int

const (
	nothing  misuse = iota // it only connects and disconnects
	huge                   // each descriptor has 64 MB
	chain                  // each frame takes as many descriptors as a chain may have
	whole                  // no misuse: the frames of chain, as many of them, each in one descriptor
	shrink                 // it shortens the file of its memory once the router uses it, and connects again
	lie                    // it sends messages of any kind while its rings run
	fullCall               // nobody reads its call descriptor, an eventfd at its maximum
)

// misused makes the attacker a hostile guest.
func misused(how misuse) func(*attacker) error {
	return func(a *attacker) error {
		port := a.port
		as := func(how misuse) func(context.Context) (int, error) {
			connections := uint64(0)
			return func(ctx context.Context) (int, error) {
				return attackAs(ctx, func() (guest, error) {
					connections++
					return connectGuest(port, how, connections)
				}, how == nothing)
			}
		}
		a.guest = as(how)
		if how == chain {
			a.ordinaryGuest = as(whole)
		}
		return nil
	}
}

// attackAs runs a hostile guest until ctx ends. It connects again whenever it is disconnected, and an idle one always.
// It rests after each connection, too: a loop without rests would measure what the generator loses to it on their CPU.
// It returns the frames that the router took or, of an idle guest, its connections, or else what its posts count.
func attackAs(ctx context.Context, connect func() (guest, error), idle bool) (done int, err error) {
	for ; ctx.Err() == nil; _ = wait.For(ctx, guestRest) {
		g, err := connect()
		if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, errNotServed) {
			continue // the router is still busy with the last connection
		}
		if err != nil {
			return done, err
		}
		if idle {
			done++
		}
		for ctx.Err() == nil && !idle {
			n, err := g.post()
			done += n
			if err != nil {
				break
			}
			_ = wait.For(ctx, guestRest)
		}
		if err := g.close(); err != nil {
			return done, err
		}
	}
	return done, nil
}

// errNotServed: the router has closed the connection before it was complete.
var errNotServed = errors.New("the router has closed the connection")

// connectGuest makes a connection. number: counts them, so that each may differ.
func connectGuest(port *scenario.Port, how misuse, number uint64) (guest, error) {
	if port.Device == scenario.Memif {
		return dialMemif(port.Socket, how)
	}
	g, err := dialVhost(port.Socket, how)
	if err != nil {
		return nil, err
	}
	switch how {
	case shrink:
		return &shrinkingGuest{guest: g, memory: g.memory, keeps: int64(number%2) * vhostData}, nil
	case lie:
		return newLyingGuest(g, number)
	}
	return g, nil
}

// guestMemory is memory that a guest shares with the router.
type guestMemory struct {
	bytes []byte
	fd    int
}

// newGuestMemory makes memory. If it is sealed, nobody can shorten it; without that, memif refuses it.
func newGuestMemory(size int, sealed bool) (*guestMemory, error) {
	fd, err := unix.MemfdCreate("guest", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	err = unix.Ftruncate(fd, int64(size))
	if err == nil && sealed {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK)
	}
	var bytes []byte
	if err == nil {
		bytes, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return &guestMemory{bytes, fd}, nil
}

func (m *guestMemory) close() error { return errors.Join(unix.Munmap(m.bytes), unix.Close(m.fd)) }

// guestSocket is a connection of a guest.
type guestSocket int

func dialGuest(path string, kind int) (guestSocket, error) {
	fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	timeout := unix.NsecToTimeval(time.Second.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return guestSocket(fd), nil
}

func (s guestSocket) close() error { return unix.Close(int(s)) }

// send sends a message, with descriptors.
func (s guestSocket) send(message []byte, fds ...int) error {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	err := unix.Sendmsg(int(s), message, rights, nil, unix.MSG_NOSIGNAL)
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		return errNotServed
	}
	return err
}

// sendEvent sends a message with a new eventfd.
func (s guestSocket) sendEvent(message []byte) error {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return os.NewSyscallError("eventfd", err)
	}
	return errors.Join(s.send(message, fd), unix.Close(fd))
}

// sendFullEvent sends a message with a new eventfd at its maximum: a write to it waits until somebody reads it.
func (s guestSocket) sendFullEvent(message []byte) error {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("eventfd", err)
	}
	_, err = unix.Write(fd, binary.NativeEndian.AppendUint64(nil, math.MaxUint64-1))
	if err == nil {
		err = s.send(message, fd)
	}
	return errors.Join(err, unix.Close(fd))
}

// receive reads a message of at most this length.
func (s guestSocket) receive(size int) ([]byte, error) {
	message := make([]byte, size)
	n, err := unix.Read(int(s), message)
	if n <= 0 { // closed, or silent for too long
		return nil, errors.Join(errNotServed, err)
	}
	return message[:n], nil
}

// closed says whether the router has closed the connection.
func (s guestSocket) closed() bool {
	var message [256]byte
	n, _, err := unix.Recvfrom(int(s), message[:], unix.MSG_DONTWAIT)
	return !errors.Is(err, unix.EAGAIN) && n <= 0
}
