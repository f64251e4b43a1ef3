// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	diskDepth  = 32 // reads under way at once: with more than fit into the disk's ring, kernel threads submit them
	diskBatch  = 8  // reads that are submitted at once: the disk does not run out of work meanwhile
	blockSize  = 4096
	fileBlocks = 1 << 14 // 64 MB
)

// disk makes a file and reads its blocks in random order without the page cache, so that the disk reports the end of
// each read. It submits many reads by one system call (io_submit(2)), because it shares its CPU with the generator.
func disk(_ context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("disk: one file, not %v", args)
	}
	if err := makeFile(args[0]); err != nil {
		return err
	}
	f, err := os.OpenFile(args[0], os.O_RDONLY|unix.O_DIRECT, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	runtime.LockOSThread()
	r := &reads{random: rand.New(rand.NewPCG(1, 1))}
	if err := r.open(f); err != nil {
		return err
	}
	for free := diskDepth; ; {
		if err := r.submit(free); err != nil {
			return err
		}
		if free, err = r.wait(); err != nil {
			return err
		}
	}
}

func makeFile(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	block := make([]byte, 256*blockSize)
	for range fileBlocks / 256 {
		if _, err := f.Write(block); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(f.Sync(), f.Close())
}

// reads are the asynchronous reads of one file (aio(7)). What the kernel writes to is static memory of C's layout.
type reads struct {
	context uintptr
	random  *rand.Rand
	control [diskDepth]control
	free    [diskDepth]*control // the first ones are not under way
	ended   [diskDepth]event
}

// control is struct iocb of linux/aio_abi.h.
type control struct {
	data         uint64
	_            uint64 // aio_key, aio_rw_flags
	_            uint16 // aio_lio_opcode 0: IOCB_CMD_PREAD
	_            int16
	file         uint32
	buffer, size uint64
	offset       int64
	_            uint64
	_, _         uint32
}

// event is struct io_event of linux/aio_abi.h.
type event struct {
	data, _   uint64
	result, _ int64
}

func (r *reads) open(f *os.File) error {
	// O_DIRECT needs aligned blocks.
	blocks, err := unix.Mmap(-1, 0, diskDepth*blockSize, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	for i := range r.control {
		r.control[i] = control{data: uint64(i), file: uint32(f.Fd()),
			buffer: uint64(uintptr(unsafe.Pointer(&blocks[i*blockSize]))), size: blockSize}
		r.free[i] = &r.control[i]
	}
	_, _, failed := unix.Syscall(unix.SYS_IO_SETUP, diskDepth, uintptr(unsafe.Pointer(&r.context)), 0)
	return named("io_setup", failed)
}

// submit starts the first n reads of r.free.
func (r *reads) submit(n int) error {
	for _, c := range r.free[:n] {
		c.offset = r.random.Int64N(fileBlocks) * blockSize
	}
	for at := 0; at < n; {
		k, _, failed := unix.Syscall(unix.SYS_IO_SUBMIT, r.context, uintptr(n-at),
			uintptr(unsafe.Pointer(&r.free[at])))
		if failed != 0 {
			return named("io_submit", failed)
		}
		at += int(k)
	}
	return nil
}

// wait waits for the end of some reads and returns how many have ended.
func (r *reads) wait() (int, error) {
	n, _, failed := unix.Syscall6(unix.SYS_IO_GETEVENTS, r.context, diskBatch, diskDepth,
		uintptr(unsafe.Pointer(&r.ended[0])), 0, 0)
	if failed != 0 && failed != unix.EINTR { // the Go runtime sends signals to its threads
		return 0, named("io_getevents", failed)
	}
	if failed != 0 {
		return 0, nil
	}
	for i, e := range r.ended[:n] {
		if e.result != blockSize {
			return 0, fmt.Errorf("a read of %d bytes ends with %d", blockSize, e.result)
		}
		r.free[i] = &r.control[e.data]
	}
	return int(n), nil
}

func named(call string, failed unix.Errno) error {
	if failed == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", call, failed)
}
