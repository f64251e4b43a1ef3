// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"fmt"
	"net"
	"runtime"
	"time"
)

// receiveForever reads datagrams, as a vhost thread or any other receiver does, and prints each second: bytes, datagrams.
func receiveForever(c *net.UDPConn) error {
	runtime.LockOSThread()
	if err := renameThread("cl-sink"); err != nil {
		return err
	}
	buffer := make([]byte, 1<<16)
	var bytes, count uint64
	for next := time.Now().Add(time.Second); ; {
		_ = c.SetReadDeadline(next)
		for range 64 {
			n, err := c.Read(buffer)
			if err != nil {
				break // the second is over
			}
			bytes += uint64(n)
			count++
		}
		if now := time.Now(); !now.Before(next) {
			if _, err := fmt.Printf("%d %d\n", bytes, count); err != nil {
				return err
			}
			next, bytes, count = now.Add(time.Second), 0, 0
		}
	}
}
