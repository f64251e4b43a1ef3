// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/cpuset"
)

// flood sends datagrams to an address as fast as the kernel takes them: flood ADDRESS SIZE. It sends many with one
// system call (UDP_SEGMENT, udp(7)), so that the receiving side has more work than this one.
func flood(_ context.Context, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("flood: an address and a size, not %v", args)
	}
	size, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	c, err := net.Dial("udp", args[0])
	if err != nil {
		return err
	}
	defer c.Close()
	if err := segment(c.(*net.UDPConn), size); err != nil {
		return err
	}
	runtime.LockOSThread()
	for buffer := make([]byte, size*segments); ; {
		if _, err := c.Write(buffer); err != nil { // no listener, or a full queue: it goes on
			time.Sleep(10 * time.Microsecond)
		}
	}
}

const segments = 32

func segment(c *net.UDPConn, size int) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, size)
	})
	return errors.Join(err, failed)
}

// sink receives datagrams and prints their number once a second: sink ADDRESS.
func sink(_ context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("sink: an address, not %v", args)
	}
	at, err := netip.ParseAddrPort(args[0])
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: at.Addr().As4(), Port: int(at.Port())}); err != nil {
		return err
	}
	return receiveForever(fd)
}

// pin moves a thread to a CPU again and again, because corelaned moves it back: pin THREAD CPU.
func pin(_ context.Context, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("pin: a thread and a CPU, not %v", args)
	}
	tid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	set, err := cpuset.Parse(args[1])
	if err != nil {
		return err
	}
	for {
		if err := affinity(tid, set); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func affinity(tid int, set cpuset.Set) error {
	var mask unix.CPUSet
	for _, cpu := range set.IDs() {
		mask.Set(cpu)
	}
	return unix.SchedSetaffinity(tid, &mask)
}
