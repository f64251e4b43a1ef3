// SPDX-License-Identifier: Apache-2.0

// Package vhostguest is the guest of a vhost-user port without a virtual machine: the driver of a virtio-net device
// whose network stack is a kernel's, in a network namespace. Its interface is a tap. Frames, with their virtio-net
// headers, go from the tap into the buffers of the rings and back.
package vhostguest

import (
	"errors"
	"fmt"
	"net"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/namespace"
)

// Features of virtio 1.2 that a guest of Linux uses.
const (
	featCsum     = 1 << 0
	featGuestSum = 1 << 1
	featGuestTS4 = 1 << 7
	featGuestTS6 = 1 << 8
	featHostTSO4 = 1 << 11
	featHostTSO6 = 1 << 12
	featHostECN  = 1 << 13
	featMerge    = 1 << 15
	featVersion1 = 1 << 32
	featProtocol = 1 << 30

	wanted = featCsum | featGuestSum | featGuestTS4 | featGuestTS6 | featHostTSO4 | featHostTSO6 | featHostECN |
		featMerge | featVersion1 | featProtocol
	required = featMerge | featVersion1
)

// Config of a guest.
type Config struct {
	Socket    string
	Serve     bool // the router is the client
	Netns     string
	Interface string
	MTU       int
}

// Guest is a running guest.
type Guest struct {
	Features uint64 // what was negotiated

	socket *net.UnixConn
	tap    int
	stop   int // an eventfd: not zero when the guest has to end
	memory []byte
	rx, tx *ring
	ended  chan error
}

// Start makes the interface, connects to the router and begins to carry frames. The caller sets the interface up.
func Start(c Config) (g *Guest, err error) {
	g = &Guest{tap: -1, stop: -1, ended: make(chan error, 2)}
	defer func() {
		if err != nil {
			g.release()
			err = fmt.Errorf("guest of %s: %w", c.Socket, err)
		}
	}()
	if g.stop, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return g, err
	}
	if err := g.connect(c.Socket, c.Serve); err != nil {
		return g, err
	}
	err = namespace.Do(c.Netns, func() error { return g.openTap(c) })
	if err != nil {
		return g, err
	}
	go g.run(g.send)
	go g.run(g.receive)
	return g, nil
}

// Close ends the guest and removes its interface. It returns the error that had ended it before, if any.
func (g *Guest) Close() error {
	_, err := unix.Write(g.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	if err == nil {
		err = errors.Join(<-g.ended, <-g.ended)
	}
	g.release()
	return err
}

func (g *Guest) release() {
	if g.socket != nil {
		_ = g.socket.Close()
	}
	for _, r := range []*ring{g.rx, g.tx} {
		if r != nil {
			_ = unix.Close(r.kick)
			_ = unix.Close(r.call)
		}
	}
	for _, fd := range []int{g.tap, g.stop} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	if g.memory != nil {
		_ = unix.Munmap(g.memory)
	}
}

// run has a thread of its own: its system calls block.
func (g *Guest) run(side func() error) {
	runtime.LockOSThread()
	g.ended <- side()
}

func (g *Guest) openTap(c Config) (err error) {
	if g.tap, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err != nil {
		return fmt.Errorf("/dev/net/tun: %w", err)
	}
	ifr, err := unix.NewIfreq(c.Interface)
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(g.tap, unix.TUNSETIFF, ifr); err != nil {
		return fmt.Errorf("%s: %w", c.Interface, err)
	}
	if err := unix.IoctlSetPointerInt(g.tap, unix.TUNSETVNETHDRSZ, headerSize); err != nil {
		return err
	}
	if err := unix.IoctlSetInt(g.tap, unix.TUNSETOFFLOAD, tapOffloads(g.Features)); err != nil {
		return err
	}
	link, err := unix.NewIfreq(c.Interface)
	if err != nil {
		return err
	}
	link.SetUint32(uint32(c.MTU))
	control, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(control)
	return unix.IoctlIfreq(control, unix.SIOCSIFMTU, link)
}

// tapOffloads is what the kernel may hand over, because the router takes it.
func tapOffloads(features uint64) (flags int) {
	if features&featCsum == 0 {
		return 0
	}
	flags = unix.TUN_F_CSUM
	for feature, flag := range map[uint64]int{featHostTSO4: unix.TUN_F_TSO4, featHostTSO6: unix.TUN_F_TSO6} {
		if features&feature != 0 {
			flags |= flag
		}
	}
	if features&featHostECN != 0 && flags != unix.TUN_F_CSUM {
		flags |= unix.TUN_F_TSO_ECN
	}
	return flags
}

// await sleeps until something is readable, or the guest has to end.
func (g *Guest) await(fd int) (end bool, err error) {
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(g.stop), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, -1)
		if err == nil {
			return fds[1].Revents != 0, nil
		}
		if err != unix.EINTR {
			return true, err
		}
	}
}
