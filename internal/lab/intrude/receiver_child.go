// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// receiverThread reads datagrams one by one, as a vhost thread does, and prints their number every second.
const receiverThread = "cl-receiver"

func receiveForever(fd int) error {
	runtime.LockOSThread() // with blocking system calls: this thread alone receives
	if err := renameThread(receiverThread); err != nil {
		return err
	}
	short := unix.NsecToTimeval((100 * time.Millisecond).Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &short); err != nil {
		return err
	}
	buffer := make([]byte, 2048)
	count := 0
	for next := time.Now().Add(time.Second); ; {
		for range 64 {
			_, err := unix.Read(fd, buffer)
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
				break
			}
			if err != nil {
				return err
			}
			count++
		}
		if now := time.Now(); !now.Before(next) {
			if _, err := fmt.Println(count); err != nil {
				return err
			}
			next, count = now.Add(time.Second), 0
		}
	}
}
