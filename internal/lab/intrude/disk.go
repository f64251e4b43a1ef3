// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

const (
	diskReaders = 8
	blockSize   = 4096
	diskBlocks  = 16384 // 64 MB
)

// disk makes a file and reads its blocks in random order without the page cache, so that each read is an interrupt.
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
	failed := make(chan error)
	for reader := range diskReaders {
		go func() { failed <- readRandom(f, uint64(reader)) }()
	}
	return <-failed
}

func makeFile(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	block := make([]byte, 64*blockSize)
	for range diskBlocks / 64 {
		if _, err := f.Write(block); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(f.Sync(), f.Close())
}

func readRandom(f *os.File, seed uint64) error {
	runtime.LockOSThread()
	// O_DIRECT needs an aligned block.
	block, err := unix.Mmap(-1, 0, blockSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	for random := rand.New(rand.NewPCG(seed, 1)); ; {
		if _, err := f.ReadAt(block, random.Int64N(diskBlocks)*blockSize); err != nil {
			return err
		}
	}
}
