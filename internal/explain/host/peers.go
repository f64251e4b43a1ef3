// SPDX-License-Identifier: Apache-2.0
package host

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/procfs"
)

// Peers returns the processes at the other ends of a process's connections over the Unix socket path, as the kernel
// noted them at connection time. It duplicates each connection for a moment (pidfd_getfd(2), Linux 5.6), which needs
// the right to debug the process.
func Peers(pid int, path string) (out []int, err error) {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	defer func() { _ = unix.Close(process) }() // nothing was written
	files, err := procfs.Host.Files(pid)
	if err != nil {
		return nil, err
	}
	for number, link := range files {
		if !strings.HasPrefix(link, "socket:") {
			continue
		}
		peer, err := peerOf(process, number, path)
		if err != nil {
			return nil, fmt.Errorf("connections of process %d: %w", pid, err)
		}
		if peer > 0 && !slices.Contains(out, peer) {
			out = append(out, peer)
		}
	}
	slices.Sort(out)
	return out, nil
}

// peerOf returns the peer of one file of a process; 0: the file is not a connection over path.
func peerOf(process, number int, path string) (int, error) {
	fd, err := unix.PidfdGetfd(process, number, 0)
	if err == unix.EBADF { // closed meanwhile
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }() // a duplicate
	own, _ := unix.Getsockname(fd)
	other, err := unix.Getpeername(fd)
	if err != nil || !isPath(own, path) && !isPath(other, path) {
		return 0, nil // a listening socket, or another connection
	}
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}

func isPath(a unix.Sockaddr, path string) bool {
	u, ok := a.(*unix.SockaddrUnix)
	return ok && u.Name == path
}
